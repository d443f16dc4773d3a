"""Networks of rings by name: who is on which ring."""

from __future__ import annotations

from random import Random

import pytest

from ordercast.model.errors import UsageError
from ordercast.sim.options import SimOptions
from ordercast.sim.ring_topologies import RingTopology, attachments_of, drawn_attachments, topology_from
from ordercast.sim.swarm import SwarmKind, options_of
from ordercast.sim.topology import segment_count

GATEWAYS = {
    RingTopology.LINE: ((0, 1), (1, 2)),
    RingTopology.CYCLE: ((0, 1), (1, 2), (2, 0)),
    RingTopology.STAR: ((0, 1), (0, 2)),
    RingTopology.HUB: ((0, 1, 2),),
    RingTopology.DOUBLE_LINE: ((0, 1), (0, 1), (1, 2), (1, 2)),
}


@pytest.mark.parametrize("topology", GATEWAYS)
def test_gateways_come_first_and_the_others_are_spread(topology: RingTopology) -> None:
    attachments = attachments_of(topology, None, 8, Random(1))
    gateways = GATEWAYS[topology]
    assert attachments[: len(gateways)] == gateways
    assert attachments[len(gateways) :] == tuple((number % 3,) for number in range(8 - len(gateways)))


@pytest.mark.parametrize("topology", RingTopology)
def test_every_topology_can_be_simulated(topology: RingTopology) -> None:
    for nodes in range(3, 9):
        drawn = drawn_attachments(nodes, Random(nodes), topology)
        SimOptions(nodes=nodes, engine="gateways", attachments=drawn).validate()
    assert segment_count(attachments_of(topology, None, 8, Random(1))) == (
        2 if topology is RingTopology.PARALLEL else 3
    )
    assert topology_from(topology.value) is topology


def test_two_gateways_in_parallel_have_two_rings() -> None:
    assert attachments_of(RingTopology.PARALLEL, 2, 3, Random(1)) == ((0, 1), (1, 0), (0,))
    with pytest.raises(UsageError, match="'parallel' has 2 to 2 rings, not 3"):
        attachments_of(RingTopology.PARALLEL, 3, 5, Random(1))


def test_what_cannot_be_is_named() -> None:
    with pytest.raises(UsageError, match="'line' of 9 rings needs 8 hosts"):
        attachments_of(RingTopology.LINE, 9, 5, Random(1))
    with pytest.raises(UsageError, match="there is no topology 'ring': choose among line, cycle, parallel"):
        topology_from("ring")
    with pytest.raises(UsageError, match="the engine 'ring' has no network of rings"):
        options_of(1, topology=RingTopology.LINE)


@pytest.mark.parametrize("kind", SwarmKind)
def test_a_swarm_of_one_topology_has_it_in_every_run(kind: SwarmKind) -> None:
    for seed in range(12):
        options = options_of(seed, kind, "gateways", RingTopology.HUB)
        options.validate()
        assert [len(own) > 1 for own in options.attachments] == [True] + [False] * (options.nodes - 1)
