"""Replicas with journals through power cuts of all hosts: nothing confirmed is lost, and planted faults are caught."""

from __future__ import annotations

from functools import partial

import pytest

from ordercast.checker import Outcome
from ordercast.model.errors import UsageError
from ordercast.replicated.core import Core
from ordercast.sim.run import simulate
from ordercast.sim.swarm import DURABLE_FIRST, hostile_replica_options

from .catches import first_catch
from .planted_journal import PLANTED_IN_JOURNALS, PlantedInJournal

# 2000376: members whose disks take longer than the patience with them opened round after round, for ever; 2001880: the
# disk of the simulator forgot what was safe.
REGRESSIONS = 2_000_376, 2_001_880


@pytest.mark.parametrize("seed", [*range(DURABLE_FIRST, DURABLE_FIRST + 2), *REGRESSIONS])
def test_nothing_confirmed_is_lost_over_power_cuts(seed: int) -> None:
    result = simulate(hostile_replica_options(seed), seed)
    assert result.is_valid
    assert result.counts["replicas: the power of all hosts failed"]
    assert result.counts["replicas: began with what its journal knew"]


@pytest.mark.parametrize("fault", PLANTED_IN_JOURNALS, ids=lambda fault: fault.name)
def test_the_judges_catch(fault: PlantedInJournal, monkeypatch: pytest.MonkeyPatch) -> None:
    fault.plant(monkeypatch)
    monkeypatch.setattr(Core, "check_invariants", lambda self: None)
    seeds = range(fault.first, fault.first + fault.runs)
    assert first_catch("journals", fault.name, seeds, partial(_is_caught, fault)) is not None


def _is_caught(fault: PlantedInJournal, seed: int) -> bool:
    """By a judge; or a replica finds that its journal cannot be, or itself in a state that cannot be."""
    try:
        verdicts = simulate(fault.options(seed), seed).verdicts
    except (AssertionError, UsageError):
        return True
    return any(verdict.outcome is Outcome.INVALID and verdict.promise in fault.broken for verdict in verdicts)
