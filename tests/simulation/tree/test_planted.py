"""Faults planted in the tree engine: judges and assertions catch each of them."""

from __future__ import annotations

import pytest

from tests.simulation.catches import first_catch

from .planted import FAULTS, PlantedFault, is_caught
from .planted_groups import GROUP_FAULTS, is_caught_with_groups


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_planted_fault_is_caught(fault: PlantedFault) -> None:
    seed = first_catch("tree", fault.name, fault.seeds, lambda one: is_caught(fault, one))
    assert seed is not None, f"{fault.name} was not caught"


@pytest.mark.parametrize("fault", GROUP_FAULTS, ids=lambda fault: fault.name)
def test_a_fault_planted_in_what_groups_are_told_is_caught(fault: PlantedFault) -> None:
    seed = first_catch("tree-groups", fault.name, fault.seeds, lambda one: is_caught_with_groups(fault, one))
    assert seed is not None, f"{fault.name} was not caught"
