"""A ring inside an engine that passes it through: all swarms hold, and every run is the ring's own."""

from __future__ import annotations

from functools import partial

import pytest

from ordercast.model.ids import NodeId
from ordercast.order.engine import Engine
from ordercast.sim.options import SimOptions
from ordercast.sim.rosters import with_rosters
from ordercast.sim.run import engine_of, simulate
from ordercast.sim.swarm import hostile_options
from tests.engines.enclosing import Enclosing

from .digests import SWARMS, recorded


def _enclosed(options: SimOptions, node: NodeId) -> Engine:
    return Enclosing(engine_of(options, True, node))


@pytest.mark.parametrize("number", [0, pytest.param(1, marks=pytest.mark.long)])
@pytest.mark.parametrize("kind", [kind for kind, swarm in SWARMS.items() if "--engine" not in swarm.words])
def test_a_ring_that_is_passed_through_is_the_ring(kind: str, number: int) -> None:
    seed = SWARMS[kind].seeds[number]
    options = SWARMS[kind].options_of(seed)
    enclosed = simulate(options, seed, make_engine=partial(_enclosed, options))
    assert enclosed.is_valid, enclosed.verdict.sentence
    assert enclosed.digest == recorded()[kind, seed]


def test_a_ring_with_a_node_list_too() -> None:
    options = with_rosters(hostile_options(1), 1)
    enclosed = simulate(options, 1, make_engine=partial(_enclosed, options))
    assert enclosed.is_valid, enclosed.verdict.sentence
    assert enclosed.digest == simulate(options, 1).digest
