"""The judges of replicated state are worth what they catch: every planted fault, within a stated number of runs."""

from __future__ import annotations

from functools import partial

import pytest

from ordercast.checker import Outcome
from ordercast.model.promises import AnyPromise, ReplicaPromise
from ordercast.replicated.core import Core
from ordercast.sim.run import Result, simulate
from ordercast.sim.swarm import hostile_replica_options

from .catches import first_catch
from .planted_replicas import PLANTED, PlantedFault


def _broken(result: Result) -> set[AnyPromise | None]:
    return {verdict.promise for verdict in result.verdicts if verdict.outcome is Outcome.INVALID}


@pytest.mark.parametrize("fault", PLANTED, ids=lambda fault: fault.name)
def test_the_judges_catch(fault: PlantedFault, monkeypatch: pytest.MonkeyPatch) -> None:
    fault.plant(monkeypatch)
    monkeypatch.setattr(Core, "check_invariants", lambda self: None)
    seeds = range(fault.first, fault.first + fault.runs)
    seed = first_catch("replicated", fault.name, seeds, partial(_is_caught, fault))
    assert seed is not None, f"not caught in {fault.runs} runs"


def _is_caught(fault: PlantedFault, seed: int) -> bool:
    """By a judge; or a replica finds itself in a state that cannot be."""
    try:
        return bool(_broken(fault.run(seed)) & fault.broken)
    except AssertionError:
        return True


def test_the_groups_promises_hold_whatever_the_replicas_do(monkeypatch: pytest.MonkeyPatch) -> None:
    PLANTED[0].plant(monkeypatch)
    monkeypatch.setattr(Core, "check_invariants", lambda self: None)
    broken = [promise for seed in range(3) for promise in _broken(simulate(hostile_replica_options(seed), seed))]
    assert broken and all(isinstance(promise, ReplicaPromise) for promise in broken)
