"""A ring inside an engine that passes it through: all swarms hold, and every run is the ring's own."""

from __future__ import annotations

from functools import partial

import pytest

from ordercast.model.ids import NodeId
from ordercast.order.engine import Engine
from ordercast.sim.options import SimOptions
from ordercast.sim.run import engine_of, simulate
from ordercast.sim.swarm import SwarmKind, options_of
from tests.engines.enclosing import Enclosing


def _enclosed(options: SimOptions, node: NodeId) -> Engine:
    return Enclosing(engine_of(options, True, node))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", SwarmKind)
def test_a_ring_that_is_passed_through_is_the_ring(kind: SwarmKind, seed: int) -> None:
    options = options_of(seed, kind)
    enclosed = simulate(options, seed, make_engine=partial(_enclosed, options))
    assert enclosed.is_valid, enclosed.verdict.sentence
    assert enclosed.digest == simulate(options, seed).digest
