"""Somebody on the network who forges numbers: before a control packet arrives, a copy of it arrives with one thing
changed.

Only what leaves every promise standing is forged, so that the checkers judge poisoned runs as all others: numbers that
leap, counts, tokens with a seq that is too high, or so low that the receiver can see it; opinions and farewells in
others' names. Not forged: data packets, an aru that is too high or another member's, what members say of their old
rings, whether they still exchange messages of these; in a network of rings, where ticks make the order, the one at
which all members of a Commit token's ring are to begin. No protocol without authentication keeps its promises then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import Enum
from random import Random
from typing import Any

from ordercast.model.errors import WireError
from ordercast.model.ids import NOBODY, ConfigurationId, Incarnation, NodeId, Seq, TokenSeq, process_id_from
from ordercast.order.engine import Engine
from ordercast.wire.codec import NUMBER_MAX, decode, encode
from ordercast.wire.head import CLUSTER, KIND_AT, LAYER_KIND
from ordercast.wire.header import MessageKind
from ordercast.wire.messages import Announcement, CommitToken, Join, Leave, Token, WireMessage

COUNTS = (1, 3, 1000, 0xFFFF)
LEAPS = (1000, 1 << 16, 1 << 20, (1 << 24) - 4, 1 << 32, 1 << 33, 1 << 25, 1 << 56, 1 << 61, 1 << 62)
GHOST = process_id_from(NodeId(9999), Incarnation(1))


class Poison(Enum):
    """What was forged."""

    BEHIND = "forged: members behind"
    WAITING = "forged: packets waiting"
    RETRANSMITTED = "forged: packets sent again"
    BUDGET = "forged: budget"
    ROUND = "forged: token round"
    HOP = "forged: number of the hop"
    SEQ_ABOVE = "forged: seq too high"
    SEQ_BELOW = "forged: seq too low"
    ARU = "forged: aru too low"
    HOLDER = "forged: holder of the aru"
    REQUESTS = "forged: requests"
    CLOCK = "forged: Lamport clock"
    RING_SEQ = "forged: ring seq"
    JOIN_NUMBER = "forged: Join number"
    OPINION = "forged: opinion on who has failed"
    FAREWELL = "forged: farewell"


ON_TOKEN = (
    Poison.BEHIND,
    Poison.WAITING,
    Poison.RETRANSMITTED,
    Poison.BUDGET,
    Poison.ROUND,
    Poison.HOP,
    Poison.SEQ_ABOVE,
    Poison.SEQ_BELOW,
    Poison.SEQ_BELOW,  # rarely possible
    Poison.SEQ_BELOW,
    Poison.ARU,
    Poison.HOLDER,
    Poison.REQUESTS,
    Poison.CLOCK,
)
ON_COMMIT = (Poison.RING_SEQ, Poison.CLOCK, Poison.HOP)
ON_JOIN = (Poison.RING_SEQ, Poison.JOIN_NUMBER, Poison.OPINION, Poison.FAREWELL)
ON_ANNOUNCEMENT = (Poison.RING_SEQ, Poison.FAREWELL)
TO_ALL = (Poison.JOIN_NUMBER, Poison.OPINION, Poison.FAREWELL)  # its alleged sender may hear it, too


class Poisoner:
    """Forges by chance; an aimed one prefers what is rarely possible where it is."""

    def __init__(
        self, clusters: Sequence[bytes], chance: float, rng: Random, counts: Counter[str], *, is_aimed: bool = False
    ) -> None:
        self._clusters = clusters  # whose packets it knows: one, or those of all rings of a network
        self._chance = chance
        self._rng = rng
        self._counts = counts  # of what was forged
        self._is_aimed = is_aimed

    def forged(self, packet: bytes, target: Engine) -> tuple[bytes, bool] | None:
        """What arrives before this packet at that engine, and whether everybody hears it; None mostly."""
        if packet[KIND_AT] in (MessageKind.DATA, LAYER_KIND) or self._rng.random() >= self._chance:
            return None
        cluster = next((one for one in self._clusters if packet[CLUSTER] == one), b"")
        try:
            message = decode(packet, cluster)
        except WireError:
            return None
        kind = self._kind(message, target)
        changed = None if kind is None else self._changed(message, kind, target)
        if kind is None or changed is None:
            return None
        self._counts[kind.value] += 1
        return encode(cluster, changed), kind in TO_ALL and self._rng.random() < 0.5

    def _kind(self, message: WireMessage, target: Engine) -> Poison | None:
        kinds: tuple[Poison, ...] = ()
        match message:
            case Token() if self._is_aimed and self._below(message, target) is not None:
                kinds = (Poison.SEQ_BELOW,)
            case Token():
                kinds = ON_TOKEN
            case CommitToken():
                is_final = len(self._clusters) > 1 and message.token_seq >= len(message.members)
                kinds = tuple(kind for kind in ON_COMMIT if not is_final or kind is not Poison.CLOCK)
            case Join():
                kinds = ON_JOIN
            case Announcement():
                kinds = ON_ANNOUNCEMENT
        return self._rng.choice(kinds) if kinds else None

    def _changed(self, message: WireMessage, kind: Poison, target: Engine) -> WireMessage | None:
        match message:
            case Token():
                return self._token(message, kind, target)
            case CommitToken():
                changes = self._commit(message, kind)
                return replace(message, **changes)
            case Join() if kind is not Poison.FAREWELL:
                return self._join(message, kind)
            case Announcement() if kind is not Poison.FAREWELL:
                return replace(message, ring=self._ring(message.ring))
            case _:
                return Leave(message.ring, message.sender)

    def _leap(self, number: int) -> int:
        return min(number + self._rng.choice(LEAPS), NUMBER_MAX - self._rng.choice((0, 1, 100)))

    def _ring(self, ring: ConfigurationId) -> ConfigurationId:
        return ConfigurationId(self._leap(ring.seq), ring.representative)

    def _token(self, token: Token, kind: Poison, target: Engine) -> Token | None:
        changes = self._ways(token, target)[kind]()
        return None if changes is None else replace(token, **changes)

    def _ways(self, token: Token, target: Engine) -> dict[Poison, Callable[[], dict[str, Any] | None]]:
        rng, seq = self._rng, token.seq
        return {
            Poison.BEHIND: lambda: self._sum("behind", token),
            Poison.WAITING: lambda: self._sum("waiting", token),
            Poison.RETRANSMITTED: lambda: self._sum("retransmitted", token),
            Poison.BUDGET: lambda: {"budget": rng.choice((0, 0xFFFFFFFF))},
            Poison.ROUND: lambda: {"round": self._leap(token.round)},
            Poison.HOP: lambda: {"token_seq": TokenSeq(self._leap(token.token_seq))},
            Poison.SEQ_ABOVE: lambda: {"seq": Seq(seq + rng.choice((1, 5, 1 << 20, 1 << 40)))},
            Poison.SEQ_BELOW: lambda: self._below(token, target),
            Poison.ARU: lambda: {"aru": Seq(max(0, token.aru - 5))} if token.aru_id != NOBODY else None,
            Poison.HOLDER: lambda: {"aru_id": GHOST},
            Poison.REQUESTS: lambda: {"requests": tuple(map(Seq, range(max(1, seq - 20), seq + 1)))},
            Poison.CLOCK: lambda: {"timestamp": self._leap(token.timestamp)},
        }

    def _sum(self, name: str, token: Token) -> dict[str, Any]:
        count = self._rng.choice(COUNTS)
        sums = ("retransmitted", "waiting", "behind")
        counted = tuple(count * (name == other) for other in sums) if self._rng.random() < 0.5 else token.counted
        return {name: count, "counted": counted}

    def _below(self, token: Token, target: Engine) -> dict[str, Any] | None:
        """As low as the receiver may believe, if it has packets that are higher."""
        believed, high = target.deniable(token.ring) or (Seq(0), Seq(0))
        low = max(believed, token.aru)
        if not low < high <= token.seq:
            return None
        return {"seq": low, "requests": tuple(seq for seq in token.requests if seq <= low)}

    def _commit(self, token: CommitToken, kind: Poison) -> dict[str, Any]:
        if kind is Poison.RING_SEQ:
            return {"ring": self._ring(token.ring)}
        if kind is Poison.CLOCK:
            return {"timestamp": self._leap(token.timestamp)}
        return {"token_seq": TokenSeq(self._leap(token.token_seq))}

    def _join(self, join: Join, kind: Poison) -> Join:
        if kind is Poison.RING_SEQ:
            return replace(join, ring_seq=self._leap(join.ring_seq))
        number = self._leap(join.number) if kind is Poison.JOIN_NUMBER else join.number + 1
        others = [process for process in join.candidates if process != join.sender]
        failed = set(join.failed)
        if kind is Poison.OPINION and others:
            failed.add(self._rng.choice(others))
        return replace(join, number=number, failed=tuple(sorted(failed)))
