"""A ring inside an engine that passes it through: all swarms hold, and every run is the ring's own."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from ordercast.model.ids import NodeId
from ordercast.order.engine import Engine
from ordercast.sim.options import SimOptions
from ordercast.sim.run import engine_of, simulate
from ordercast.sim.swarm import options_of
from tests.engines.enclosing import Enclosing


def _enclosed(options: SimOptions, node: NodeId) -> Engine:
    return Enclosing(engine_of(options, True, node))


KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "groups": {"groups": True},
    "replicated": {"replicated": True},
    "networks": {"networks": True},
}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", KINDS)
def test_a_ring_that_is_passed_through_is_the_ring(kind: str, seed: int) -> None:
    options = options_of(seed, **KINDS[kind])
    enclosed = simulate(options, seed, make_engine=partial(_enclosed, options))
    assert enclosed.is_valid, enclosed.verdict.sentence
    assert enclosed.digest == simulate(options, seed).digest
