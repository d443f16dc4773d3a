"""Histories that a test shows to the checkers are also shown to the judges of `ordercast verify`, who read whole
columns: they must say the same. Of a test with very many histories the first are enough."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice

import pytest

from ordercast.checker import Checkers
from ordercast.trace.records import Event

IN_COLUMNS = 15  # histories of a test that are judged by columns
IN_PARTS = 2  # those that are also judged in parts, which takes ten times as long
IN_PARTS_MAX = 30  # of one test, with whatever parameters
_in_parts: Counter[str] = Counter()  # so far, by test


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
    test = request.node.nodeid.partition("[")[0]
    for number, history in enumerate(islice(histories.values(), IN_COLUMNS)):
        in_parts = number < IN_PARTS and _in_parts[test] < IN_PARTS_MAX
        _in_parts[test] += in_parts
        assert_agreement(history, in_parts=in_parts)
