"""Several sequences of events made into one history. Pure.

Each sequence keeps its order. Between them time decides, as far as it can be trusted: the clocks of two hosts differ,
so a delivery waits until the submission has been seen, if that is anywhere in the sequences. So does what is said of a
process until it has started. When all wait for one another, the history contradicts itself: the earliest goes first,
and the checkers will say so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from typing import Generic, Protocol, TypeVar

from ordercast.trace.client_records import GotConfirmation, GotMessage, Sent
from ordercast.trace.records import DeliveredBatch, Ended, Healed, MessageId, Saturated, Started, Submitted
from ordercast.trace.replica_records import Applied, Called

# A sender of a process, and how many of its messages were submitted: counters rise one by one. `START` stands in for a
# sender that submits once, when the process starts; `CALLS` for the calls of a replica's life.
Stream = tuple[int, int]
START, CALLS = -1, -2

EventT = TypeVar("EventT", bound="Timed")


class Timed(Protocol):
    @property
    def at(self) -> int: ...


def merged(sequences: Sequence[Iterable[EventT]], submitted: Mapping[Stream, int]) -> Iterator[EventT]:
    """`submitted` says how far each stream comes in all the sequences together."""
    merge = _Merge([iter(sequence) for sequence in sequences], submitted)
    return merge.events()


def streams_in(sequences: Iterable[Iterable[object]]) -> dict[Stream, int]:
    """How far each stream comes in sequences of clients or replicas."""
    found: dict[Stream, int] = {}
    for sequence in sequences:
        for event in sequence:
            for stream, counter in _gives(event):
                found[stream] = max(counter, found.get(stream, 0))
    return found


class _Merge(Generic[EventT]):
    def __init__(self, sequences: list[Iterator[EventT]], submitted: Mapping[Stream, int]) -> None:
        self._sequences = sequences
        self._submitted = submitted
        self._seen: dict[Stream, int] = {}
        self._heads: dict[int, EventT] = {}
        self._ready: list[tuple[int, int]] = []  # time and sequence
        self._waiting: dict[Stream, list[int]] = {}

    def events(self) -> Iterator[EventT]:
        for index in range(len(self._sequences)):
            self._advance(index)
        while self._heads:
            index = self._next()
            event = self._heads.pop(index)
            yield event
            for stream in self._see(event):
                for waiting in self._waiting.pop(stream, ()):
                    self._place(waiting)
            self._advance(index)

    def _advance(self, index: int) -> None:
        event = next(self._sequences[index], None)
        if event is not None:
            self._heads[index] = event
            self._place(index)

    def _place(self, index: int) -> None:
        """Among the ready, or among those who wait for a stream."""
        event = self._heads[index]
        stream = self._unseen(event)
        if stream is None:
            heappush(self._ready, (event.at, index))
        else:
            self._waiting.setdefault(stream, []).append(index)

    def _next(self) -> int:
        """The earliest that is ready. The end of the record lets those pass who wait and are earlier."""
        if not self._ready:
            return self._first_waiting()
        at, index = heappop(self._ready)
        if isinstance(self._heads[index], Ended) and any(head.at < at for head in self._heads.values()):
            end, index = index, self._next()
            heappush(self._ready, (at, end))
        return index

    def _first_waiting(self) -> int:
        index = min(self._heads, key=lambda index: (self._heads[index].at, index))
        for waiting in self._waiting.values():
            if index in waiting:
                waiting.remove(index)
        return index

    def _unseen(self, event: EventT) -> Stream | None:
        """The first stream that must come further before this event may happen."""
        for stream, counter in _needs(event):
            if self._seen.get(stream, 0) < counter <= self._submitted.get(stream, 0):
                return stream
        return None

    def _see(self, event: EventT) -> list[Stream]:
        given = dict(_gives(event))
        for stream, counter in given.items():
            self._seen[stream] = max(counter, self._seen.get(stream, 0))
        return list(given)


def _gives(event: object) -> Iterator[tuple[Stream, int]]:
    """Yield each stream that comes further with this event, and how far."""
    match event:
        case Started():
            yield (event.process, START), 1
        case Submitted():
            yield from (_place(submission.message) for submission in event.messages)
        case Sent():
            yield _place(event.message)
        case Called():
            yield (event.life, CALLS), event.request


def _needs(event: object) -> Iterator[tuple[Stream, int]]:
    """Yield each stream that must have come so far before this event."""
    match event:
        case DeliveredBatch():
            yield from (_place(delivered.message) for delivered in event.messages if delivered.message is not None)
        case Healed():
            yield from (((process, START), 1) for process in event.alive)
        case Saturated():
            yield from (((process, START), 1) for process in event.senders)
        case GotMessage() | GotConfirmation() if event.message is not None:
            yield _place(event.message)
        case Applied():
            yield (event.caller, CALLS), event.request


def _place(message: MessageId) -> tuple[Stream, int]:
    process, sender, counter = message
    return (process, sender), counter
