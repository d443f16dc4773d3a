"""Neighbours behind a seal: processes that have this cluster's key, and run another engine.

The id of a cluster is in the keys of its lives, and is another with each engine: nothing that such a process seals can
be opened here, and it would be taken for a forger. So a presence that was not sealed for this engine is tried with the
ids of the others. What opens so counts for nothing: a person is told. A stranger can have many presences tried, and so
no more than a few are in a second.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ordercast.model.effects import Alarm
from ordercast.model.errors import WireError
from ordercast.model.ids import SECOND, Instant, NodeId, node_of
from ordercast.order.neighbours import other_engine_alarm
from ordercast.sealing.cipher import SALT_SIZE, Cipher, life_secret
from ordercast.sealing.packet import NONCE, SEALED_AT, decode_presence

TRIED_MAX: Final = 128  # presences, in a second
TOLD_MAX: Final = 256  # nodes


class Neighbours:
    def __init__(self, cipher: Cipher, engines: Mapping[bytes, str]) -> None:
        """`engines`: the others, by the id of this cluster on them."""
        self._cipher = cipher
        self._engines = engines
        self._since: Instant | None = None  # when the second began in which presences are counted
        self._tried = 0
        self._told: dict[NodeId, str] = {}
        self._alarms: list[Alarm] = []

    def is_one(self, presence: bytes, secret: bytes, generation: int, clear: bytes, now: Instant) -> bool:
        """Tell whether a presence, which does not open under this engine's id, opens under another's."""
        if not self._may_try(now):
            return False
        salt, sealed = presence[SEALED_AT : SEALED_AT + SALT_SIZE], presence[SEALED_AT + SALT_SIZE :]
        for cluster, engine in self._engines.items():
            tag = self._cipher.keyed(life_secret(secret, salt, cluster, generation))
            try:
                said = decode_presence(tag.decrypt(presence[NONCE], sealed, clear))
            except (self._cipher.forged, WireError):
                continue
            node = node_of(said.process)
            if self._told.get(node) != engine and (node in self._told or len(self._told) < TOLD_MAX):
                self._told[node] = engine
                self._alarms.append(other_engine_alarm(said.process, engine))
            return True
        return False

    def news(self) -> list[Alarm]:
        """Return what a person is to be told now: of each node once for each engine that it turns to."""
        alarms, self._alarms = self._alarms, []
        return alarms

    def _may_try(self, now: Instant) -> bool:
        if self._since is None or now - self._since >= SECOND:
            self._since, self._tried = now, 0
        self._tried += 1
        return self._tried <= TRIED_MAX
