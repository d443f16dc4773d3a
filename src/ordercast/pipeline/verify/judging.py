"""One run in one task: cleared by columns when it is plainly valid, else judged by the reference checkers.

Both ways give the same verdicts; the tests hold them against each other. A trace that cannot be read is UNKNOWN in
every promise, with the reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from ordercast.checker import Checkers, Outcome, Verdict, Witness
from ordercast.model.promises import Promise
from ordercast.pipeline.verify.clearing import clear
from ordercast.pipeline.verify.facts import control_verdicts, facts_from
from ordercast.pipeline.verify.numbering import check_whole
from ordercast.pipeline.verify.rows import (
    CONTROL_ALL,
    DELIVERED,
    MESSAGE,
    NUMBERING,
    TraceFile,
    control_rows,
    controls_from,
    messages_from,
    rows_from,
)
from ordercast.pipeline.verify.totals import matters_of, settle, totals_from
from ordercast.trace.arrow import TraceError
from ordercast.trace.folder import read_live
from ordercast.trace.parquet import RunInfo, read_info, read_run
from ordercast.trace.records import DeliveredBatch

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


def judge(path: str) -> Judgement:
    """The file of a run, or a folder of live traces. Never raises on account of a trace."""
    try:
        if Path(path).is_dir():
            return _by_checkers(path)
        try:
            return _by_columns(path)
        except (TraceError, OSError, pa.ArrowException):
            raise
        except Exception:  # not plainly valid, or beyond the fast judge: that is no verdict yet
            return _by_checkers(path)
    except (TraceError, OSError, pa.ArrowException) as error:
        return unread(path, str(error))


def unread(path: str, why: str, info: RunInfo | None = None) -> Judgement:
    """UNKNOWN in every promise."""
    why = why.split("\n")[0]
    verdicts = [Verdict(promise, Outcome.UNKNOWN, why, (Witness(why),)) for promise in Promise]
    return Judgement(path, info or RunInfo(0), 0, 0, verdicts, "unread")


def _by_columns(path: str) -> Judgement:
    info = read_info(Path(path))
    events, deliveries, verdicts = judge_table(TraceFile(path).table(_ALL_COLUMNS))
    return Judgement(path, info, events, deliveries, verdicts, "columns")


def judge_table(table: pa.Table) -> tuple[int, int, list[Verdict]]:
    """Judge a whole run, and return its events, its deliveries and the verdicts; `Suspicious` or `Unsound` when it is
    not cleared."""
    events = check_whole(rows_from(table.select(list(NUMBERING))))
    controls = controls_from(control_rows(table.select(list(CONTROL_ALL))).to_pylist())
    facts, rows = facts_from(controls), messages_from(table.select(list(MESSAGE)))
    clear(facts, rows)
    totals = totals_from(facts, rows)
    settle(facts, totals)
    return events, int((rows["kind"] == DELIVERED).sum()), control_verdicts(controls, matters_of(facts, totals))


def _by_checkers(path: str) -> Judgement:
    if Path(path).is_dir():
        live = read_live(Path(path))
        info, history = live.info, live.events()
    else:
        run = read_run(Path(path))
        info, history = run.info, iter(run.events)
    checkers = Checkers()
    events = deliveries = 0
    for event in history:
        checkers.observe(event)
        events += 1
        deliveries += len(event.messages) if isinstance(event, DeliveredBatch) else 0
    return Judgement(path, info, events, deliveries, checkers.verdicts(), "checkers")
