"""Networks of rings as swarms draw them: which hosts are on which segments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

from ordercast.sim.options import SimOptions
from ordercast.sim.topology import Attachments

RINGS_MAX = 4
AMBUSHES, FAULTS = 12, 16  # of a run that aims at merges

Joined = list[tuple[int, ...]]  # the segments of each gateway


def drawn_attachments(nodes: int, rng: Random) -> Attachments:
    """Return the segments of each host: some hosts join rings, the others are spread over them."""
    rings = rng.randrange(2, RINGS_MAX + 1)
    gateways = rng.choice(_KINDS)(rings, rng)
    if len(gateways) > nodes:
        gateways = _line(2, rng)
    rings = 1 + max(segment for segments in gateways for segment in segments)
    others = [(number % rings,) for number in range(nodes - len(gateways))]
    return (*gateways, *others)


def aimed_ring_options(options: SimOptions, rng: Random) -> SimOptions:
    """Return options that aim at merges: rings that two ways join, so that halves stay connected, cut again and again,
    mostly at the moment at which a process marks or speaks."""
    gateways = rng.choice((_parallel, _cycle, _double_line))(rng.randrange(2, 4), rng)
    rings = 1 + max(segment for segments in gateways for segment in segments)
    others = [(number % rings,) for number in range(rng.randrange(2, 5))]
    return replace(
        options,
        nodes=len(gateways) + len(others),
        attachments=(*gateways, *others),
        ambushes=AMBUSHES,
        random_faults=max(options.random_faults, FAULTS),
        faults=(),
        rates=(),
        links=(),
        slow_hosts=(),
    )


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


_KINDS: tuple[Callable[[int, Random], Joined], ...] = (_line, _cycle, _parallel, _star, _hub, _double_line, _random)
