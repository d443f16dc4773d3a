"""Every history that a test shows to the checkers is also shown to the judges of `ordercast verify`, who read whole
columns: they must say the same."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ordercast.checker import Checkers
from ordercast.checker.groups import GroupCheckers
from ordercast.checker.plain import PlainPanel
from ordercast.trace.records import Event

IN_PARTS = 2  # histories of a test that are also judged in parts, which takes a hundred times as long


@pytest.fixture(autouse=True)
def agreement(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    pytest.importorskip("numpy")
    from tests.unit.pipeline.agreement import assert_agreement, assert_clients_agree

    histories: dict[Checkers, list[Event]] = {}
    told: dict[PlainPanel[Any], list[Any]] = {}
    observe, observe_plain = Checkers.observe, PlainPanel.observe

    def observed(self: Checkers, event: Event) -> None:
        histories.setdefault(self, []).append(event)
        observe(self, event)

    def observed_plain(self: PlainPanel[Any], event: Any) -> None:
        told.setdefault(self, []).append(event)
        observe_plain(self, event)

    with monkeypatch.context() as patch:
        patch.setattr(Checkers, "observe", observed)
        patch.setattr(PlainPanel, "observe", observed_plain)
        yield
    for number, history in enumerate(histories.values()):
        assert_agreement(history, in_parts=number < IN_PARTS)
    groups = [events for panel, events in told.items() if isinstance(panel, GroupCheckers)]
    for number, events in enumerate(groups):
        assert_clients_agree(events, in_parts=not number)
