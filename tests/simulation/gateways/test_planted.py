"""The judges are worth what they catch: every planted fault."""

from __future__ import annotations

import pytest

from tests.simulation.gateways.planted import PLANTED, PlantedFault

CAUGHT = tuple(fault for fault in PLANTED if fault.seeds)


@pytest.mark.parametrize("fault", CAUGHT, ids=lambda fault: fault.name)
def test_every_planted_fault_is_caught(fault: PlantedFault, monkeypatch: pytest.MonkeyPatch) -> None:
    fault.plant(monkeypatch)
    assert any(fault.run(seed).judge() for seed in fault.seeds), f"not caught in {fault.seeds}"
