"""Histories of replicas, written as a story: who started, called, applied, was confirmed.

story = Story("a", "b", "c")          # three replicas with one voice each
story.primary(1, "a", "b", "c")       # they are the primary component of view 1
call = story.call("a", put("k", "1"))
story.apply(call, "a", "b", "c")      # in the next place
story.confirm(call)
events = story.finished()
"""

from __future__ import annotations

from dataclasses import dataclass

from ordercast.checker.replicated import REPLICA_CHECKERS
from ordercast.checker.replicated.sequential import Caller
from ordercast.checker.replicated.sequential_owned import model_of
from ordercast.checker.verdict import Outcome
from ordercast.model.events import ViewId
from ordercast.model.ids import ConfigurationId, Instant, Position, ProcessId
from ordercast.model.lineage import Lineage, Term
from ordercast.model.promises import ReplicaPromise
from ordercast.trace.records import Ended, Healed
from ordercast.trace.replica_records import (
    Applied,
    Believed,
    Called,
    ComponentChanged,
    GotPicture,
    Looked,
    Refused,
    ReplicaEnded,
    ReplicaEvent,
    ReplicaKnown,
    ReplicaStarted,
    Returned,
    Stage,
    StreamBack,
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
    configuration = ConfigurationId(number, ProcessId(1))
    return ViewId(configuration, Position(configuration, 0, 0))


def term(number: int) -> Term:
    return Term(0, view(number))


def _text(value: str) -> bytes:
    return (len(value) << 1 | 1).to_bytes(4, "big") + value.encode()


def put(key: str, value: str) -> bytes:
    return b"\1" + _text(key) + _text(value)


def delete(key: str) -> bytes:
    return b"\2" + _text(key)


class Story:
    def __init__(self, *names: str, weighted: bool = True, structure: str = "dictionary") -> None:
        self.events: list[ReplicaEvent] = []
        self.now = 0
        self.lineage = Lineage(term(1))
        self.term = term(1)
        self.lives: dict[str, int] = {}
        self.copies: dict[str, Copy] = {}
        self.results: dict[int, bytes] = {}
        self.places: dict[tuple[int, int], int] = {}
        self._begun: set[str] = set()  # who has a state
        self._cut: set[str] = set()  # who gets nothing of the stream
        self._weights = tuple((name, 1) for name in names) if weighted else ()
        self._founders = names
        self._requests = 0
        self._structure = structure
        self._model = model_of(structure)
        for name in names:
            self.start(name)

    def _at(self) -> Instant:
        self.now += 1
        return Instant(self.now)

    def start(self, name: str) -> None:
        self.lives[name] = len([event for event in self.events if isinstance(event, ReplicaStarted)]) + 1
        self.copies[name] = Copy()
        self._begun.discard(name)
        started = ReplicaStarted(self._at(), self.lives[name], name, self._weights, self._founders, self._structure)
        self.events.append(started)

    def end(self, name: str) -> None:
        self.events.append(ReplicaEnded(self._at(), self.lives.pop(name)))

    def cut(self, name: str) -> None:
        self.events.append(StreamCut(self._at(), self.lives[name]))
        self._cut.add(name)

    def believe(self, name: str, *, is_current: bool = False, holds: bool = False) -> None:
        self.events.append(Believed(self._at(), self.lives[name], is_current, holds))

    def forget(self, name: str) -> None:
        """It says from now on that it has no state."""
        self._begun.discard(name)

    def primary(self, number: int, *names: str) -> None:
        """A view of these, which is a primary component by their decision."""
        self.view(number, *names)
        self.decide(number, *names, members=names)

    def view(self, number: int, *names: str) -> None:
        for name in names:
            if name in self._cut:
                self._cut.discard(name)
                self.events.append(StreamBack(self._at(), self.lives[name]))
            self._change(name, Stage.VIEW, number, (), names, is_primary=False, elects=False)

    def decide(self, number: int, *names: str, members: tuple[str, ...], is_attempt: bool = False) -> None:
        self.term = term(number)
        for name in names:
            self._change(name, Stage.DECISION, number, members, members, is_primary=not is_attempt, elects=True)

    def _change(
        self,
        name: str,
        stage: Stage,
        number: int,
        holders: tuple[str, ...],
        members: tuple[str, ...],
        *,
        is_primary: bool,
        elects: bool,
    ) -> None:
        life, count = self.lives[name], self.copies[name].count
        lineage = self.lineage if elects or name in self._begun else None
        self._begun |= {name} if elects else set()
        self.events.append(
            ComponentChanged(
                self._at(),
                life,
                stage,
                view(number),
                is_primary,
                elects,
                elects,
                elects,
                holders,
                members,
                lineage,
                self.term if lineage else None,
                count,
                "as the story goes",
            )
        )

    def look(self, name: str, question: bytes, answer: bytes) -> None:
        place = self.copies[name].count
        self.events.append(Looked(self._at(), self.lives[name], self.lineage, place, question, answer))

    def call(self, name: str, operation: bytes) -> Call:
        self._requests += 1
        call = Call(name, self.lives[name], self._requests, operation)
        self.events.append(Called(self._at(), call.life, call.request, operation))
        return call

    def apply(self, call: Call, *names: str) -> None:
        for name in names:
            copy = self.copies[name]
            copy.count += 1
            copy.chain = hash((copy.chain, copy.count, call.life, call.request)) & ((1 << 64) - 1)
            if copy.count not in self.results:
                self.results[copy.count] = self._model.result(call.operation, Caller(call.name, call.life), copy.count)
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
        self._begun.add(name)
        self.events.append(GotPicture(self._at(), self.lives[name], self.lineage, copy.count, copy.chain))

    def finished(self, *primary: str, waiting: int = 0, pictures: int = 0, ghosts: int = 0) -> list[ReplicaEvent]:
        self.events.append(Healed(self._at(), ()))
        for name, life in self.lives.items():
            copy, is_in = self.copies[name], name in primary
            known = ReplicaKnown(self._at(), life, is_in, is_in, copy.count, copy.chain, waiting, pictures, ghosts)
            self.events.append(known)
        return [*self.events, Ended(self._at())]


def outcome(promise: ReplicaPromise, events: list[ReplicaEvent]) -> Outcome:
    checker = REPLICA_CHECKERS[promise]()
    for event in events:
        checker.observe(event)
    return checker.verdict().outcome
