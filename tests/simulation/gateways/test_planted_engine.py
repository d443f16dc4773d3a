"""The shipped checkers and swarm are worth what they catch: every fault planted in the shipped engine of several rings.

Those that the design names are sought in every run of the tests, the others in the long ones.
"""

from __future__ import annotations

import pytest

from ordercast.sim.ring_episodes import EPISODES_FIRST
from tests.simulation.catches import first_catch
from tests.simulation.gateways.planted_engine import NAMED, PLANTED, RUNS, EngineFault, complaint

MARKED = [
    pytest.param(fault, id=fault.name, marks=() if fault.name in NAMED else pytest.mark.long) for fault in PLANTED
]


@pytest.mark.parametrize("fault", MARKED)
def test_the_checkers_catch(fault: EngineFault, monkeypatch: pytest.MonkeyPatch) -> None:
    fault.plant(monkeypatch)
    seeds = range(EPISODES_FIRST, EPISODES_FIRST + RUNS)
    found = first_catch("gateways", fault.name, seeds, lambda seed: bool(complaint(fault, seed)))
    assert found is not None, f"not caught in {RUNS} runs"


def test_all_that_the_design_names_is_planted() -> None:
    assert {fault.name for fault in PLANTED} >= NAMED
