"""What the reference checkers and the judges of the pipeline say of one history, side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq

from ordercast.checker import Outcome, Verdict, combined
from ordercast.checker.history import History
from ordercast.checker.panel import CHECKERS
from ordercast.pipeline.verify import index, large, slicing
from ordercast.pipeline.verify.clients.judging import Daemons, judge_clients, reference_verdicts
from ordercast.pipeline.verify.clients.large import judge_large_clients
from ordercast.pipeline.verify.index import index_group
from ordercast.pipeline.verify.judging import judge_table
from ordercast.pipeline.verify.large import judge_large, judge_part
from ordercast.pipeline.verify.part import Suspicious
from ordercast.pipeline.verify.rows import JudgedWhole, Unsound
from ordercast.trace.arrow import evidence_table, schema_with, table_from
from ordercast.trace.client_records import ClientEvent
from ordercast.trace.client_rows import CLIENTS
from ordercast.trace.records import DeliveredBatch, Event, Installed, Started
from ordercast.trace.to_rows import rows_from


def table_of(events: list[Event]) -> pa.Table | None:
    """As `write_run` sorts it; None when no trace can hold such events."""
    try:
        table = table_from(rows_from(events), schema_with({}), 1)
    except (AttributeError, TypeError, OverflowError, ValueError):
        return None
    return table.sort_by([("process", "ascending"), ("idx", "ascending")])


def reference(events: list[Event]) -> list[Verdict]:
    """The panel by itself."""
    history = History()
    for event in events:
        try:
            history.observe(event)
        except Exception as error:
            history.add_fault(f"an event could not be read: {type(error).__name__}: {error}")
    judges = [checker(history) for checker in CHECKERS.values()]
    return [judge.verdict() for judge in judges if judge.is_asked()]


def in_turn(function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    return [function(item) for item in items]


class InTurn:
    """`in_turn`, but the rows of one run are indexed and its parts judged once, however often it is asked for."""

    def __init__(self) -> None:
        self._done: dict[Callable[..., Any], list[Any]] = {}

    def __call__(self, function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        step = getattr(function, "func", function)
        if step not in (index_group, judge_part):
            return in_turn(function, items)
        if step not in self._done:
            self._done[step] = in_turn(function, items)
        return self._done[step]


class Held:
    """The rows of a run in memory, read by row groups as a `TraceFile` is, in a tenth of the time."""

    def __init__(self, table: pa.Table, group_rows: int) -> None:
        self._table, self._group_rows = table, group_rows
        self.groups = -(-len(table) // group_rows)

    def table(self, columns: tuple[str, ...], groups: range | None = None) -> pa.Table:
        rows, table = self._group_rows, self._table.select(list(columns))
        chosen = range(self.groups) if groups is None else groups
        return pa.concat_tables([table.slice(0, 0), *(table.slice(group * rows, rows) for group in chosen)])


def judged_in_parts(table: pa.Table, rooms: Sequence[int]) -> list[list[Verdict]]:
    """Return the verdicts of the judge of large runs, on parts and row groups of a few rows, with so much room for what
    is suspicious; none when it calls the trace unsound."""
    held, spread, part_rows = Held(table, max(1, len(table) // 7)), InTurn(), max(1, len(table) // 9)
    with ExitStack() as stack:
        for module in (index, slicing, large):
            stack.enter_context(patch.object(module, "TraceFile", lambda path: held))
        try:
            return [judge_large("held", held.groups, spread, part_rows, room).verdicts for room in rooms]
        except Unsound:
            return []


def assert_agreement(events: list[Event], *, in_parts: bool = True) -> None:
    """Both judges of the pipeline. The fast one may decline; the one of large runs may be in doubt about what it has no
    room to look at, and about nothing else."""
    table = table_of(events)
    if table is None:
        return
    expected = reference(events)
    assert_columns_agree(table, events, expected)
    if in_parts:
        assert_parts_agree(table, expected)


def assert_columns_agree(table: pa.Table, events: list[Event], expected: list[Verdict]) -> None:
    try:
        count, deliveries, verdicts = judge_table(table)
    except (Suspicious, Unsound):
        return
    assert verdicts == expected
    assert count == len(events)
    assert deliveries == sum(len(event.messages) for event in events if isinstance(event, DeliveredBatch))


def assert_parts_agree(table: pa.Table, expected: list[Verdict]) -> None:
    theirs = {verdict.promise: verdict.outcome for verdict in expected}
    cannot_be_judged = all(verdict.sentence.startswith("the history cannot be judged") for verdict in expected)
    rooms = len(table), len(table) // 2
    found = judged_in_parts(table, rooms)
    if not found:
        assert combined(expected).outcome is not Outcome.VALID
    for room, verdicts in zip(rooms, found, strict=False):
        differing = [verdict for verdict in verdicts if verdict.outcome is not theirs[verdict.promise]]
        if room == len(table):
            assert not differing, list(map(str, differing))
        elif cannot_be_judged:
            assert combined(verdicts).outcome is not Outcome.VALID
        else:
            assert all(verdict.outcome is Outcome.UNKNOWN for verdict in differing), list(map(str, differing))


# Clients


def clients_table(events: list[ClientEvent]) -> pa.Table | None:
    """As `write_run` sorts it; None when no trace can hold such events."""
    told = [event for event in events if not isinstance(event, Started | Installed)]
    try:
        table = evidence_table(told, CLIENTS, schema_with({}, CLIENTS.columns), 1)
    except (AttributeError, TypeError, OverflowError, ValueError):
        return None
    return table.sort_by([(name, "ascending") for name in CLIENTS.order])


def assert_clients_agree(events: list[ClientEvent], *, in_parts: bool = True) -> bool:
    """Whether the judge by columns cleared them; then it must say what the checkers say. So must the judge of large
    runs, who may be in doubt about what it has no room to look at."""
    table = clients_table(events)
    if table is None:
        return False
    daemons = [event for event in events if isinstance(event, Started | Installed)]
    expected = reference_verdicts([event for event in events if event not in daemons], daemons)
    if in_parts and len(table):
        with TemporaryDirectory() as folder:
            _assert_client_parts_agree(table, daemons, expected, Path(folder))
    try:
        assert judge_clients(table, daemons) == expected
        return True
    except (Suspicious, Unsound):
        return False


def _assert_client_parts_agree(table: pa.Table, daemons: Daemons, expected: list[Verdict], folder: Path) -> None:
    path = str(folder / "clients-1.parquet")
    pq.write_table(table, path, row_group_size=max(1, len(table) // 3))
    theirs = {verdict.promise: verdict.outcome for verdict in expected}
    is_valid = combined(expected).outcome is Outcome.VALID
    for room in (len(table),) if is_valid else (len(table), 0):
        try:
            verdicts = judge_large_clients(path, daemons, in_turn, max(1, len(table) // 6), room)[1]
        except JudgedWhole:
            return
        except Unsound:
            assert combined(expected).outcome is not Outcome.VALID
            return
        differing = [verdict for verdict in verdicts if verdict.outcome is not theirs[verdict.promise]]
        is_doubt = [verdict.outcome is Outcome.UNKNOWN and not room for verdict in differing]
        assert all(is_doubt), list(map(str, differing))
