"""A folder of live traces as one finished run, merged by columns: no message becomes an object on the way.

`merged_run` reads the streams of the daemons twice. First it learns when each event happened and which deliveries need
which submissions, which gives every event its number in one history (`ordering.py`); then the rows are written with
those numbers, process by process. What the survey of the folder says (how lives ended, what is missing, what
`cluster.jsonl` tells) are few events, and stay events. In memory are the numbers of events and submissions, and one row
group. Clients and replicas: `live_evidence.py`.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ordercast.model.ids import NOBODY, Instant, ProcessId, node_of
from ordercast.pipeline.verify.live_evidence import write_evidence
from ordercast.pipeline.verify.ordering import Needs, numbered, raised
from ordercast.pipeline.verify.rows import DELIVERED, SUBMITTED, Ints
from ordercast.trace.arrow import TraceError, table_from
from ordercast.trace.columns import RowKind, signed
from ordercast.trace.folder import LiveRun, read_live
from ordercast.trace.live_file import read_batches
from ordercast.trace.live_life import LiveLife
from ordercast.trace.parquet import ROW_GROUP_SIZE, RunInfo, parquet_options, run_path, run_schema
from ordercast.trace.private_files import FOLDER_MODE
from ordercast.trace.records import Ended, Event, Gap, Healed, Saturated, Submitted, Unrecorded
from ordercast.trace.to_rows import rows_from

_RUN = 1
_ENDED = int(RowKind.ENDED)
_LOOK = ["n", "t", "kind", "sender_process", "sender", "counter"]


@dataclass(slots=True)
class _Stretch:
    """Events of a sequence that lie together: some that are objects, or those of the files of a life."""

    process: ProcessId
    times: Ints
    events: list[Event] | None = None
    life: LiveLife | None = None


@dataclass(slots=True)
class _Sequence:
    """What must keep its order: the lives of a node, one after the other, or what is said of the cluster."""

    stretches: list[_Stretch] = field(default_factory=list)
    count: int = 0

    def add(self, stretch: _Stretch) -> int:
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


@contextmanager
def finished(traces: Sequence[str], spread: Callable[..., list[Any]]) -> Iterator[dict[str, str]]:
    """Make the folders of live traces among these into runs, a task for each, and give their files, by folder. They lie
    in the folder itself, which the executors see, and are removed at the end. A folder that cannot be read, or written
    to, is left as it is: whoever judges it says why."""
    folders = [trace for trace in traces if Path(trace).is_dir()]
    made = {folder: Path(folder) / f".merged-{os.getpid()}" for folder in folders}
    try:
        runs = spread(_finish, list(made.items()))
        yield {folder: run for folder, run in zip(made, runs, strict=True) if run is not None}
    finally:
        for out in made.values():
            shutil.rmtree(out, ignore_errors=True)


def _finish(task: tuple[str, Path]) -> str | None:
    folder, out = task
    try:
        out.mkdir(FOLDER_MODE)
        return str(merged_run(read_live(Path(folder)), out))
    except (TraceError, OSError, pa.ArrowException):
        return None


def merged_run(live: LiveRun, out: Path) -> Path:
    """Write the history, with what clients and replicas saw, as run 1 of the folder `out`."""
    merge = _Merge(live)
    evidence = write_evidence(live.folder, out, _RUN, live.info.options)
    return merge.write(out, RunInfo(_RUN, None, live.info.options, evidence=evidence))


class _Merge:
    def __init__(self, live: LiveRun) -> None:
        self._sequences: list[_Sequence] = []
        self._streams: dict[tuple[int, int], _Stream] = {}
        self._starts: dict[int, tuple[int, int]] = {}  # by process: sequence and event
        self._wants: list[tuple[int, tuple[int, int], Ints, Ints]] = []  # sequence, stream, events and counters
        self._over_at = next((event.at for event in live.cluster if isinstance(event, Ended)), None)
        said: list[Event] = [event for event in live.cluster if not isinstance(event, Ended)]
        for events in (live.strangers, said):
            self._sequences.append(_Sequence())
            for process, alike in groupby(events, _process_of):
                self._add_events(process, list(alike))
        for _, lives in groupby(sorted(live.lives, key=lambda life: life.process), lambda life: node_of(life.process)):
            self._sequences.append(_Sequence())
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
        sequence = len(self._sequences) - 1
        first = self._sequences[sequence].add(_Stretch(process, times, events))
        for place, event in enumerate(events, first):
            if isinstance(event, Submitted):
                for sent in event.messages:
                    _, sender, counter = sent.message
                    self._gives(sequence, process, sender, np.array([counter]), np.array([place]))

    def _add_life(self, life: LiveLife) -> None:
        sequence = len(self._sequences) - 1
        first = self._sequences[sequence].count
        times: list[Ints] = []
        for rows, offset in _batches(life, _LOOK):
            self._look(sequence, life.process, rows, first)
            times.append(_event_times(rows) + offset)
            first += len(times[-1])
        joined = np.concatenate(times) if times else np.zeros(0, np.int64)
        self._sequences[sequence].add(_Stretch(life.process, joined, life=life))

    def _look(self, sequence: int, process: ProcessId, rows: pa.Table, first: int) -> None:
        kinds, n = _ints(rows["kind"]), _ints(rows["n"])
        n = n - n.min() + first
        started = n[kinds == int(RowKind.STARTED)]
        if len(started):
            self._starts[process] = sequence, int(started[0])
        counters, senders = _ints(rows["counter"]), _ints(rows["sender"])
        processes = _ints(rows["sender_process"])
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

    def _numbers(self) -> tuple[list[Ints], int, bool, Instant]:
        """The number of each event in the history, -1 for one after its end; how many there are; whether the record is
        complete; and when it ends."""
        times = [
            np.concatenate([np.zeros(0, np.int64), *(stretch.times for stretch in sequence.stretches)])
            for sequence in self._sequences
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
            for sequence, each in zip(self._sequences, numbers, strict=True)
            for event, number in _objects(sequence, each)
        ]
        is_complete = not any(
            isinstance(event, Unrecorded) and event.gap is Gap.END and number >= 0 for event, number in objects
        )
        last = max((int(each[-1]) for each in kept if len(each)), default=0)
        return numbers, sum(map(len, kept)), is_complete, Instant(last if self._over_at is None else self._over_at)

    # Writing

    def write(self, out: Path, info: RunInfo) -> Path:
        numbers, count, is_complete, at = self._numbers()
        path, schema = run_path(out, info.run), run_schema(info)
        placed: dict[int, list[tuple[_Stretch, Ints]]] = {}  # by process, as its number is in files
        for sequence, each in zip(self._sequences, numbers, strict=True):
            first = 0
            for stretch in sequence.stretches:
                end = first + len(stretch.times)
                placed.setdefault(signed(stretch.process), []).append((stretch, each[first:end]))
                first = end
        end_event = _Stretch(NOBODY, np.array([at]), [Ended(at, is_complete)])
        placed.setdefault(0, []).append((end_event, np.array([count])))
        with pq.ParquetWriter(path, schema, **parquet_options()) as writer:
            groups = _RowGroups(writer)
            for process in sorted(placed):
                idx = 0
                inorder = sorted(placed[process], key=lambda pair: int(pair[1][0]) if len(pair[1]) else -1)
                for stretch, own in inorder:
                    for table in _tables(stretch, own, schema):
                        groups.add(_with_idx(table, idx))
                        idx += len(table)
            groups.flush()
        return path


def _process_of(event: Event) -> ProcessId:
    return NOBODY if isinstance(event, Healed | Saturated | Ended) else event.process


def _ints(column: pa.ChunkedArray) -> Ints:
    numbers: Ints = pc.fill_null(column, 0).to_numpy().astype(np.int64, copy=False)
    return numbers


def _event_times(rows: pa.Table) -> Ints:
    """One for each event of a batch, which holds whole events, numbered without a gap."""
    n, times = _ints(rows["n"]), _ints(rows["t"])
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


def _objects(sequence: _Sequence, numbers: Ints) -> Iterator[tuple[Event, int]]:
    first = 0
    for stretch in sequence.stretches:
        for place, event in enumerate(stretch.events or (), first):
            yield event, int(numbers[place])
        first += len(stretch.times)


def _tables(stretch: _Stretch, numbers: Ints, schema: pa.Schema) -> Iterator[pa.Table]:
    """The rows of a stretch, in order, with their numbers in the history."""
    if stretch.events is not None:
        rows = table_from(rows_from(stretch.events), schema, _RUN).sort_by([("n", "ascending"), ("idx", "ascending")])
        yield _placed(rows, numbers, 0)
        return
    assert stretch.life is not None
    first = 0
    for rows, offset in _batches(stretch.life, None):
        rows = rows.sort_by([("n", "ascending"), ("idx", "ascending")])
        local = _ints(rows["n"])
        rows = _set(rows, "n", local - local.min())
        count = int(local.max() - local.min()) + 1
        yield (
            _placed(rows, numbers[first : first + count], offset).replace_schema_metadata(schema.metadata).cast(schema)
        )
        first += count


def _batches(life: LiveLife, columns: list[str] | None) -> Iterator[tuple[pa.Table, int]]:
    """The batches of a life without the end of its writer's work, each with the offset of its wall clock."""
    for path, offset in life.files:
        for batch in read_batches(path):
            rows = pa.table(batch) if columns is None else pa.table(batch).select(columns)
            rows = rows.filter(pc.not_equal(rows["kind"], _ENDED))
            if len(rows):
                yield rows, offset


