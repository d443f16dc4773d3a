"""Daemons of one cluster with different engines know each other by the ids in their packets."""

from __future__ import annotations

import pytest

from ordercast.model.ids import MAIN, NodeId
from ordercast.model.inputs import Lane
from ordercast.networks.assembly import assembled
from ordercast.networks.config import NetworksConfig
from ordercast.sim.options import SimOptions


@pytest.mark.parametrize("engine", ["adaptive", "gateways", "tree"])
def test_each_engine_is_known_to_a_ring_and_knows_it(engine: str) -> None:
    ring, other = (assembled(name, NodeId(1), SimOptions(), NetworksConfig()) for name in ("ring", engine))
    assert ring.other_engines[other.cluster(MAIN, Lane.DATA)] == engine
    assert other.other_engines[ring.cluster(MAIN, Lane.DATA)] == "ring"
