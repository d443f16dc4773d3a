"""Histories that a test shows to the checkers are also shown to the judges of `ordercast verify`, who read whole
columns: they must say the same. Of a test with very many histories the first are enough, and in parts those of a few
tests: `unit/pipeline` has more of them. And what a test shows of clients and replicas comes back from a table as it
was."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any

import pytest

from ordercast.checker import Checkers
from ordercast.checker.groups import GroupCheckers
from ordercast.checker.plain import PlainPanel
from ordercast.trace.arrow import evidence_events, evidence_table, schema_with
from ordercast.trace.client_rows import CLIENTS
from ordercast.trace.event_rows import EventTable
from ordercast.trace.records import Event
from ordercast.trace.replica_rows import REPLICAS

IN_COLUMNS = 4  # histories of a test that are judged by columns
IN_PARTS_MAX = 4  # of one file that are also judged in parts, which takes ten times as long
_in_parts: Counter[str] = Counter()  # so far, by file


@pytest.fixture(autouse=True)
def agreement(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    pytest.importorskip("numpy")
    from tests.unit.pipeline.agreement import assert_agreement

    histories: dict[Checkers, list[Event]] = {}
    observe = Checkers.observe

    def observed(self: Checkers, event: Event) -> None:
        histories.setdefault(self, []).append(event)
        observe(self, event)

    with monkeypatch.context() as patch:
        patch.setattr(Checkers, "observe", observed)
        yield
    for number, history in enumerate(islice(histories.values(), IN_COLUMNS)):
        assert_agreement(history, in_parts=not number and _is_to_be_parted(request))


def _is_to_be_parted(request: pytest.FixtureRequest) -> bool:
    """Whether a history of this test is judged in parts too; counted."""
    file = request.node.path.name
    _in_parts[file] += 1
    return _in_parts[file] <= IN_PARTS_MAX


@pytest.fixture(autouse=True)
def evidence(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    histories: dict[PlainPanel[Any], list[Any]] = {}
    observe = PlainPanel.observe

    def observed(self: PlainPanel[Any], event: Any) -> None:
        histories.setdefault(self, []).append(event)
        observe(self, event)

    with monkeypatch.context() as patch:
        patch.setattr(PlainPanel, "observe", observed)
        yield
    for history in histories.values():
        assert_comes_back(history)
    pytest.importorskip("numpy")
    from tests.unit.pipeline.agreement import assert_clients_agree

    groups = [history for panel, history in histories.items() if isinstance(panel, GroupCheckers)]
    for number, history in enumerate(groups):
        assert_clients_agree(history, in_parts=not number and _is_to_be_parted(request))


def assert_comes_back(history: list[Any]) -> None:
    """What is said of daemons is in their own table, and what nobody records in none."""
    tables: tuple[EventTable[Any], ...] = (CLIENTS, REPLICAS)
    for table in tables:
        known = {shape.event for shape in table.shapes.values()}
        events = [event for event in history if type(event) in known]
        rows = evidence_table(events, table, schema_with({}, table.columns), 0)
        assert evidence_events(rows, table) == dict(enumerate(events))
