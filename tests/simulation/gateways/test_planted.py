"""The judges are worth what they catch: every planted fault."""

from __future__ import annotations

import pytest

from tests.simulation.gateways.planted import PLANTED, PlantedFault
from tests.simulation.gateways.scenes import SCENES, Scene, judged

CAUGHT = tuple(fault for fault in PLANTED if fault.seeds or fault.scene)


@pytest.mark.parametrize("fault", CAUGHT, ids=lambda fault: fault.name)
def test_every_planted_fault_is_caught(fault: PlantedFault, monkeypatch: pytest.MonkeyPatch) -> None:
    fault.plant(monkeypatch)
    assert fault.is_caught(), f"not caught in {fault.scene or fault.seeds}"


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
def test_without_a_planted_fault_nothing_is_wrong_with_a_scene(scene: Scene) -> None:
    assert judged(scene) == []
