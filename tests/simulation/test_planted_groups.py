"""The checkers of the groups are worth what they catch: every planted fault, within a stated number of runs."""

from __future__ import annotations

from functools import partial

import pytest

from ordercast.checker import Outcome
from ordercast.groups.layer import Groups
from ordercast.model.errors import WireError
from ordercast.model.promises import AnyPromise, Promise
from ordercast.sim.aimed_swarm import AIMED_FIRST
from ordercast.sim.run import Result, simulate
from ordercast.sim.swarm import hostile_group_options
from tests.unit.pipeline.agreement import assert_clients_agree

from .catches import caught, first_catch
from .planted_groups import PLANTED, PlantedFault


def _broken(result: Result) -> set[AnyPromise | None]:
    return {verdict.promise for verdict in result.verdicts if verdict.outcome is Outcome.INVALID}


@pytest.mark.parametrize("fault", PLANTED, ids=lambda fault: fault.name)
def test_the_checkers_catch(fault: PlantedFault, monkeypatch: pytest.MonkeyPatch) -> None:
    fault.plant(monkeypatch)
    monkeypatch.setattr(Groups, "check_invariants", lambda self: None)
    first = AIMED_FIRST if fault.aimed else 0
    seeds = range(first, first + fault.runs)
    seed = first_catch("groups", fault.name, seeds, partial(_is_caught, fault))
    assert seed is not None, f"not caught in {fault.runs} runs"


def _is_caught(fault: PlantedFault, seed: int) -> bool:
    """By a checker; or the groups themselves find that somebody speaks for another's clients, and cannot go on."""
    try:
        result = simulate(hostile_group_options(seed), seed, keep_events=True)
    except (AssertionError, KeyError, WireError):
        return True
    is_caught = bool(_broken(result) & fault.broken)
    if is_caught:
        # The judges of the pipeline catch it in the same way; in parts too, which takes as long as the run.
        assert_clients_agree(result.client_events, in_parts=fault in PLANTED[::8])
    return is_caught or (fault.is_stuck and not result.settled)


@pytest.mark.long
def test_without_a_planted_fault_the_same_runs_are_valid() -> None:
    assert all(simulate(hostile_group_options(seed), seed).is_valid for seed in caught("groups"))


def test_the_daemons_promises_hold_whatever_the_groups_do(monkeypatch: pytest.MonkeyPatch) -> None:
    PLANTED[0].plant(monkeypatch)
    monkeypatch.setattr(Groups, "check_invariants", lambda self: None)
    for seed in range(2):
        assert not _broken(simulate(hostile_group_options(seed), seed)).intersection(Promise)
