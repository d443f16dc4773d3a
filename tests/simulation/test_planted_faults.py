"""Checkers and simulator are worth what they catch: every planted fault, within a stated number of runs."""

from __future__ import annotations

import pytest

from ordercast.checker import Outcome
from ordercast.sim.aimed_swarm import AIMED_FIRST
from ordercast.sim.run import Result, simulate
from ordercast.sim.swarm import SATURATED_EVERY, SATURATED_FIRST, hostile_options
from ordercast.trace.records import Event
from tests.unit.pipeline.agreement import assert_agreement

from .catches import caught, first_catch
from .planted import PLANTED, PlantedFault


def seeds_of(fault: PlantedFault) -> range:
    step, first = (SATURATED_EVERY, SATURATED_FIRST) if fault.saturated else (1, AIMED_FIRST if fault.aimed else 0)
    return range(first, first + step * fault.runs, step)


def run_with(fault: PlantedFault, seed: int) -> tuple[Result, list[Event]]:
    if fault.scene is not None:
        scene = fault.scene()
        return scene.run(), scene.events
    result = simulate(hostile_options(seed), seed, keep_events=True)
    return result, result.events


@pytest.mark.parametrize("fault", PLANTED, ids=lambda fault: fault.name)
def test_the_checkers_catch(fault: PlantedFault, monkeypatch: pytest.MonkeyPatch) -> None:
    caught: list[Event] = []

    def is_caught(seed: int) -> bool:
        result, caught[:] = run_with(fault, seed)
        return any(v.promise in fault.broken and v.outcome is Outcome.INVALID for v in result.verdicts)

    fault.plant(monkeypatch)
    assert first_catch("plain", fault.name, seeds_of(fault), is_caught) is not None, f"not caught in {fault.runs} runs"
    # The judges of the pipeline catch it in the same way; in parts too, which takes ten times as long.
    assert_agreement(caught, in_parts=fault in PLANTED[::8])


@pytest.mark.long
def test_without_a_planted_fault_the_same_runs_are_valid() -> None:
    for fault in PLANTED:
        if fault.scene is not None:
            assert fault.scene().run().is_valid
    assert all(simulate(hostile_options(seed), seed).is_valid for seed in caught("plain"))


def test_at_least_ten_faults_are_planted_and_the_papers_own_are_among_them() -> None:
    names = " ".join(fault.name for fault in PLANTED)
    assert len(PLANTED) >= 10
    assert "E4" in names and "E11" in names and "duplicate Commit token" in names
