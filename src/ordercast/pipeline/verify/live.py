"""A folder of live traces, put together by columns: nothing is read as objects but what is no message.

Each process is read by itself: its rows get the wall clock, and the numbers of its events become times, in nanoseconds,
that rise strictly. So the processes need not be merged: what is asked between them (a time of saturation, what somebody
wanted when a message was sent) is asked of the clock, and that a delivery comes after its submission is how the history
of a live run is put together (`trace/merge.py`), unless the process's own order says otherwise. Views, starts and ends
are merged as ever, and so is what the reference checkers shall look at. Clients and replicas: `live_evidence.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ordercast.model.ids import NOBODY, ProcessId
from ordercast.pipeline.verify.facts import FOREVER
from ordercast.pipeline.verify.numbering import event_begins
from ordercast.pipeline.verify.rows import (
    CONTROL_ALL,
    DELIVERED,
    MESSAGE,
    NUMBERING,
    Control,
    Ints,
    control_rows,
    controls_from,
    rows_from,
)
from ordercast.trace.arrow import rows_of, schema_with, table_from
from ordercast.trace.cluster import ClusterEventKind, read_cluster_events
from ordercast.trace.columns import RowKind, signed, unsigned
from ordercast.trace.folder import LiveRun, assembled
from ordercast.trace.from_rows import events_from
from ordercast.trace.live_life import LiveLife, life_of, surveyed
from ordercast.trace.note_rows import NOTE_KINDS
from ordercast.trace.parquet import ROW_GROUP_SIZE
from ordercast.trace.records import Crashed, Ended, Event, Installed, Started
from ordercast.trace.to_rows import rows_from as rows_from_events

_SCHEMA = pa.schema([schema_with({}).field(name) for name in dict.fromkeys((*MESSAGE, *CONTROL_ALL))])
_PARQUET = {"compression": "lz4", "use_dictionary": ["kind", "sender_process", "service"], "write_statistics": False}


@dataclass(slots=True)
class LifeRows:
    """One process: what is known of it, its events that are no messages, and how far its rows come."""

    life: LiveLife
    controls: list[Control] = field(default_factory=list)
    path: str = ""  # where its rows are
    count: int = 0  # of rows
    events: int = 0  # notes among them, which have no rows
    deliveries: int = 0
    last_n: int = -1

    @property
    def is_there(self) -> bool:
        """Whether anything was recorded of it."""
        return bool(self.life.started_at or self.life.missing)


def ended_at(folder: Path) -> int:
    """Return the time after which nothing is looked at."""
    ends = (event.at for event in read_cluster_events(folder) if event.kind is ClusterEventKind.ENDED)
    return min(ends, default=FOREVER)


def read_life(paths: dict[int, Path], until: int) -> tuple[LifeRows, pa.Table] | None:
    """The rows of one process in memory. None when it came to nothing."""
    life = life_of(paths)
    if life is None:
        return None
    found = LifeRows(life)
    table = pa.concat_tables([_SCHEMA.empty_table(), *_tables(found, until)])
    return (found, table) if found.is_there else None


def write_life(scratch: str, until: int, paths: dict[int, Path]) -> LifeRows | None:
    """The same, on disk, so that others can read parts of it."""
    life = life_of(paths)
    if life is None:
        return None
    found = LifeRows(life, path=str(Path(scratch) / f"life-{int(life.process)}.parquet"))
    with pq.ParquetWriter(found.path, _SCHEMA, **_PARQUET) as writer:
        waiting: list[pa.Table] = []
        for table in _tables(found, until):
            waiting.append(table)
            if sum(map(len, waiting)) >= ROW_GROUP_SIZE:
                writer.write_table(pa.concat_tables(waiting), row_group_size=ROW_GROUP_SIZE)
                waiting = []
        if waiting:
            writer.write_table(pa.concat_tables(waiting), row_group_size=ROW_GROUP_SIZE)
    return found if found.is_there else None


def _tables(found: LifeRows, until: int) -> Iterator[pa.Table]:
    """The rows of a process in its order, up to the end; `found` is told what they hold."""
    for table, offset in _recorded(found.life):
        times = table["t"].to_numpy() + offset
        kinds = table["kind"].to_numpy()
        is_event = (times <= until) & (kinds != int(RowKind.ENDED))
        is_row = is_event & ~np.isin(kinds, NOTE_KINDS)
        found.events += len(np.unique(table["n"].to_numpy()[is_event]))
        if not is_row.any():
            continue
        columns = table.select(_SCHEMA.names).set_column(_SCHEMA.get_field_index("t"), "t", pa.array(times))
        yield _numbered(found, _in_order(columns if is_row.all() else columns.filter(pa.array(is_row))))


def _numbered(found: LifeRows, table: pa.Table) -> pa.Table:
    numbers = {"idx": found.count + np.arange(len(table)), "n": _times(table, found.last_n)}
    for name, column in numbers.items():
        table = table.set_column(_SCHEMA.get_field_index(name), name, pa.array(column.astype(np.int64)))
    found.count += len(table)
    found.last_n = int(numbers["n"][-1])
    found.deliveries += int((table["kind"].to_numpy() == DELIVERED).sum())
    found.controls += controls_from(control_rows(table).to_pylist())
    return table.replace_schema_metadata(None)


def _recorded(life: LiveLife) -> Iterator[tuple[pa.Table, int]]:
    for batch, offset in surveyed(life):
        yield pa.table(batch), offset
    if life.rescued:
        yield table_from(rows_from_events(life.rescued), schema_with({}), 0), 0


def _in_order(table: pa.Table) -> pa.Table:
    idx = table["idx"].to_numpy()
    return table if (np.diff(idx) > 0).all() else table.take(np.argsort(idx, kind="stable"))


def _times(table: pa.Table, last: int) -> Ints:
    """The times of events, each later than the one before it."""
    begins = event_begins(rows_from(table.select(list(NUMBERING))))
    times = table["t"].to_numpy()[begins]
    steps = np.arange(len(times))
    rising = np.maximum(np.maximum.accumulate(times - steps), last + 1) + steps
    numbers: Ints = rising[np.cumsum(begins) - 1]
    return numbers


# The history


@dataclass(slots=True)
class LiveHistory:
    """All processes of a folder, and how the history of some of their rows is put together."""

    run: LiveRun
    controls: list[Control]
    count: int  # of all events

    @property
    def daemons(self) -> list[Started | Installed]:
        return [control.event for control in self.controls if isinstance(control.event, Started | Installed)]

    @property
    def has_holes(self) -> bool:
        return any(life.missing is not None for life in self.run.lives)

    def events(self, table: pa.Table) -> Iterator[Event]:
        """The history of these rows, with everything that is no message."""
        found: dict[ProcessId, list[Event]] = {}
        for process in pc.unique(table["process"]).to_pylist():
            mine = table.filter(pc.equal(table["process"], process))
            ranks = np.unique(mine["n"].to_numpy(), return_inverse=True)[1]
            mine = mine.set_column(mine.schema.get_field_index("n"), "n", pa.array(ranks.astype(np.int64)))
            found[ProcessId(unsigned(process))] = events_from(rows_of(mine))
        return self.run.events(lambda life: found.get(life.process, []))


def live_history(folder: Path, lives: list[LifeRows]) -> LiveHistory:
    run = assembled(folder, [one.life for one in lives])
    by_process = {one.life.process: one for one in lives}
    numbers = {id(control.event): control for one in lives for control in one.controls}
    controls = []
    for event in run.events(lambda life: [control.event for control in by_process[life.process].controls]):
        known = numbers.get(id(event))
        controls.append(known or _control(event, by_process))
    others = len(controls) - len(numbers)
    return LiveHistory(run, controls, others + sum(one.events for one in lives))


def _control(event: Event, lives: dict[ProcessId, LifeRows]) -> Control:
    """What is no row of a process, with its place among the rows."""
    process = getattr(event, "process", NOBODY)
    if isinstance(event, Ended):
        return Control(signed(process), 0, FOREVER, event)
    n = lives[process].last_n + 1 if isinstance(event, Crashed) and process in lives else event.at
    return Control(signed(process), 0, n, event)
