"""What the programs of a live run recorded of clients or replicas, put together into one history.

Each program keeps its order. Programs of one host have one clock, which decides between them; between hosts a message
is got after it was sent, and a command applied after it was called for, whatever their clocks say. `cluster.jsonl` says
when the network was whole (`healed`), when all was calm (`calm`), and when the run was over (`settled`, else `ended`):
what comes later is not judged, but for last words. Whoever was killed has ended where its record does. What is missing
is said, and then nothing can be judged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from ordercast.model.ids import NOBODY, Instant, ProcessId
from ordercast.trace.arrow import TraceError, evidence_events, evidence_table, reason_of, schema_with
from ordercast.trace.client_records import Calm, ClientId, Disconnected, End, KnownGroups
from ordercast.trace.cluster import ClusterEvent, ClusterEventKind, read_cluster_events
from ordercast.trace.columns import RowKind, unsigned
from ordercast.trace.event_rows import EventT, EventTable
from ordercast.trace.live_file import CONTROL, LiveInfo, file_name_from, read_batches, read_info, stem_of
from ordercast.trace.merge import merged, streams_in
from ordercast.trace.records import Ended, Gap, Healed, Unrecorded
from ordercast.trace.replica_records import ReplicaEnded, ReplicaKnown
from ordercast.trace.tail import read_tail, read_tail_info

T = TypeVar("T")
FOREVER = (1 << 63) - 1
_LAST_WORDS = (KnownGroups, ReplicaKnown)
_at = attrgetter("at")


READS_MAX = 100  # of a folder in which programs record


@dataclass(slots=True)
class Program:
    """What one program recorded in one table."""

    info: LiveInfo
    paths: list[Path] = field(default_factory=list)  # of its stream, in order
    tails: list[Path] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Recorded:
    """The rows of programs on one host, in their order, with times of the wall clock; and what is not there."""

    rows: pa.Table
    missing: list[str]


def programs_in(folder: Path, table: EventTable[EventT]) -> list[Program]:
    """The programs that recorded such evidence, without their events. TraceError names the file that cannot be read."""
    found: dict[str, Program] = {}
    for path in sorted(folder.rglob(f"{table.name}-*.tail")):
        if (info := _sound(path, partial(read_tail_info, path))) is not None:
            found.setdefault(stem_of(info), Program(info)).tails.append(path)
    named = [(name, path) for path in folder.rglob(f"{table.name}-*.arrows") if (name := file_name_from(path))]
    for name, path in sorted(named):
        nothing_said = LiveInfo(name.name, ProcessId(name.incarnation), CONTROL, name.number, 0, name.table)
        info = read_info(path) or nothing_said
        found.setdefault(stem_of(info), Program(info)).paths.append(path)
    return list(found.values())


def recorded_in(folder: Path, table: EventTable[EventT]) -> list[Recorded]:
    """Return what was recorded, by host, as columns. A tail of a program that still runs may be removed meanwhile: what
    it holds is in the stream by then, so the folder is read again."""
    for _ in range(READS_MAX):
        with suppress(_Moved):
            return _recorded_in(folder, table)
    raise TraceError(f"{folder} changes faster than it can be read: end the programs that record there")


def _recorded_in(folder: Path, table: EventTable[EventT]) -> list[Recorded]:
    clocks: dict[str, list[Program]] = {}
    for number, program in enumerate(programs_in(folder, table)):
        clocks.setdefault(program.info.clock or f"of {number}", []).append(program)
    found = []
    for programs in clocks.values():
        offset = programs[0].info.wall_offset_ns
        parts = [
            _sound((*program.paths, *program.tails)[0], partial(_read, program, table, offset)) for program in programs
        ]
        rows = pa.concat_tables(part.rows for part in parts).sort_by([("t", "ascending")])
        found.append(Recorded(rows, [why for part in parts for why in part.missing]))
    return found


def history_in(folder: Path, table: EventTable[EventT]) -> list[EventT]:
    """The events of all programs in one order; none when nobody recorded any."""
    hosts = recorded_in(folder, table)
    if not hosts:
        return []
    said = read_cluster_events(folder)
    over_at = over_at_of(said)
    sequences: list[list[Any]] = [
        list(_sound(folder, partial(evidence_events, _numbered(host.rows), table)).values()) for host in hosts
    ]
    sequences = [sorted(events, key=_at) for events in (*sequences, cluster_events(said))]
    inorder = merged(sequences, streams_in(sequences))
    history: list[Any] = [event for event in inorder if event.at <= over_at or isinstance(event, _LAST_WORDS)]
    last = history[-1].at if history else Instant(0)
    gaps = gaps_of(hosts)
    return [*gaps, *history, Ended(last, complete=over_at < FOREVER)]


def gaps_of(hosts: Iterable[Recorded]) -> list[Unrecorded]:
    missing = [why for host in hosts for why in host.missing]
    return [Unrecorded(Instant(0), NOBODY, Gap.EVENTS, why) for why in missing]


def _numbered(rows: pa.Table) -> pa.Table:
    return rows.set_column(rows.column_names.index("n"), "n", pa.array(range(len(rows)), pa.int64()))


def _read(program: Program, table: EventTable[EventT], offset: int) -> Recorded:
    who, schema = program.info.name, schema_with({}, table.columns)
    batches = [batch for path in program.paths for batch in read_batches(path)]
    rows = pa.Table.from_batches(batches).replace_schema_metadata(None) if batches else None
    count = 0 if rows is None else pc.max(rows["n"]).as_py() + 1
    tail = {n: event for path in program.tails for n, event in _sound(path, partial(_tail_events, path, table))}
    later = [tail[n] for n in range(count, count + len(tail)) if n in tail]
    parts = [*([] if rows is None else [rows]), evidence_table(later, table, schema, 0, count)]
    rows = pa.concat_tables(part.replace_schema_metadata(None).cast(schema) for part in parts)
    rows = rows.set_column(rows.column_names.index("t"), "t", pc.add(rows["t"], pa.scalar(offset, pa.int64())))
    last = rows.filter(pc.equal(rows["kind"], int(RowKind.ENDED)))["complete"].to_pylist()
    missing = []
    if pc.count_distinct(rows["n"]).as_py() != len(rows) or len(rows) != count + len(later):
        missing.append(f"the record of {who} has a hole: some of its {table.name} saw more than is there")
    elif last == [False]:
        missing.append(f"the record of {who} was given up by its writer, whose disk did not keep up")
    elif not last and not program.tails:
        missing.append(f"the record of {who} has no end: is it still running, or was it killed?")
    rows = rows.filter(pc.not_equal(rows["kind"], int(RowKind.ENDED))).sort_by([("n", "ascending")])
    if not last:
        ends = _ends_of(rows)
        rows = pa.concat_tables([rows, evidence_table(ends, table, schema, 0, len(rows))])
    return Recorded(rows, missing)


def _tail_events(path: Path, table: EventTable[EventT]) -> list[tuple[int, EventT]]:
    return list(read_tail(path, table))


class _Moved(Exception):
    """What a tail held is in the stream by now."""


def _sound(path: Path, read: Callable[[], T]) -> T:
    try:
        return read()
    except FileNotFoundError:
        raise _Moved from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, pa.ArrowException) as error:
        raise TraceError(
            f"{path} is not a sound trace ({reason_of(error)}): remove it, then it counts as missing"
        ) from error


def _ends_of(rows: pa.Table) -> list[Any]:
    """The ends that a killed program could not record."""
    at = Instant(pc.max(rows["t"]).as_py() or 0)
    if "life" in rows.column_names:
        lives = _left(rows, RowKind.REPLICA_STARTED, RowKind.REPLICA_ENDED, ["life"])
        return [ReplicaEnded(at, unsigned(life)) for (life,) in lives]
    clients = _left(rows, RowKind.CONNECTED, RowKind.DISCONNECTED, ["process", "session"])
    return [
        Disconnected(at, ClientId(ProcessId(unsigned(process)), session), End.CRASHED) for process, session in clients
    ]


def _left(rows: pa.Table, begins: RowKind, ends: RowKind, key: list[str]) -> list[tuple[int, ...]]:
    """Return the keys of those who have begun, and not ended."""
    found: dict[tuple[int, ...], None] = {}
    chosen = rows.filter(pc.is_in(rows["kind"], pa.array([int(begins), int(ends)], pa.int8())))
    for cells in chosen.select(["kind", *key]).to_pylist():
        whose = tuple(cells[name] for name in key)
        if cells["kind"] == begins:
            found[whose] = None
        else:
            found.pop(whose, None)
    return list(found)


def over_at_of(said: Iterable[ClusterEvent]) -> int:
    """When the histories of clients and replicas end."""
    for kind in (ClusterEventKind.SETTLED, ClusterEventKind.ENDED):
        times = [event.at for event in said if event.kind is kind]
        if times:
            return min(times)
    return FOREVER


def cluster_events(said: Iterable[ClusterEvent]) -> list[Any]:
    makes = {
        ClusterEventKind.HEALED: lambda at: Healed(at, ()),
        ClusterEventKind.CALM: Calm,
    }
    return [makes[event.kind](Instant(event.at)) for event in said if event.kind in makes]
