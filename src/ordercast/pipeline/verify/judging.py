"""One run in one task: cleared by columns when it is plainly valid, else judged by the reference checkers.

Both ways give the same verdicts; the tests hold them against each other. What daemons, clients and replicas saw is
judged each by itself. A trace that cannot be read is UNKNOWN in every promise, with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ordercast.checker import Checkers, Outcome, Verdict, Witness
from ordercast.checker.evidence import EvidenceCheckers
from ordercast.model.promises import GroupPromise, Promise, ReplicaPromise
from ordercast.pipeline.verify.clearing import clear
from ordercast.pipeline.verify.clients.judging import Daemons, judge_clients, reference_verdicts
from ordercast.pipeline.verify.facts import Facts, control_verdicts, facts_from
from ordercast.pipeline.verify.live import ended_at, live_history, read_life
from ordercast.pipeline.verify.live_evidence import write_evidence
from ordercast.pipeline.verify.numbering import check_whole
from ordercast.pipeline.verify.part import demand
from ordercast.pipeline.verify.rows import (
    CONTROL_ALL,
    DELIVERED,
    MESSAGE,
    NUMBERING,
    Control,
    Rows,
    TraceFile,
    Unsound,
    control_rows,
    controls_from,
    messages_from,
    rows_from,
)
from ordercast.pipeline.verify.states import judge_states
from ordercast.pipeline.verify.totals import matters_of, settle, totals_from
from ordercast.trace.arrow import TraceError
from ordercast.trace.client_rows import CLIENTS
from ordercast.trace.columns import signed
from ordercast.trace.event_rows import EventTable
from ordercast.trace.folder import processes_in, read_live
from ordercast.trace.parquet import (
    RunInfo,
    evidence_file,
    evidence_path,
    read_events,
    read_evidence_file,
    read_info,
    run_path,
)
from ordercast.trace.records import DeliveredBatch, Installed, Started
from ordercast.trace.replica_rows import REPLICAS

TABLES: tuple[EventTable[Any], ...] = (CLIENTS, REPLICAS)
_ALL_COLUMNS = tuple(dict.fromkeys((*MESSAGE, *CONTROL_ALL)))


@dataclass(frozen=True, slots=True)
class Judgement:
    """One run, what is known of it, and the verdict on each promise."""

    path: str
    info: RunInfo
    events: int
    deliveries: int
    verdicts: list[Verdict]
    how: str  # "columns", "checkers" or "unread", for those who ask where the time went
    client_events: int = 0
    replica_events: int = 0


def judge(path: str) -> Judgement:
    """The file of a run, or a folder of live traces. Never raises on account of a trace."""
    return readable(path, partial(_judge_live if Path(path).is_dir() else _judge_file, path))


def readable(path: str, judge: Callable[[], Judgement]) -> Judgement:
    """What `judge` says; UNKNOWN in every promise when the trace cannot be read."""
    try:
        return judge()
    except (TraceError, OSError, pa.ArrowException) as error:
        return unread(path, str(error))


def unread(path: str, why: str, info: RunInfo | None = None) -> Judgement:
    """UNKNOWN in every promise that is judged of such a run."""
    info, why = info or RunInfo(0), why.split("\n")[0]
    promises = [
        *Promise,
        *(GroupPromise if CLIENTS.name in info.evidence else ()),
        *(ReplicaPromise if REPLICAS.name in info.evidence else ()),
    ]
    verdicts = [Verdict(promise, Outcome.UNKNOWN, why, (Witness(why),)) for promise in promises]
    return Judgement(path, info, 0, 0, verdicts, "unread")


def _judge_file(path: str) -> Judgement:
    info = read_info(Path(path))
    return with_evidence(judge_order(path, info), evidence_files(Path(path), info), partial(daemons_in, path))


def evidence_files(run: Path, info: RunInfo) -> dict[str, Path]:
    """The files of clients and of replicas of a run, if there are any."""
    return {table.name: evidence_file(run, info, table) for table in TABLES if table.name in info.evidence}


def with_evidence(found: Judgement, files: Mapping[str, Path], daemons: Callable[[], Daemons]) -> Judgement:
    """The same with the verdicts on what clients and replicas saw."""
    if CLIENTS.name in files:
        found = with_clients(found, *judge_client_file(files[CLIENTS.name], daemons()))
    if REPLICAS.name in files:
        found = with_replicas(found, *judge_states(files[REPLICAS.name], daemons()))
    return found


def with_clients(found: Judgement, count: int, verdicts: list[Verdict]) -> Judgement:
    return replace(found, verdicts=[*found.verdicts, *verdicts], client_events=count)


def with_replicas(found: Judgement, count: int, verdicts: list[Verdict]) -> Judgement:
    return replace(found, verdicts=[*found.verdicts, *verdicts], replica_events=count)


def _judge_live(path: str) -> Judgement:
    """Daemons by columns, else by objects, as `check` does it; clients and replicas as those of any run."""
    folder = Path(path)
    try:
        found, daemons = _live_by_columns(folder)
    except (TraceError, OSError, pa.ArrowException):
        raise
    except Exception:  # as below
        found, daemons = _live_by_checkers(folder)
    with TemporaryDirectory() as place:
        return with_evidence(found, write_live_evidence(folder, Path(place)), lambda: daemons)


def write_live_evidence(folder: Path, place: Path) -> dict[str, Path]:
    """Put what clients and replicas recorded in a folder together, each into one file."""
    run = run_path(place, 1)
    names = write_evidence(folder, place, 1, {})
    return {table.name: evidence_path(run, table) for table in TABLES if table.name in names}


def _live_by_columns(folder: Path) -> tuple[Judgement, Daemons]:
    until = ended_at(folder)
    read = [found for paths in processes_in(folder) if (found := read_life(paths, until)) is not None]
    read.sort(key=lambda pair: signed(pair[0].life.process))
    live = live_history(folder, [found for found, _ in read])
    demand(not live.has_holes, "the record has holes")
    facts = facts_from(live.controls, is_live=True)
    rows = messages_from(pa.concat_tables([table for _, table in read]).select(list(MESSAGE)))
    deliveries, verdicts = _cleared(facts, rows, live.controls)
    return Judgement(str(folder), live.run.info, live.count, deliveries, verdicts, "columns"), live.daemons


def _live_by_checkers(folder: Path) -> tuple[Judgement, Daemons]:
    live, checkers, daemons = read_live(folder), EvidenceCheckers(), list[Started | Installed]()
    for event in live.events():
        checkers.observe(event)
        daemons += [event] if isinstance(event, Started | Installed) else []
    counts = checkers.events, checkers.deliveries
    return Judgement(str(folder), live.info, *counts, checkers.verdicts(), "checkers"), daemons


# Daemons


def judge_order(path: str, info: RunInfo) -> Judgement:
    try:
        events, deliveries, verdicts = judge_table(TraceFile(path).table(_ALL_COLUMNS))
        return Judgement(path, info, events, deliveries, verdicts, "columns")
    except (TraceError, OSError, pa.ArrowException):
        raise
    except Exception:  # not plainly valid, or beyond the fast judge: that is no verdict yet
        return _by_checkers(path, info)


def judge_table(table: pa.Table) -> tuple[int, int, list[Verdict]]:
    """Judge a whole run, and return its events, its deliveries and the verdicts; `Suspicious` or `Unsound` when it is
    not cleared."""
    events = check_whole(rows_from(table.select(list(NUMBERING))))
    controls = controls_from(control_rows(table.select(list(CONTROL_ALL))).to_pylist())
    deliveries, verdicts = _cleared(facts_from(controls), messages_from(table.select(list(MESSAGE))), controls)
    return events, deliveries, verdicts


def _cleared(facts: Facts, rows: Rows, controls: list[Control]) -> tuple[int, list[Verdict]]:
    clear(facts, rows)
    totals = totals_from(facts, rows)
    settle(facts, totals)
    return int((rows["kind"] == DELIVERED).sum()), control_verdicts(controls, matters_of(facts, totals))


def _by_checkers(path: str, info: RunInfo) -> Judgement:
    events, checkers, deliveries = read_events(Path(path)), Checkers(), 0
    for event in events:
        checkers.observe(event)
        deliveries += len(event.messages) if isinstance(event, DeliveredBatch) else 0
    return Judgement(path, info, len(events), deliveries, checkers.verdicts(), "checkers")


def daemons_in(path: str) -> Daemons:
    """What the judges of clients and replicas want to know of the daemons: what they promise, and who was in reach."""
    file = TraceFile(path)
    rows = [row for group in range(file.groups) for row in _control(file, group)]
    return daemons_of(rows)


def _control(file: TraceFile, group: int) -> list[dict[str, object]]:
    found: list[dict[str, object]] = control_rows(file.table(CONTROL_ALL, range(group, group + 1))).to_pylist()
    return found


def daemons_of(rows: list[dict[str, object]]) -> Daemons:
    try:
        controls = controls_from(rows)
    except Unsound as error:
        raise TraceError(f"the views of the daemons cannot be read ({error}): record the run again") from error
    return [control.event for control in controls if isinstance(control.event, Started | Installed)]


# Clients and replicas


def judge_client_file(file: Path, daemons: Daemons) -> tuple[int, list[Verdict]]:
    try:
        table = pq.read_table(file, partitioning=None, page_checksum_verification=True)
        return len(table), judge_clients(table, daemons)
    except (TraceError, OSError, pa.ArrowException):
        raise
    except Exception:  # as above
        events = read_evidence_file(file, CLIENTS)
        return len(events), reference_verdicts(events, daemons)
