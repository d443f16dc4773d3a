"""Traces for benchmarks: valid, as long and as many as wanted, made in columns.

`many_runs` repeats recorded simulations under new numbers. `long_run` is one history of a ring of four: everybody sends
in every round, everybody delivers, and now and then the ring forms anew. It is written row group by row group, so its
length is limited by the disk alone. `live_run` is the same history in the streams of live nodes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ordercast.model.configuration import ChangeReason, Configuration, ConfigurationKind
from ordercast.model.ids import (
    NO_CONFIGURATION,
    NOBODY,
    SECOND,
    SLOT_MAX,
    ConfigurationId,
    Incarnation,
    Instant,
    NodeId,
    Position,
    ProcessId,
    Seq,
    process_id_from,
)
from ordercast.model.promises import Promise, Promises
from ordercast.model.service import SERVED, Service
from ordercast.pipeline.verify.numbering import scrambled
from ordercast.pipeline.verify.rows import Ints
from ordercast.sim.options import SimOptions
from ordercast.sim.run import simulate
from ordercast.trace.arrow import table_of
from ordercast.trace.cluster import append_cluster_event
from ordercast.trace.live_file import FULL, MULTILINEAR, LiveInfo
from ordercast.trace.parquet import (
    ROW_GROUP_SIZE,
    RunInfo,
    parquet_options,
    read_info,
    run_path,
    run_schema,
    write_run,
)
from ordercast.trace.records import Ended, Event, Healed, Installed, Started
from ordercast.trace.to_rows import rows_from

BEGIN = 1_700_000_000_000_000_000  # wall-clock time of moment zero
LIVE_ROUNDS = 80  # in a batch of a live node
PROMISES = Promises("ring", frozenset(Promise), SERVED, 1 << 24)
# Calm and hostile, about a hundred thousand rows each.
BASES = (
    SimOptions(messages=15_000, fault_time_ns=4 * SECOND),
    SimOptions(messages=10_000, fault_time_ns=10 * SECOND, random_faults=6),
)


# Many runs


def base_runs(folder: Path) -> list[Path]:
    """Recorded once, then kept."""
    paths = []
    for seed, options in enumerate(BASES, 1):
        path = run_path(folder, seed)
        if not path.exists():
            result = simulate(options, seed, keep_events=True)
            assert result.is_valid, result.verdict
            write_run(folder, RunInfo(seed, seed), result.events)
        paths.append(path)
    return paths


def many_runs(folder: Path, bases: list[Path], rows: int) -> int:
    """Copies of the bases under new numbers, until there are about so many rows. Returns how many there are."""
    folder.mkdir(parents=True, exist_ok=True)
    counts = [pq.read_metadata(path).num_rows for path in bases]
    copies: list[tuple[int, Path]] = []
    total = 0
    while total < rows:
        number = len(copies) + 1
        copies.append((number, bases[number % len(bases)]))
        total += counts[number % len(bases)]
    with ProcessPoolExecutor(2) as pool:
        list(pool.map(partial(_copy, folder), copies, chunksize=8))
    return total


def _copy(folder: Path, copy: tuple[int, Path]) -> None:
    number, base = copy
    table = pq.read_table(base, partitioning=None)
    info = replace(read_info(base), run=number)
    runs = pa.array(np.full(len(table), number, np.int64))
    table = table.set_column(0, "run", runs).replace_schema_metadata(run_schema(info).metadata)
    pq.write_table(table, run_path(folder, number), row_group_size=ROW_GROUP_SIZE, **parquet_options())


# One long run


@dataclass(frozen=True, slots=True)
class Shape:
    members: int = 4
    batch: int = 50  # messages that each sends in a round
    rounds: int = 2_000  # of a ring, before the next one forms
    rings: int = 1

    @property
    def round_rows(self) -> int:
        """Of one process."""
        return self.batch * (1 + self.members)

    @property
    def ring_events(self) -> int:
        return 2 * self.members * (1 + self.rounds)

    @property
    def rows(self) -> int:
        return self.members * (2 + self.rings * (2 + self.rounds * self.round_rows)) + 2


def shape_of(rows: int) -> Shape:
    """About so many rows; a new ring about every two million."""
    one = Shape()
    round_rows = one.members * one.round_rows
    rings = max(1, round(rows / (one.rounds * round_rows)))
    return replace(one, rings=rings, rounds=max(1, round(rows / rings / round_rows)))


def long_run(path: Path, shape: Shape) -> int:
    """Writes it and returns how many rows it has."""
    path.parent.mkdir(parents=True, exist_ok=True)
    info = RunInfo(1, None, json.loads(json.dumps({"members": shape.members, "rings": shape.rings})))
    schema = run_schema(info)
    with pq.ParquetWriter(path, schema, **parquet_options()) as writer:
        waiting: list[pa.Table] = []
        for table in _tables(shape, schema):
            waiting.append(table)
            if sum(map(len, waiting)) >= ROW_GROUP_SIZE:
                writer.write_table(pa.concat_tables(waiting), row_group_size=ROW_GROUP_SIZE)
                waiting = []
        if waiting:
            writer.write_table(pa.concat_tables(waiting), row_group_size=ROW_GROUP_SIZE)
    return shape.rows


def live_run(folder: Path, shape: Shape) -> int:
    """Writes the same history as live nodes would, each its own stream, and returns how many rows it has."""
    folder.mkdir(parents=True, exist_ok=True)
    last = BEGIN + 1_000 * (2 * shape.members + shape.rings * shape.ring_events)
    for member in range(shape.members):
        info = LiveInfo(f"n{member}", _process(member), FULL, 1, BEGIN, digest=MULTILINEAR)
        options = pa.ipc.IpcWriteOptions(compression="zstd")
        with pa.ipc.new_stream(str(folder / f"live-n{member}-1-1.arrows"), info.schema(), options=options) as stream:
            events = 0
            for table in _of_member(shape, info.schema(), member):
                begins = np.diff(table["n"].to_numpy(), prepend=-1) != 0
                numbers = pa.array(events + np.cumsum(begins) - 1)
                events += int(begins.sum())
                table = table.set_column(table.schema.get_field_index("n"), "n", numbers)
                for first in range(0, len(table), LIVE_ROUNDS * shape.round_rows):
                    stream.write_table(_in_runs(table.slice(first, LIVE_ROUNDS * shape.round_rows)))
            end = rows_from((Ended(Instant(last + 3_000 - BEGIN)),), events).control
            stream.write_table(table_of({}, 0, end, info.schema(), 0))
    append_cluster_event(folder, "healed", at=last + 1_000)
    append_cluster_event(folder, "ended", at=last + 2_000)
    return shape.rows


def _in_runs(table: pa.Table) -> pa.Table:
    """Return the same with its messages in runs, as live nodes write them. Every fourth message has another service, so
    that they are short."""
    if table["counter"].null_count:  # views, which come by themselves
        return table
    is_first = np.ones(len(table), np.bool_)
    is_first[1:] = np.diff(table["counter"].to_numpy()) != 1
    for name in ("n", "sender_process", "service"):
        is_first[1:] |= np.diff(table[name].to_numpy()) != 0
    firsts = np.flatnonzero(is_first)
    counts = np.diff(np.append(firsts, len(table)))
    offsets = pa.array(np.append(firsts, len(table)).astype(np.int32))
    digests = pa.array((table["digest"].to_numpy() & 0xFFFF_FFFF).astype(np.uint32))
    runs = table.take(pa.array(firsts))
    is_sent = runs["number"].is_null().to_numpy()
    columns = {
        "digest": pa.nulls(len(runs), pa.int64()),
        "messages": pa.array(counts.astype(np.int32)),
        "each": pa.array(np.ones(len(runs), np.int32), mask=is_sent),
        "base": pa.array(np.zeros(len(runs), np.int32), mask=is_sent),
        "digests": pa.ListArray.from_arrays(offsets, digests),
        "sizes": pa.ListArray.from_arrays(offsets, table["size"].combine_chunks().cast(pa.uint32())),
    }
    for name, column in columns.items():
        index = runs.schema.get_field_index(name)
        runs = runs.set_column(index, runs.schema.field(index), column)
    return runs


def _process(member: int) -> ProcessId:
    return process_id_from(NodeId(member), Incarnation(1))


def _ring(number: int, member: int = 0) -> ConfigurationId:
    return ConfigurationId(4 + 4 * number, _process(member))


def _tables(shape: Shape, schema: pa.Schema) -> Iterator[pa.Table]:
    """By process; the events of the whole cluster first, since theirs is number 0."""
    last = 2 * shape.members + shape.rings * shape.ring_events
    everybody = tuple(_process(member) for member in range(shape.members))
    ends: list[tuple[int, int, Event]] = [
        (last, 0, Healed(Instant(last), everybody)),
        (last + 1, 1, Ended(Instant(last + 1))),
    ]
    yield _control(ends, schema)
    for member in range(shape.members):
        yield from _of_member(shape, schema, member)


def _control(events: list[tuple[int, int, Event]], schema: pa.Schema) -> pa.Table:
    """Of events with their number and that of their row."""
    cells = []
    for n, idx, event in events:
        process = event.process if isinstance(event, Started | Installed) else NOBODY
        cells += rows_from((event,), n, {process: idx}).control
    return table_of({}, 0, cells, schema, 1)


def _of_member(shape: Shape, schema: pa.Schema, member: int) -> Iterator[pa.Table]:
    process = _process(member)
    alone = ConfigurationId(1, process)
    view = Configuration(
        ConfigurationKind.REGULAR,
        alone,
        (process,),
        NO_CONFIGURATION,
        (process,),
        ChangeReason.STARTED,
        Position(alone, Seq(0), 0),
    )
    n = 2 * member
    start = Started(Instant(n), process, PROMISES)
    yield _control([(n, 0, start), (n + 1, 1, Installed(Instant(n), process, view))], schema)
    idx, base, old = 2, 2 * shape.members, view
    for number in range(shape.rings):
        transitional, regular = _change(shape, number, process, old)
        n = base + 2 * member
        changes = [Installed(Instant(n), process, view) for view in (transitional, regular)]
        yield _control([(n, idx, changes[0]), (n + 1, idx + 1, changes[1])], schema)
        idx, old = idx + 2, regular
        for first in range(0, shape.rounds, 500):
            rounds = np.arange(first, min(first + 500, shape.rounds), dtype=np.int64)
            yield _rounds(shape, schema, (member, number), rounds, (idx, base + 2 * shape.members))
        idx += shape.rounds * shape.round_rows
        base += shape.ring_events


def _change(shape: Shape, number: int, process: ProcessId, old: Configuration) -> tuple[Configuration, Configuration]:
    everybody = tuple(_process(member) for member in range(shape.members))
    along = (process,) if number == 0 else everybody
    sent = 0 if number == 0 else shape.rounds * shape.batch * shape.members
    ring = _ring(number + 1)
    through = ConfigurationId(ring.seq - 2, along[0])
    reason = ChangeReason.MERGE if number == 0 else ChangeReason.TOKEN_LOST
    ending = Position(old.id, Seq(sent), SLOT_MAX)
    transitional = Configuration(ConfigurationKind.TRANSITIONAL, through, along, old.id, along, reason, ending)
    regular = Configuration(
        ConfigurationKind.REGULAR, ring, everybody, through, along, reason, Position(ring, Seq(0), 0)
    )
    return transitional, regular


def _rounds(shape: Shape, schema: pa.Schema, place: tuple[int, int], rounds: Ints, begins: tuple[int, int]) -> pa.Table:
    """Each round: what this member sends, then everything that is delivered."""
    (member, number), (idx, base) = place, begins
    batch, members, width = shape.batch, shape.members, shape.round_rows
    count = len(rounds) * width
    turn = np.repeat(rounds, width)
    slot = np.tile(np.arange(width, dtype=np.int64), len(rounds))
    is_sent = slot < batch
    index = np.where(is_sent, slot, slot - batch)  # in the round
    sender = np.where(is_sent, member, index // batch)
    counter = (number * shape.rounds + turn) * batch + index % batch + 1
    n = base + turn * 2 * members + member + np.where(is_sent, 0, members)
    ring = _ring(number + 1)

    def delivered(value: Ints | int) -> pa.Array:
        numbers = np.broadcast_to(np.asarray(value, np.int64), count)
        return pa.array(numbers, mask=is_sent)

    processes = np.array([_process(each) for each in range(members)], np.int64)
    digest = (scrambled(counter << 8 | sender) >> np.uint64(1)).astype(np.int64)
    columns = {
        "run": np.full(count, 1, np.int64),
        "process": np.full(count, _process(member), np.int64),
        "idx": idx + int(rounds[0]) * width + np.arange(count, dtype=np.int64),
        "n": n,
        "t": n * 1_000,
        "kind": np.where(is_sent, 1, 2),
        "configuration_seq": delivered(ring.seq),
        "configuration_rep": delivered(ring.representative),
        "origin_seq": delivered(ring.seq),
        "origin_rep": delivered(ring.representative),
        "number": delivered(turn * batch * members + index + 1),
        "slot": delivered(0),
        "sender_process": processes[sender],
        "sender": np.zeros(count, np.int64),
        "counter": counter,
        "digest": digest,
        "service": np.where(counter % 4 == 0, int(Service.SAFE), int(Service.AGREED)),
        "size": 100 + counter % 200,
    }
    arrays = [
        pa.array(columns[field.name]).cast(field.type) if field.name in columns else pa.nulls(count, field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(arrays, schema=schema)
