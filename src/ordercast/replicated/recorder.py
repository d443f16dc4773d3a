"""Replicas of a dictionary that record what they do and what their callers are told, for the judges of replicas.

    recorder = ReplicaRecorder()
    async with recorder.replica(me, "accounts", Majority({...})) as accounts:
        await accounts.set("alice", "100")

Every value says inside whose command it was, as LIFE.REQUEST before its own text, lives being numbered as they come:
identity comes from outside the core that is judged. The state carries a digest chained over all its commands, which
travels with its pictures. All replicas of a history are on one event loop.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Self

from ordercast.api.member import Member
from ordercast.model.ids import Instant
from ordercast.model.lineage import Lineage
from ordercast.replicated.batching import count_of
from ordercast.replicated.effects import Changed, DeskEffect, Freeze, Release, Standing
from ordercast.replicated.machine import Frozen, Origin
from ordercast.replicated.quorum import Majority
from ordercast.replicated.replica import NotPrimary, Replica, ReplicaEnded
from ordercast.replicated.structures.base import NO, YES, Cut
from ordercast.replicated.structures.dictionary import COMPARE, SET, Compared, Dictionary, DictionaryFront
from ordercast.replicated.structures.fields import Reader, Value, optional_bytes, value_bytes
from ordercast.replicated.voice import ComponentVoice
from ordercast.trace import replica_records as records
from ordercast.trace.records import Ended, Healed

CHAIN_SIZE = 8

OnApplied = Callable[[bytes, int, bytes, bytes], None]  # operation, position, result, chain
OnLoaded = Callable[[int, bytes], None]  # position and chain of the picture


class ReplicaRecorder:
    """One history."""

    def __init__(self) -> None:
        self.events: list[records.ReplicaEvent] = []
        self._lives = 0

    def new_life(self) -> int:
        self._lives += 1
        return self._lives

    def tell(self, event: records.ReplicaEvent) -> None:
        self.events.append(event)

    @asynccontextmanager
    async def replica(
        self, member: Member, group: str, quorum: Majority, on_changed: Callable[[Changed], None] | None = None
    ) -> AsyncIterator[RecordedFront]:
        """`on_changed` is told what the replica knows of its component, as soon as it does."""
        replica = RecordedReplica(self, member, group, quorum, on_changed)
        async with replica as front:
            yield RecordedFront(replica, front)

    def end(self, *fronts: RecordedFront) -> None:
        """All is healed and calm, and these are all that run."""
        self.tell(Healed(now(), ()))
        for front in fronts:
            self.tell(front.replica.known())
        self.tell(Ended(now()))


class RecordedDictionary(Dictionary):
    """Tells of every command that it applies, and of every picture that it becomes."""

    def __init__(self, on_applied: OnApplied, on_loaded: OnLoaded) -> None:
        super().__init__()
        self.last = 0  # position of the last command
        self.chain = bytes(CHAIN_SIZE)
        self._on_applied, self._on_loaded = on_applied, on_loaded
        self._has_head = False  # of a picture

    def apply_all(self, commands: Sequence[bytes], first: Origin) -> list[bytes]:
        results = super().apply_all(commands, first)
        for position, (command, result) in enumerate(zip(commands, results, strict=True), first.position):
            text = b"%d %s" % (position, command)
            self.chain = hashlib.blake2b(text, key=self.chain, digest_size=CHAIN_SIZE).digest()
            self.last = position
            self._on_applied(command, position, result, self.chain)
        return results

    def freeze(self) -> Frozen:
        entries, head = dict(self.entries), value_bytes(f"{self.last} {self.chain.hex()}")

        def items() -> list[bytes]:
            return [head, *(value_bytes(key) + value_bytes(value) for key, value in entries.items())]

        return Cut(items)

    def blank(self) -> Self:
        return type(self)(self._on_applied, self._on_loaded)

    def fill(self, fields: Reader) -> None:
        if not self._has_head:
            last, chain = fields.text().split(" ")
            self.last, self.chain, self._has_head = int(last), bytes.fromhex(chain), True
        super().fill(fields)

    def adopt(self, other: Self) -> None:
        super().adopt(other)
        self.last, self.chain = other.last, other.chain
        self._on_loaded(self.last, self.chain)


class RecordedReplica(Replica[DictionaryFront]):
    def __init__(
        self,
        recorder: ReplicaRecorder,
        member: Member,
        group: str,
        quorum: Majority,
        on_changed: Callable[[Changed], None] | None,
    ) -> None:
        self.dictionary = RecordedDictionary(self._on_applied, self._on_loaded)
        super().__init__(member, group, self.dictionary, quorum=quorum)
        self.recorder = recorder
        self._on_changed = on_changed
        self._weights = tuple(sorted(quorum.weights.items()))
        self._life = recorder.new_life()
        member.on_loss(self._on_loss)  # its own witness: it does not ask the replica whether it has noticed
        self._is_started = False
        self._voice = ComponentVoice()
        self._picture: tuple[int, bytes] | None = None  # loaded, and its lineage is not known yet
        self._pictures = 0  # kept for others
        self.requests = 0  # calls so far
        self.waiting = 0  # those without an answer

    @property
    def life(self) -> int:
        """The first to ask begins it in the history."""
        if not self._is_started:
            self._is_started = True
            founders = tuple(name for name, weight in self._weights if weight)
            name, kind = self._desk.core.me.name, "dictionary"
            started = records.ReplicaStarted(now(), self._life, name, self._weights, founders, kind)
            self.recorder.tell(started)
        return self._life

    @property
    def lineage(self) -> Lineage | None:
        return self._desk.core.lineage

    def say_belief(self) -> None:
        """What the application would be told now."""
        self.recorder.tell(records.Believed(now(), self.life, self.age.is_current, False))

    def _on_loss(self, why: str) -> None:
        if self._is_started:
            self.recorder.tell(records.StreamCut(now(), self.life))
            asyncio.get_running_loop().call_soon(self.say_belief)

    def known(self) -> records.ReplicaKnown:
        core, held = self._desk.core, self.dictionary
        is_holder = core.standing is Standing.HOLDER
        chain = int.from_bytes(held.chain, "big")
        return records.ReplicaKnown(
            now(), self.life, core.is_primary, is_holder, held.last, chain, self.waiting, self._pictures
        )

    # What happens

    def _on_applied(self, operation: bytes, position: int, result: bytes, chain: bytes) -> None:
        self._settle_picture()
        caller, request = identity_of(operation)
        core = self._desk.core
        self.recorder.tell(
            records.Applied(
                now(), self.life, core.lineage, core.term, position, caller, request, operation, result,
                int.from_bytes(chain, "big"),
            )
        )  # fmt: skip

    def _on_loaded(self, position: int, chain: bytes) -> None:
        self._picture = position, chain  # the core still knows the lineage of the state before

    def _settle_picture(self) -> None:
        if self._picture is not None:
            (position, chain), self._picture = self._picture, None
            number = int.from_bytes(chain, "big")
            self.recorder.tell(records.GotPicture(now(), self.life, self._desk.core.lineage, position, number))

    def _carry_out(self, effects: list[DeskEffect]) -> None:
        _ = self.life
        self._settle_picture()
        for effect in effects:
            if isinstance(effect, Changed):
                self._tell_changed(effect)
            self._pictures += isinstance(effect, Freeze) - isinstance(effect, Release)
        super()._carry_out(effects)

    def _tell_changed(self, changed: Changed) -> None:
        count = self.dictionary.last + sum(map(count_of, self._desk.core.unapplied()))
        self.recorder.tell(self._voice.record(now(), self.life, None, self._desk.core.era, changed, count))
        if self._on_changed is not None:
            self._on_changed(changed)

    def on_cut_off(self, name: str | None) -> None:
        self.recorder.tell(records.StreamCut(now(), self.life))
        if name is not None:
            self.recorder.tell(records.StreamBack(now(), self.life))
        super().on_cut_off(name)

    def _end(self, error: BaseException) -> None:
        if self._ended is None and self._is_started:
            self.recorder.tell(records.ReplicaEnded(now(), self.life))
        super()._end(error)


@dataclass(frozen=True, slots=True)
class RecordedFront:
    """The dictionary's methods, with every call and its answer recorded. `plain` is the dictionary's own front."""

    replica: RecordedReplica
    plain: DictionaryFront

    async def set(self, key: str, text: str = "") -> tuple[int, str]:
        """Its position and the value: whose command it is, and then the text."""
        request, value = self._stamp(text)
        self._called(request, set_command(key, value))
        try:
            position = await self.plain.set(key, value)
        except (NotPrimary, ReplicaEnded) as error:
            self._refused(request, error)
            raise
        self._returned(request, position, YES)
        return position, value

    async def compare_and_set(self, key: str, expected: Value | None, text: str = "") -> Compared:
        request, value = self._stamp(text)
        self._called(request, compare_command(key, expected, value))
        try:
            compared = await self.plain.compare_and_set(key, expected, value)
        except (NotPrimary, ReplicaEnded) as error:
            self._refused(request, error)
            raise
        result = YES if compared.succeeded else NO + optional_bytes(compared.found)
        self._returned(request, compared.position, result)
        return compared

    async def latest(self, key: str) -> Value | None:
        """A linearised read."""
        replica = self.replica
        replica.requests += 1
        request = replica.requests
        self._called(request, b"")
        try:
            count = await self.plain.synced()
        except (NotPrimary, ReplicaEnded) as error:
            self._refused(request, error)
            raise
        value = self.plain.get(key)
        replica.say_belief()
        self._returned(request, count, b"")
        question, answer = value_bytes(key), optional_bytes(value)
        replica.recorder.tell(records.Looked(now(), replica.life, replica.lineage, count, question, answer))
        return value

    def _stamp(self, text: str) -> tuple[int, str]:
        self.replica.requests += 1
        request = self.replica.requests
        return request, f"{self.replica.life}.{request}{' ' if text else ''}{text}"

    def _called(self, request: int, operation: bytes) -> None:
        self.replica.waiting += 1
        self.replica.recorder.tell(records.Called(now(), self.replica.life, request, operation))

    def _returned(self, request: int, position: int, result: bytes) -> None:
        replica = self.replica
        replica.waiting -= 1
        returned = records.Returned(now(), replica.life, request, replica.lineage, position, result)
        replica.recorder.tell(returned)

    def _refused(self, request: int, error: NotPrimary | ReplicaEnded) -> None:
        """Record a refusal; of a replica that has ended nothing is known for certain, and nothing is owed."""
        self.replica.waiting -= 1
        if isinstance(error, NotPrimary):
            life = self.replica.life
            self.replica.recorder.tell(records.Refused(now(), life, request, not error.is_uncertain))


# Commands, as they travel


def set_command(key: Value, value: Value) -> bytes:
    return bytes([SET]) + value_bytes(key) + value_bytes(value)


def compare_command(key: Value, expected: Value | None, wanted: Value | None) -> bytes:
    return bytes([COMPARE]) + value_bytes(key) + optional_bytes(expected) + optional_bytes(wanted)


def identity_of(command: bytes) -> tuple[int, int]:
    """Life and request, as the value that the command sets says."""
    fields = Reader(command, 1)
    fields.value()
    if command[0] == SET:
        value: Value | None = fields.value()
    else:
        assert command[0] == COMPARE, "recorded dictionaries are changed by set and compare_and_set alone"
        fields.optional()
        value = fields.optional()
    assert isinstance(value, str)
    life, _, request = value.partition(" ")[0].partition(".")
    return int(life), int(request)


def now() -> Instant:
    return Instant(time.monotonic_ns())
