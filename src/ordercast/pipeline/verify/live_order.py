"""The order of a live run, learnt from the columns of its streams: which number each event has in one history.

Lives of a node follow one another in a line, which keeps its order; so does what is said of the cluster. Deliveries
need submissions: which ones is found by the counters of senders. Only the times of events are kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ordercast.model.ids import NOBODY, Instant, ProcessId, node_of
from ordercast.pipeline.verify.ordering import Needs, numbered, raised
from ordercast.pipeline.verify.rows import DELIVERED, SUBMITTED, Ints
from ordercast.trace.columns import RowKind, signed
from ordercast.trace.folder import LiveRun
from ordercast.trace.live_file import read_batches
from ordercast.trace.live_life import LiveLife
from ordercast.trace.records import Ended, Event, Gap, Healed, Saturated, Submitted, Unrecorded

_ENDED = int(RowKind.ENDED)
_LOOK = ["n", "t", "kind", "sender_process", "sender", "counter"]


@dataclass(slots=True)
class Stretch:
    """Events of a sequence that lie together: some that are objects, or those of the files of a life."""

    process: ProcessId
    times: Ints
    events: list[Event] | None = None
    life: LiveLife | None = None


@dataclass(slots=True)
class Line:
    """What must keep its order: the lives of a node, one after the other, or what is said of the cluster."""

    stretches: list[Stretch] = field(default_factory=list)
    count: int = 0

    def add(self, stretch: Stretch) -> int:
        """Return the place of its first event."""
        self.stretches.append(stretch)
        self.count += len(stretch.times)
        return self.count - len(stretch.times)


@dataclass(slots=True)
class _Stream:
    """The submissions of one client of a process: which event of which sequence had which counter."""

    sequence: int
    counters: list[Ints] = field(default_factory=list)
    events: list[Ints] = field(default_factory=list)


class LiveOrder:
    def __init__(self, live: LiveRun) -> None:
        self.lines: list[Line] = []
        self._streams: dict[tuple[int, int], _Stream] = {}
        self._starts: dict[int, tuple[int, int]] = {}  # by process: sequence and event
        self._wants: list[tuple[int, tuple[int, int], Ints, Ints]] = []  # sequence, stream, events and counters
        self._over_at = next((event.at for event in live.cluster if isinstance(event, Ended)), None)
        said: list[Event] = [event for event in live.cluster if not isinstance(event, Ended)]
        for events in (live.strangers, said):
            self.lines.append(Line())
            for process, alike in groupby(events, _process_of):
                self._add_events(process, list(alike))
        for _, lives in groupby(sorted(live.lives, key=lambda life: life.process), lambda life: node_of(life.process)):
            self.lines.append(Line())
            for life in lives:
                self._add_events(life.process, live.beginning(life))
                self._add_life(life)
                self._add_events(life.process, list(life.rescued))
                self._add_events(life.process, live.ends[life.process])
        self._needs_of_cluster(said)

    # Learning

    def _add_events(self, process: ProcessId, events: list[Event]) -> None:
        if not events:
            return
        times = np.array([event.at for event in events], np.int64)
        sequence = len(self.lines) - 1
        first = self.lines[sequence].add(Stretch(process, times, events))
        for place, event in enumerate(events, first):
            if isinstance(event, Submitted):
                for sent in event.messages:
                    _, sender, counter = sent.message
                    self._gives(sequence, process, sender, np.array([counter]), np.array([place]))

    def _add_life(self, life: LiveLife) -> None:
        sequence = len(self.lines) - 1
        first = self.lines[sequence].count
        times: list[Ints] = []
        for rows, offset in batches_of(life, _LOOK):
            self._look(sequence, life.process, rows, first)
            times.append(_event_times(rows) + offset)
            first += len(times[-1])
        joined = np.concatenate(times) if times else np.zeros(0, np.int64)
        self.lines[sequence].add(Stretch(life.process, joined, life=life))

    def _look(self, sequence: int, process: ProcessId, rows: pa.Table, first: int) -> None:
        kinds, n = ints(rows["kind"]), ints(rows["n"])
        n = n - n.min() + first
        started = n[kinds == int(RowKind.STARTED)]
        if len(started):
            self._starts[process] = sequence, int(started[0])
        counters, senders = ints(rows["counter"]), ints(rows["sender"])
        processes = ints(rows["sender_process"])
        for kind in (SUBMITTED, DELIVERED):
            chosen = (kinds == kind) & (counters != 0)
            keys = np.stack([processes[chosen], senders[chosen]], 1)
            for (whose, sender), places in _grouped(keys):
                events, counts = n[chosen][places], counters[chosen][places]
                if kind == SUBMITTED:
                    self._gives(sequence, ProcessId(int(whose)), int(sender), counts, events)
                else:
                    self._wants.append((sequence, (int(whose), int(sender)), *_last_of_each(events, counts)))

    def _gives(self, sequence: int, process: ProcessId, sender: int, counters: Ints, events: Ints) -> None:
        stream = self._streams.setdefault((signed(process), sender), _Stream(sequence))
        stream.counters.append(counters)
        stream.events.append(events)

    def _needs_of_cluster(self, said: list[Event]) -> None:
        """What is said of processes comes after they have started."""
        for place, event in enumerate(said):
            named = event.alive if isinstance(event, Healed) else event.senders if isinstance(event, Saturated) else ()
            for process in named:
                if process in self._starts:
                    key = (signed(process), -1)
                    sequence, start = self._starts[process]
                    self._streams.setdefault(key, _Stream(sequence, [np.array([1])], [np.array([start])]))
                    self._wants.append((1, key, np.array([place]), np.array([1])))

    def _needs(self) -> list[Needs]:
        found = []
        streams = {
            key: (stream.sequence, np.concatenate(stream.counters), np.concatenate(stream.events))
            for key, stream in self._streams.items()
        }
        for sequence, key, events, counters in self._wants:
            if key in streams:
                giver, known, places = streams[key]
                at = np.minimum(np.searchsorted(known, counters), len(known) - 1)
                is_there = known[at] == counters  # what was submitted after its trace stops gives nothing to wait for
                found.append(Needs(sequence, events[is_there], giver, places[at[is_there]]))
        return found

    def numbers(self) -> tuple[list[Ints], int, bool, Instant]:
        """The number of each event in the history, -1 for one after its end; how many there are; whether the record is
        complete; and when it ends."""
        times = [
            np.concatenate([np.zeros(0, np.int64), *(stretch.times for stretch in sequence.stretches)])
            for sequence in self.lines
        ]
        before = [np.ones(len(each), np.bool_) if self._over_at is None else each <= self._over_at for each in times]
        before = [np.logical_and.accumulate(each) if len(each) else each for each in before]
        kept = [each[chosen] for each, chosen in zip(raised(times, self._needs()), before, strict=True)]
        numbers = []
        for chosen, places in zip(before, numbered(kept), strict=True):
            each = np.full(len(chosen), -1, np.int64)
            each[chosen] = places
            numbers.append(each)
        objects = [
            (event, number)
            for sequence, each in zip(self.lines, numbers, strict=True)
            for event, number in _objects(sequence, each)
        ]
        is_complete = not any(
            isinstance(event, Unrecorded) and event.gap is Gap.END and number >= 0 for event, number in objects
        )
        last = max((int(each[-1]) for each in kept if len(each)), default=0)
        return numbers, sum(map(len, kept)), is_complete, Instant(last if self._over_at is None else self._over_at)


def _process_of(event: Event) -> ProcessId:
    return NOBODY if isinstance(event, Healed | Saturated | Ended) else event.process


def ints(column: pa.ChunkedArray) -> Ints:
    numbers: Ints = pc.fill_null(column, 0).to_numpy().astype(np.int64, copy=False)
    return numbers


def _event_times(rows: pa.Table) -> Ints:
    """One for each event of a batch, which holds whole events, numbered without a gap."""
    n, times = ints(rows["n"]), ints(rows["t"])
    if not len(n):
        return np.zeros(0, np.int64)
    result = np.empty(int(n.max() - n.min()) + 1, np.int64)
    result[n - n.min()] = times
    return result


def _grouped(keys: np.ndarray[tuple[int, int], np.dtype[np.int64]]) -> Iterator[tuple[Ints, Ints]]:
    """Each row of keys, with the places where it is, in order."""
    if not len(keys):
        return
    order = np.lexsort((keys[:, 1], keys[:, 0]))
    ordered = keys[order]
    starts = np.flatnonzero(np.concatenate([[True], (np.diff(ordered, axis=0) != 0).any(1)]))
    for start, end in zip(starts, [*starts[1:], len(order)], strict=True):
        yield ordered[start], np.sort(order[start:end])


def _last_of_each(events: Ints, counters: Ints) -> tuple[Ints, Ints]:
    """Each event once, with the highest of its counters."""
    order = np.lexsort((counters, events))
    events, counters = events[order], counters[order]
    is_last = np.concatenate([np.diff(events) != 0, [True]])
    return events[is_last], counters[is_last]


def _objects(sequence: Line, numbers: Ints) -> Iterator[tuple[Event, int]]:
    first = 0
    for stretch in sequence.stretches:
        for place, event in enumerate(stretch.events or (), first):
            yield event, int(numbers[place])
        first += len(stretch.times)


def batches_of(life: LiveLife, columns: list[str] | None) -> Iterator[tuple[pa.Table, int]]:
    """The batches of a life without the end of its writer's work, each with the offset of its wall clock."""
    for path, offset in life.files:
        for batch in read_batches(path):
            rows = pa.table(batch) if columns is None else pa.table(batch).select(columns)
            is_event = pc.not_equal(rows["kind"], _ENDED)
            rows = rows if pc.all(is_event).as_py() else rows.filter(is_event)
            if len(rows):
                yield rows, offset
