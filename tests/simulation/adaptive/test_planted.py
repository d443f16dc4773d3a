"""Faults planted in the adaptive engine: the checkers and the witness catch each of them."""

from __future__ import annotations

import pytest

from .planted import FAULTS, PlantedFault, findings


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_planted_fault_is_caught(fault: PlantedFault) -> None:
    assert findings(fault, fault.seed) & fault.broken
