"""Live folders merged by columns: the same verdicts as when every event is an object."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("numpy")

import numpy as np

from ordercast.model.ids import MILLISECOND
from ordercast.pipeline.verify.judging import judge
from ordercast.pipeline.verify.live import merged_run
from ordercast.pipeline.verify.ordering import Needs, numbered, raised
from ordercast.sim.run import simulate
from ordercast.sim.swarm import hostile_options
from ordercast.trace.folder import read_live
from ordercast.trace.parquet import read_run
from ordercast.trace.records import Ended, Event
from tests.unit.pipeline.agreement import reference
from tests.unit.trace.live_traces import write_history


def by_process(events: list[Event]) -> dict[int, list[Event]]:
    found: dict[int, list[Event]] = {}
    for event in events:
        if not isinstance(event, Ended):
            found.setdefault(getattr(event, "process", 0), []).append(event)
    return found


@pytest.mark.parametrize(("seed", "skews"), [(5, (0,)), (2, (0, 50 * MILLISECOND))])
def test_a_folder_merged_by_columns_is_judged_as_its_events_are(
    seed: int, skews: tuple[int, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = simulate(hostile_options(seed), seed, keep_events=True)
    write_history(tmp_path, result.events, monkeypatch, skews=skews, flush_every=60)
    live = read_live(tmp_path)
    out = tmp_path / "merged"
    out.mkdir()
    path = merged_run(live, out)
    events = list(live.events())
    merged = read_run(path).events
    assert by_process(merged) == by_process(events)
    assert (merged[-1], len(merged)) == (events[-1], len(events))
    judged = judge(str(path))
    assert [(one.promise, one.outcome) for one in judged.verdicts] == [
        (one.promise, one.outcome) for one in reference(events)
    ]


def test_what_needs_another_comes_after_it_with_all_behind_it() -> None:
    times = [np.array([10, 20, 30]), np.array([1, 2, 40])]
    needs = [Needs(1, np.array([1]), 0, np.array([2]))]
    found = raised(times, needs)
    assert [list(each) for each in found] == [[10, 20, 30], [1, 31, 40]]
    assert [list(each) for each in numbered(found)] == [[1, 2, 3], [0, 4, 5]]


def test_a_circle_is_given_up() -> None:
    circle = [Needs(0, np.array([0]), 1, np.array([0])), Needs(1, np.array([0]), 0, np.array([0]))]
    assert len(raised([np.array([1]), np.array([1])], circle)) == 2
