"""Histories of replicas, written as a story: who started, called, applied, was confirmed.

story = Story("a", "b", "c")          # three replicas with one voice each
story.primary(1, "a", "b", "c")       # they are the primary component of view 1
put = story.call("a", b"put k 1")
story.apply(put, "a", "b", "c")       # in the next place
story.confirm(put)
events = story.finished()
"""

from __future__ import annotations

from dataclasses import dataclass

from ordercast.checker.replicated import REPLICA_CHECKERS
from ordercast.checker.replicated.sequential import SequentialDictionary
from ordercast.checker.verdict import Outcome
from ordercast.model.events import ViewId
from ordercast.model.ids import Instant, ProcessId, RingId, Seq
from ordercast.model.lineage import Lineage
from ordercast.model.promises import ReplicaPromise
from ordercast.trace.records import Ended, Healed
from ordercast.trace.replica_records import (
    Applied,
    Called,
    ComponentChanged,
    GotPicture,
    Refused,
    ReplicaEnded,
    ReplicaEvent,
    ReplicaKnown,
    ReplicaStarted,
    Returned,
    StreamCut,
)


@dataclass(frozen=True)
class Call:
    name: str
    life: int
    request: int
    operation: bytes


@dataclass
class Copy:
    count: int = 0
    chain: int = 0


def view(number: int) -> ViewId:
    return ViewId(RingId(number, ProcessId(1)), Seq(0), 0)


class Story:
    def __init__(self, *names: str, weighted: bool = True) -> None:
        self.events: list[ReplicaEvent] = []
        self.now = 0
        self.lineage = Lineage(view(1))
        self.term = view(1)
        self.lives: dict[str, int] = {}
        self.copies: dict[str, Copy] = {}
        self.results: dict[int, bytes] = {}
        self.places: dict[tuple[int, int], int] = {}
        self._weights = tuple((name, 1) for name in names) if weighted else ()
        self._founders = names
        self._requests = 0
        self._dictionary = SequentialDictionary()
        for name in names:
            self.start(name)

    def _at(self) -> Instant:
        self.now += 1
        return Instant(self.now)

    def start(self, name: str) -> None:
        self.lives[name] = len([event for event in self.events if isinstance(event, ReplicaStarted)]) + 1
        self.copies[name] = Copy()
        self.events.append(ReplicaStarted(self._at(), self.lives[name], name, self._weights, self._founders))

    def end(self, name: str) -> None:
        self.events.append(ReplicaEnded(self._at(), self.lives.pop(name)))

    def cut(self, name: str) -> None:
        self.events.append(StreamCut(self._at(), self.lives[name]))

    def primary(self, number: int, *names: str) -> None:
        self.term = view(number)
        for name in names:
            life, count = self.lives[name], self.copies[name].count
            self.events.append(
                ComponentChanged(
                    self._at(), life, True, True, True, names, names, self.lineage, self.term, count, "a quorum"
                )
            )

    def call(self, name: str, operation: bytes) -> Call:
        self._requests += 1
        call = Call(name, self.lives[name], self._requests, operation)
        self.events.append(Called(self._at(), call.life, call.request, operation))
        return call

    def apply(self, call: Call, *names: str) -> None:
        for name in names:
            copy = self.copies[name]
            copy.count += 1
            copy.chain = hash((copy.chain, copy.count, call.life, call.request))
            if copy.count not in self.results:
                self.results[copy.count] = self._dictionary.result(call.operation)
            self.places[call.life, call.request] = copy.count
            result = self.results[copy.count]
            self.events.append(
                Applied(
                    self._at(),
                    self.lives[name],
                    self.lineage,
                    self.term,
                    copy.count,
                    call.life,
                    call.request,
                    call.operation,
                    result,
                    copy.chain,
                )
            )

    def confirm(self, call: Call, result: bytes | None = None, place: int | None = None) -> None:
        position = self.places.get((call.life, call.request), 1) if place is None else place
        given = self.results.get(position, b"") if result is None else result
        self.events.append(Returned(self._at(), call.life, call.request, self.lineage, position, given))

    def refuse(self, call: Call, *, is_certain: bool = True) -> None:
        self.events.append(Refused(self._at(), call.life, call.request, is_certain))

    def load(self, name: str, donor: str, chain: int | None = None) -> None:
        other = self.copies[donor]
        self.copies[name] = Copy(other.count, other.chain if chain is None else chain)
        copy = self.copies[name]
        self.events.append(GotPicture(self._at(), self.lives[name], self.lineage, copy.count, copy.chain))

    def finished(self, *primary: str, waiting: int = 0, pictures: int = 0) -> list[ReplicaEvent]:
        self.events.append(Healed(self._at(), ()))
        for name, life in self.lives.items():
            copy, is_in = self.copies[name], name in primary
            self.events.append(ReplicaKnown(self._at(), life, is_in, is_in, copy.count, copy.chain, waiting, pictures))
        return [*self.events, Ended(self._at())]


def outcome(promise: ReplicaPromise, events: list[ReplicaEvent]) -> Outcome:
    checker = REPLICA_CHECKERS[promise]()
    for event in events:
        checker.observe(event)
    return checker.verdict().outcome