def _placed(rows: pa.Table, numbers: Ints, offset: int) -> pa.Table:
    """The rows that count, with the numbers of their events in the history; `n` counts the events from 0."""
    own = numbers[_ints(rows["n"])]
    rows = _set(_set(rows, "n", own), "t", _ints(rows["t"]) + offset)
    return _set(rows, "run", np.full(len(rows), _RUN)).filter(pa.array(own >= 0))


def _set(rows: pa.Table, name: str, values: Ints) -> pa.Table:
    return rows.set_column(rows.column_names.index(name), name, pa.array(values, pa.int64()))


def _with_idx(table: pa.Table, first: int) -> pa.Table:
    return _set(table, "idx", np.arange(first, first + len(table)))


class _RowGroups:
    """Gathers tables until they fill a row group."""

    def __init__(self, writer: pq.ParquetWriter) -> None:
        self._writer = writer
        self._tables: list[pa.Table] = []
        self._count = 0

    def add(self, table: pa.Table) -> None:
        self._tables.append(table)
        self._count += len(table)
        if self._count >= ROW_GROUP_SIZE:
            self.flush()

    def flush(self) -> None:
        if self._tables:
            self._writer.write_table(pa.concat_tables(self._tables), row_group_size=ROW_GROUP_SIZE)
        self._tables, self._count = [], 0
