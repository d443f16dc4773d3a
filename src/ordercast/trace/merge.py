"""Several sequences of events made into one history. Pure.

Each sequence keeps its order. Between them time decides, as far as it can be trusted: the clocks of two hosts differ,
so a delivery waits until the submission has been seen, if that is anywhere in the sequences. So does what is said of a
process until it has started. When all wait for one another, the history contradicts itself: the earliest goes first,
and the checkers will say so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush

from ordercast.model.ids import ProcessId
from ordercast.trace.records import DeliveredBatch, Ended, Event, Healed, Saturated, Started, Submitted

# A sender of a process, and how many of its messages were submitted: counters rise one by one. `START` stands in for a
# sender that submits once, when the process starts.
Stream = tuple[ProcessId, int]
START = -1


def merged(sequences: Sequence[Iterable[Event]], submitted: Mapping[Stream, int]) -> Iterator[Event]:
    """`submitted` says how far each stream comes in all the sequences together."""
    merge = _Merge([iter(sequence) for sequence in sequences], submitted)
    return merge.events()


class _Merge:
    def __init__(self, sequences: list[Iterator[Event]], submitted: Mapping[Stream, int]) -> None:
        self._sequences = sequences
        self._submitted = submitted
        self._seen: dict[Stream, int] = {}
        self._heads: dict[int, Event] = {}
        self._ready: list[tuple[int, int]] = []  # time and sequence
        self._waiting: dict[Stream, list[int]] = {}

    def events(self) -> Iterator[Event]:
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

    def _unseen(self, event: Event) -> Stream | None:
        """The first stream that must come further before this event may happen."""
        for stream, counter in _needs(event):
            if self._seen.get(stream, 0) < counter <= self._submitted.get(stream, 0):
                return stream
        return None

    def _see(self, event: Event) -> list[Stream]:
        if isinstance(event, Started):
            self._seen[event.process, START] = 1
            return [(event.process, START)]
        if not isinstance(event, Submitted):
            return []
        for submission in event.messages:
            process, sender, counter = submission.message
            self._seen[process, sender] = max(counter, self._seen.get((process, sender), 0))
        return list({submission.message[:2]: None for submission in event.messages})


def _needs(event: Event) -> Iterator[tuple[Stream, int]]:
    if isinstance(event, DeliveredBatch):
        for delivered in event.messages:
            if delivered.message is not None:
                process, sender, counter = delivered.message
                yield (process, sender), counter
    elif isinstance(event, Healed):
        for process in event.alive:
            yield (process, START), 1
    elif isinstance(event, Saturated):
        for process in event.senders:
            yield (process, START), 1
