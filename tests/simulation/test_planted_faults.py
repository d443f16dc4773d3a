"""Checkers and simulator are worth what they catch: every planted fault, within a stated number of runs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ordercast.checker import Outcome
from ordercast.model.promises import AnyPromise
from ordercast.sim.aimed_swarm import AIMED_FIRST
from ordercast.sim.run import Result, simulate
from ordercast.sim.swarm import SATURATED_EVERY, SATURATED_FIRST, hostile_options
from ordercast.trace.records import Event
from tests.unit.pipeline.agreement import assert_agreement

from .planted import PLANTED, PlantedFault


def _runs(fault: PlantedFault) -> Iterator[tuple[Result, list[Event]]]:
    if fault.scene is not None:
        scene = fault.scene()
        yield scene.run(), scene.events
        return
    step, first = (SATURATED_EVERY, SATURATED_FIRST) if fault.saturated else (1, AIMED_FIRST if fault.aimed else 0)
    for number in range(fault.runs):
        seed = first + step * (fault.skip + number)
        result = simulate(hostile_options(seed), seed, keep_events=True)
        yield result, result.events


def _broken(result: Result) -> set[AnyPromise | None]:
    return {verdict.promise for verdict in result.verdicts if verdict.outcome is Outcome.INVALID}


@pytest.mark.parametrize("fault", PLANTED, ids=lambda fault: fault.name)
def test_the_checkers_catch(fault: PlantedFault, monkeypatch: pytest.MonkeyPatch) -> None:
    fault.plant(monkeypatch)
    caught = next((events for result, events in _runs(fault) if _broken(result) & fault.broken), None)
    assert caught is not None, f"not caught in {fault.runs} runs"
    assert_agreement(caught)  # and the judges of the pipeline catch it in the same way


@pytest.mark.long
def test_without_a_planted_fault_the_same_runs_are_valid() -> None:
    for fault in PLANTED:
        if fault.scene is not None:
            assert fault.scene().run().is_valid
    seeds = (*range(40), *range(AIMED_FIRST, AIMED_FIRST + 20))
    assert all(simulate(hostile_options(seed), seed).is_valid for seed in seeds)


def test_at_least_ten_faults_are_planted_and_the_papers_own_are_among_them() -> None:
    names = " ".join(fault.name for fault in PLANTED)
    assert len(PLANTED) >= 10
    assert "E4" in names and "E11" in names and "duplicate Commit token" in names
