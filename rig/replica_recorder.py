"""What a live replica does, recorded for the judges as it happens, in a file that survives `kill -9`.

Every event is one write: its size, and the event as Python pickles it. Times are those of the machine's monotonic
clock, which all processes share. The digest of a state takes the place of a chained one: equal ones are equal states.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import pickle
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ordercast.model.ids import Instant
from ordercast.model.lineage import Lineage
from ordercast.replicated.batching import count_of
from ordercast.replicated.core import Core
from ordercast.replicated.effects import Changed, Reason, Standing
from ordercast.replicated.machine import Origin
from ordercast.replicated.replica import Replica
from ordercast.replicated.structures.base import Structure
from ordercast.replicated.structures.claims import Exclusive, Held
from ordercast.replicated.voice import ComponentVoice
from ordercast.sim.users import User, structure_of, user_of
from ordercast.trace import replica_records as records

_SIZE = 4


def now() -> Instant:
    return Instant(time.monotonic_ns())


class Recorder:
    """Of one life of a replica of one structure. Make it, make a replica with its structure, then `attach` that."""

    def __init__(self, kind: str, folder: Path, voices: tuple[str, ...]) -> None:
        self.kind = kind
        self.structure = _heard(structure_of(kind), self._applied, self._loaded)
        self.user: User
        self.life = 0
        self._folder, self._voices = folder, voices
        self._file = -1
        self._core: Core
        self._replica: Replica[Any]
        self._voice = ComponentVoice()
        self._calls = 0
        self._picture: tuple[Instant, Lineage | None, int] | None = None  # loaded, and not recorded yet
        self._holder = b""
        self._held: Held | None = None  # as it was granted last

    def attach(self, replica: Replica[Any]) -> None:
        self._replica = replica

    def _begin(self) -> None:
        """The replica has a life now. (Only its core knows in which lineage and term a command is applied.)"""
        replica = self._replica
        self._core = replica._desk.core
        self.life = replica.me.life
        self.user = user_of(self.structure, replica.me)
        path = self._folder / f"{self.kind}-{replica.me.name}-{self.life}.events"
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        weights = tuple((name, 1) for name in self._voices)
        self.write(records.ReplicaStarted(now(), self.life, replica.me.name, weights, self._voices, self.kind))

    def write(self, event: records.ReplicaEvent) -> None:
        """All that is recorded comes after the beginning."""
        data = pickle.dumps(event)
        os.write(self._file, len(data).to_bytes(_SIZE, "big") + data)

    def _be_begun(self) -> None:
        if self._file < 0:
            self._begin()

    # What happens to the state

    def _applied(self, command: bytes, origin: Origin, result: bytes) -> None:
        self._be_begun()
        self._tell_picture(origin.position - 1)
        lineage, term = self._core.lineage, self._core.term
        _, caller, _, position = origin
        chain = digest_of(self.structure)
        self.write(records.Applied(now(), self.life, lineage, term, position, caller, 0, command, result, chain))
        if self.kind == "lock" and (holder := self.user.answer(b"")) != self._holder:
            self._holder = holder
            self.write(records.Looked(now(), self.life, lineage, position, b"", holder))

    def _loaded(self) -> None:
        """Which place it is at is known a moment later."""
        self._be_begun()
        self._picture = now(), self._core.arriving_lineage, digest_of(self.structure)

    def _tell_picture(self, position: int) -> None:
        if self._picture is not None:
            at, lineage, chain = self._picture
            self._picture = None
            self.write(records.GotPicture(at, self.life, lineage, position, chain))

    @property
    def count(self) -> int:
        count = self._replica.age.commands
        self._tell_picture(count)
        return count

    def changed(self, changed: Changed) -> None:
        """To be called when it happens: the number of commands is that of the copy."""
        self._be_begun()
        if changed.reason is Reason.CUT_OFF:
            self.write(records.StreamCut(now(), self.life))
            self.write(records.StreamBack(now(), self.life))  # who leaves here is over soon
        count = self.count + sum(map(count_of, self._core.unapplied()))
        self.write(self._voice.record(now(), self.life, None, self._core.era, changed, count))

    def lost(self, why: str) -> None:
        """The member has lost its stream: by its own word, whether or not the replica has noticed."""
        if self._file >= 0:
            self.write(records.StreamCut(now(), self.life))
            asyncio.get_running_loop().call_soon(self.say_belief)

    def say_belief(self) -> None:
        """What the application would be told now."""
        self._note_grant()
        holds = self._held is not None and self._held.is_held
        self.write(records.Believed(now(), self.life, self._replica.age.is_current, holds))

    def _note_grant(self) -> None:
        structure = self.structure
        if not isinstance(structure, Exclusive) or structure.grant is None:
            return
        grant = structure.grant
        is_new = self._held is None or grant.token > self._held.token
        if grant.claim.owner == self._replica.me and is_new and self._replica.is_in_group:
            self._held = Held(structure, grant.claim, grant.token, self._replica)

    # What is asked

    @property
    def next_call(self) -> int:
        return self._calls + 1

    def called(self, operation: bytes) -> int:
        self._calls += 1
        self.write(records.Called(now(), self.life, self._calls, operation))
        return self._calls

    def returned(self, number: int, position: int, result: bytes) -> None:
        self.write(records.Returned(now(), self.life, number, self._core.lineage, position, result))

    def refused(self, number: int, is_certain: bool) -> None:
        self.write(records.Refused(now(), self.life, number, is_certain))

    def look(self, question: bytes) -> None:
        self.say_belief()
        answer = self.user.answer(question)
        self.write(records.Looked(now(), self.life, self._core.lineage, self.count, question, answer))

    def known(self) -> records.ReplicaKnown:
        core, is_holder = self._core, self._core.standing is Standing.HOLDER
        chain, pictures = digest_of(self.structure), core.pictures
        return records.ReplicaKnown(
            now(), self.life, core.is_primary, is_holder, self.count, chain, core.outstanding, pictures
        )


def digest_of(structure: Structure[Any]) -> int:
    digest = hashlib.blake2b(digest_size=8)
    for piece in structure.freeze().pieces():
        digest.update(piece)
    return int.from_bytes(digest.digest(), "big")


def _heard(
    structure: Structure[Any], on_applied: Callable[[bytes, Origin, bytes], None], on_loaded: Callable[[], None]
) -> Structure[Any]:
    """The same structure, which tells of every command and of every state that it adopts."""
    kind = type(structure)

    class Heard(kind):  # type: ignore[misc, valid-type]
        def apply_all(self, commands: Sequence[bytes], first: Origin) -> list[bytes]:
            """One by one: the judges want to know the state after each."""
            results = []
            for position, command in enumerate(commands, first.position):
                origin = first._replace(position=position)
                results.append(self.apply(command, origin))
                on_applied(command, origin, results[-1])
            return results

        def adopt(self, other: Any) -> None:
            super().adopt(other)
            on_loaded()

        def blank(self) -> Any:
            return kind()

    return Heard()


def read_events(path: Path) -> Iterator[records.ReplicaEvent]:
    """As far as they were written."""
    data = path.read_bytes()
    at = 0
    while at + _SIZE <= len(data):
        size = int.from_bytes(data[at : at + _SIZE], "big")
        if at + _SIZE + size > len(data):
            return
        yield pickle.loads(data[at + _SIZE : at + _SIZE + size])
        at += _SIZE + size
