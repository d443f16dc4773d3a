"""Several replicated states of a run, a task for each: the same verdicts as when all are judged together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("numpy")

from ordercast.pipeline.verify.states import judge_large_states, judge_states, states_in
from ordercast.trace.parquet import RunInfo, evidence_path, run_path, write_run
from ordercast.trace.records import Ended, Healed
from ordercast.trace.replica_records import Applied, ReplicaStarted
from ordercast.trace.replica_rows import REPLICAS
from tests.unit.checker.histories import Story as DaemonStory
from tests.unit.checker.replicated.stories import Story, put
from tests.unit.pipeline.agreement import in_turn

SHIFT = 1 << 40  # between the lives of two states


def _state(group: str, shift: int) -> list[Any]:
    told = Story("a", "b", "c")
    told.primary(1, "a", "b", "c")
    for number in range(3):
        call = told.call("a", put("k", str(number)))
        told.apply(call, "a", "b", "c")
        told.confirm(call)
    events: list[Any] = [event for event in told.finished() if not isinstance(event, Healed | Ended)]
    return [_moved(event, group, shift) for event in events]


def _moved(event: Any, group: str, shift: int) -> Any:
    """The same of another state: lives are of one state alone."""
    event = replace(event, life=event.life + shift)
    if isinstance(event, Applied):
        return replace(event, caller=event.caller + shift)
    return replace(event, group=group) if isinstance(event, ReplicaStarted) else event


def _broken(events: list[Any]) -> list[Any]:
    last = [event for event in events if isinstance(event, Applied)][-1]
    return [replace(event, chain=event.chain + 1) if event is last else event for event in events]


def _early(events: list[Any]) -> list[Any]:
    return [events[-1], *events[:-1]]


@pytest.mark.parametrize(("damage", "states"), [(list, 2), (_broken, 2), (_early, 0)])
def test_states_are_judged_alike(tmp_path: Path, damage: Callable[[list[Any]], list[Any]], states: int) -> None:
    first, second = _state("one", 0), damage(_state("two", SHIFT))
    mixed = [event for pair in zip(first, second, strict=False) for event in pair]
    at = len(mixed)
    write_run(tmp_path, RunInfo(1), DaemonStory(2).finished(), (), [*mixed, Healed(at, ()), Ended(at)])  # type: ignore[arg-type]
    file = evidence_path(run_path(tmp_path, 1), REPLICAS)
    assert len(states_in(file)) == states
    assert judge_large_states(file, [], in_turn) == judge_states(file, [])
