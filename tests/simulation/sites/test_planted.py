"""Faults planted in the sites engine: the checkers catch each of them."""

from __future__ import annotations

import pytest

from tests.simulation.catches import first_catch

from .planted import FAULTS, PlantedFault, findings


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_planted_fault_is_caught(fault: PlantedFault) -> None:
    seeds = range(fault.first, fault.first + fault.runs)
    seed = first_catch("sites", fault.name, seeds, lambda one: bool(findings(fault, one) & fault.broken))
    assert seed is not None, f"{fault.name} was not caught in {fault.runs} runs"
