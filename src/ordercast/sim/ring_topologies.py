"""Networks of rings by the names of their topologies: which hosts are on which segments.

Gateways are the first hosts; the others are spread over the rings.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from enum import Enum
from random import Random

from ordercast.model.errors import UsageError
from ordercast.order.gateways.promised import ENGINE as GATEWAYS
from ordercast.sim.options import SimOptions
from ordercast.sim.topology import SEGMENTS_MAX, Attachments
from ordercast.wire.head import cluster_id_from

RINGS_MAX = 4  # that a swarm draws
RINGS = 3  # of a topology that is asked for by its name alone

Joined = list[tuple[int, ...]]  # the segments of each gateway
Sides = tuple[tuple[int, ...], tuple[int, ...]]  # of the hosts of a segment


class RingTopology(Enum):
    """How gateways join rings."""

    LINE = "line"  # each ring to the next
    CYCLE = "cycle"  # and the last to the first
    PARALLEL = "parallel"  # two gateways between two rings
    STAR = "star"  # one ring to all others, by a gateway each
    HUB = "hub"  # one gateway on all rings
    DOUBLE_LINE = "double-line"  # each ring to the next, by two gateways
    RANDOM = "random"  # a tree, and some gateways more


def drawn_attachments(nodes: int, rng: Random, topology: RingTopology | None = None) -> Attachments:
    """Return the segments of each host, as swarms draw them: of this topology, or of any."""
    rings = rng.randrange(2, RINGS_MAX + 1)
    drawn = rng.choice(tuple(RingTopology))
    gateways = _JOINED[topology or drawn](rings, rng)
    return _spread(gateways if len(gateways) <= nodes else _line(2, rng), nodes)


def attachments_of(topology: RingTopology, rings: int | None, nodes: int, rng: Random) -> Attachments:
    """Return the segments of each host, of as many as there shall be. UsageError when they are too few."""
    rings = rings or (2 if topology is RingTopology.PARALLEL else RINGS)
    most = 2 if topology is RingTopology.PARALLEL else SEGMENTS_MAX
    if not 2 <= rings <= most:
        raise UsageError(f"topology {topology.value!r} has 2 to {most} rings, not {rings}: write --rings")
    gateways = _JOINED[topology](rings, rng)
    if len(gateways) > nodes:
        raise UsageError(f"topology {topology.value!r} of {rings} rings needs {len(gateways)} hosts: write --nodes")
    return _spread(gateways, nodes)


def topology_from(name: str) -> RingTopology:
    """Return the topology of this name. UsageError when there is none."""
    topologies = {topology.value: topology for topology in RingTopology}
    if name not in topologies:
        raise UsageError(f"there is no topology {name!r}: choose among {', '.join(topologies)}")
    return topologies[name]


def attached(options: SimOptions, attachments: Attachments) -> SimOptions:
    """The same with as many hosts as have attachments; those who come in addition have one vote each."""
    nodes, weights = len(attachments), options.replica_weights
    weights = (*weights, *(1,) * nodes)[:nodes] if weights else ()
    founders = min(options.founders, nodes)
    return replace(options, nodes=nodes, attachments=attachments, replica_weights=weights, founders=founders)


def domain_name(segment: int) -> str:
    return f"segment{segment}"


def clusters_of(options: SimOptions) -> list[bytes]:
    """Return the cluster ids of all rings."""
    name = options.sizes.cluster
    if options.engine != GATEWAYS:
        return [cluster_id_from(name)]
    return [cluster_id_from(name, GATEWAYS, domain_name(segment)) for segment in range(options.segments)]


def _spread(gateways: Joined, nodes: int) -> Attachments:
    rings = 1 + max(segment for segments in gateways for segment in segments)
    others = [(number % rings,) for number in range(nodes - len(gateways))]
    return (*gateways, *others)


def twice_joined(rng: Random) -> Attachments:
    """Return the segments of each host of rings that two ways join, so that halves of one stay connected."""
    gateways = rng.choice((_parallel, _cycle, _double_line))(rng.randrange(2, 4), rng)
    rings = 1 + max(segment for segments in gateways for segment in segments)
    return (*gateways, *((number % rings,) for number in range(rng.randrange(2, 5))))


def is_gateway(attachments: Attachments, node: int) -> bool:
    return len(attachments[node]) > 1


def sides_between_gateways(hosts: list[int], attachments: Attachments, rng: Random) -> Sides:
    """Return two sides of a segment: with a gateway on each, if there are two."""
    gateways = [node for node in hosts if is_gateway(attachments, node)]
    rng.shuffle(gateways)
    one, other = gateways[:1], gateways[1:2]
    for node in hosts:
        if node not in gateways[:2]:
            rng.choice((one, other)).append(node)
    return tuple(sorted(one)), tuple(sorted(other))


def _line(rings: int, _: Random) -> Joined:
    return [(ring, ring + 1) for ring in range(rings - 1)]


def _cycle(rings: int, _: Random) -> Joined:
    return [(ring, (ring + 1) % rings) for ring in range(rings)] if rings > 2 else [(0, 1), (1, 0)]


def _parallel(_: int, __: Random) -> Joined:
    return [(0, 1), (1, 0)]


def _star(rings: int, _: Random) -> Joined:
    return [(0, ring) for ring in range(1, rings)]


def _hub(rings: int, _: Random) -> Joined:
    return [tuple(range(rings))]


def _double_line(rings: int, _: Random) -> Joined:
    return [(ring, ring + 1) for ring in range(rings - 1) for _ in range(2)]


def _random(rings: int, rng: Random) -> Joined:
    tree: Joined = [(rng.randrange(ring), ring) for ring in range(1, rings)]
    more = [tuple(rng.sample(range(rings), 2)) for _ in range(rng.randrange(3))]
    return tree + more


_JOINED: dict[RingTopology, Callable[[int, Random], Joined]] = {
    RingTopology.LINE: _line,
    RingTopology.CYCLE: _cycle,
    RingTopology.PARALLEL: _parallel,
    RingTopology.STAR: _star,
    RingTopology.HUB: _hub,
    RingTopology.DOUBLE_LINE: _double_line,
    RingTopology.RANDOM: _random,
}
