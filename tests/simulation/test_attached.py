"""A ring in a network of rings, alone in it, on the hostile network: all that a ring promises holds of what it hands
up, and so do the rules that the network is built on."""

from __future__ import annotations

import pytest

from ordercast.checker.verdict import Outcome
from ordercast.model.promises import RestPromise
from ordercast.sim.run import simulate
from ordercast.sim.swarm import hostile_options
from tests.engines.attached import AttachedAlone, Network


@pytest.mark.parametrize("seed", [2, 5, 11, 23])
def test_what_is_handed_up_is_what_a_ring_delivers(seed: int) -> None:
    options, network = hostile_options(seed), Network()
    result = simulate(options, seed, make_engine=lambda node: AttachedAlone(node, options.ring, network))
    broken = [
        one.sentence
        for one in result.verdicts
        if one.outcome is Outcome.INVALID and not isinstance(one.promise, RestPromise)  # it sees users' packets alone
    ]
    assert result.settled and not broken
    assert len(network.ticks) > 20
