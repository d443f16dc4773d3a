"""What the programs of a live run recorded of clients or replicas, put together into one history.

Each program keeps its order. Programs of one host have one clock, which decides between them; between hosts a message
is got after it was sent, and a command applied after it was called for, whatever their clocks say. `cluster.jsonl` says
when the network was whole (`healed`), when all was calm (`calm`), and when the run was over (`settled`, else `ended`):
what comes later is not judged, but for last words. Whoever was killed has ended where its record does. What is missing
is said, and then nothing can be judged.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from typing import Any, Generic

import pyarrow as pa
import pyarrow.compute as pc

from ordercast.model.ids import NOBODY, Instant
from ordercast.trace.arrow import TraceError, evidence_events, reason_of
from ordercast.trace.client_records import Calm, ClientId, Connected, Disconnected, End, KnownGroups
from ordercast.trace.cluster import ClusterEvent, ClusterEventKind, read_cluster_events
from ordercast.trace.event_rows import EventT, EventTable
from ordercast.trace.live_file import LiveInfo, file_name_from, is_finished, read_batches, read_info, stem_of
from ordercast.trace.merge import merged, streams_in
from ordercast.trace.records import Ended, Gap, Healed, Unrecorded
from ordercast.trace.replica_records import ReplicaEnded, ReplicaKnown, ReplicaStarted
from ordercast.trace.tail import read_tail, tails_of

_FOREVER = (1 << 63) - 1
_LAST_WORDS = (KnownGroups, ReplicaKnown)
_at = attrgetter("at")


@dataclass(slots=True)
class Program(Generic[EventT]):
    """What one program recorded in one table. Times are those of the wall clock."""

    info: LiveInfo
    paths: list[Path]
    events: list[EventT] = field(default_factory=list)
    missing: str | None = None  # what of it is not there
    is_killed: bool = False

    @property
    def last_at(self) -> Instant:
        return Instant(max((_at(event) for event in self.events), default=0))


def programs_in(folder: Path, table: EventTable[EventT]) -> list[Program[EventT]]:
    """The programs that recorded such evidence, without their events. TraceError names the file that cannot be read."""
    found: dict[str, Program[EventT]] = {}
    named = [(name, path) for path in folder.rglob(f"{table.name}-*.arrows") if (name := file_name_from(path))]
    for _, path in sorted(named):
        info = read_info(path)
        if info is not None:
            found.setdefault(stem_of(info), Program(info, [])).paths.append(path)
    return list(found.values())


def history_in(folder: Path, table: EventTable[EventT]) -> list[EventT]:
    """The events of all programs in one order; none when nobody recorded any."""
    programs = programs_in(folder, table)
    if not programs:
        return []
    offsets: dict[str, int] = {}  # by clock
    for number, program in enumerate(programs):
        clock = program.info.clock or f"of {number}"
        _read(program, table, offsets.setdefault(clock, program.info.wall_offset_ns))
    said = read_cluster_events(folder)
    over_at = _over_at(said)
    by_clock: dict[str, list[EventT]] = {}
    for number, program in enumerate(programs):
        events = by_clock.setdefault(program.info.clock or f"of {number}", [])
        events += program.events
        events += _ends_of(program) if program.is_killed else []
    cluster = _cluster_events(said)
    sequences = [sorted(events, key=_at) for events in (*by_clock.values(), cluster)]
    inorder = merged(sequences, streams_in(sequences))
    history: list[Any] = [event for event in inorder if event.at <= over_at or isinstance(event, _LAST_WORDS)]
    gaps = [Unrecorded(Instant(0), NOBODY, Gap.EVENTS, program.missing) for program in programs if program.missing]
    last = history[-1].at if history else Instant(0)
    return [*gaps, *history, Ended(last, complete=over_at < _FOREVER)]


def _read(program: Program[EventT], table: EventTable[EventT], offset: int) -> None:
    who, stem = program.info.name, stem_of(program.info)
    found: dict[int, Any] = {}
    tails = tails_of(program.paths[0].parent, stem)
    for path in program.paths:
        for batch in read_batches(path):
            found |= _sound(path, lambda rows=batch: evidence_events(_on_wall_clock(rows, offset), table))
    for path in tails:
        found |= _sound(path, lambda path=path: dict(read_tail(path, table, offset)))
    whole = next((n for n in range(len(found)) if n not in found), len(found))
    events = [found[n] for n in range(whole)]
    last = events[-1] if events else None
    program.is_killed = not isinstance(last, Ended)
    if whole < len(found) or not all(map(is_finished, program.paths[:-1])):
        program.missing = f"the record of {who} has a hole: event {whole} of its {table.name} is not there"
    elif isinstance(last, Ended) and not last.complete:
        program.missing = f"the record of {who} was given up by its writer, whose disk did not keep up"
    elif program.is_killed and not tails:
        program.missing = f"the record of {who} has no end: is it still running, or was it killed?"
    program.events = [event for event in events if not isinstance(event, Ended)]


def _sound(path: Path, read: Any) -> dict[int, Any]:
    try:
        found: dict[int, Any] = read()
    except (OSError, ValueError, KeyError, TypeError, AttributeError, pa.ArrowException) as error:
        raise TraceError(
            f"{path} is not a sound trace ({reason_of(error)}): remove it, then it counts as missing"
        ) from error
    return found


def _on_wall_clock(rows: pa.RecordBatch, offset: int) -> pa.Table:
    times = pc.add(rows["t"], pa.scalar(offset, pa.int64()))
    return pa.table(rows).set_column(rows.schema.get_field_index("t"), "t", times)


def _ends_of(program: Program[EventT]) -> list[Any]:
    """The ends that a killed program could not record."""
    clients: dict[ClientId, None] = {}
    lives: dict[int, None] = {}
    for event in program.events:
        match event:
            case Connected():
                clients[event.client] = None
            case Disconnected():
                clients.pop(event.client, None)
            case ReplicaStarted():
                lives[event.life] = None
            case ReplicaEnded():
                lives.pop(event.life, None)
    at = program.last_at
    return [*(Disconnected(at, client, End.CRASHED) for client in clients), *(ReplicaEnded(at, life) for life in lives)]


def _over_at(said: Iterable[ClusterEvent]) -> int:
    """When the histories of clients and replicas end."""
    for kind in (ClusterEventKind.SETTLED, ClusterEventKind.ENDED):
        times = [event.at for event in said if event.kind is kind]
        if times:
            return min(times)
    return _FOREVER


def _cluster_events(said: Iterable[ClusterEvent]) -> list[Any]:
    makes = {
        ClusterEventKind.HEALED: lambda at: Healed(at, ()),
        ClusterEventKind.CALM: Calm,
    }
    return [makes[event.kind](Instant(event.at)) for event in said if event.kind in makes]
