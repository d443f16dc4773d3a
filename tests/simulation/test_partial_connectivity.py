"""Connectivity that is not all-to-all, which the paper assumes away: views settle, and then nothing changes."""

from __future__ import annotations

from random import Random

import pytest

from ordercast.model.ids import MILLISECOND
from ordercast.sim.faults import Fault, FaultKind
from ordercast.sim.options import SIM_RING, SimOptions
from ordercast.sim.run import simulate
from ordercast.trace.records import Event, Installed

SETTLED_CONSENSUS_TIMEOUTS = 20  # the stated bound; docs/internals/deviations.md names it
CUT_AT_NS = 300 * MILLISECOND
WATCHED_NS = 2 * SETTLED_CONSENSUS_TIMEOUTS * SIM_RING.consensus_ns  # and for as long nothing changes

Links = tuple[tuple[int, int], ...]


def _both_ways(*pairs: tuple[int, int]) -> Links:
    return tuple(sorted(link for a, b in pairs for link in ((a, b), (b, a))))


def _random_links(seed: int, nodes: int) -> Links:
    rng = Random(seed)
    density, is_symmetric = rng.choice((0.05, 0.15, 0.3, 0.5, 0.7)), rng.random() < 0.5
    links = {(a, b) for a in range(nodes) for b in range(nodes) if a != b and rng.random() < density}
    if is_symmetric:
        links |= {(b, a) for a, b in links}
    return tuple(sorted(links)) or ((0, 1),)


def _installed(links: Links, nodes: int, seed: int, cut_at: int, *, listed: bool = False) -> list[tuple[float, int]]:
    """When views were installed after the links were cut, in consensus timeouts, and how many members each has; the run
    itself must be valid."""
    found: list[tuple[float, int]] = []
    end = cut_at + WATCHED_NS

    def watch(event: Event) -> None:
        if isinstance(event, Installed) and cut_at < event.at < end:
            found.append(((event.at - cut_at) / SIM_RING.consensus_ns, len(event.configuration.members)))

    faults = (Fault(cut_at, FaultKind.CUT, links=links),)
    rosters = (tuple(range(nodes)),) * nodes if listed else ()
    options = SimOptions(nodes=nodes, messages=80, rosters=rosters, faults=faults, fault_time_ns=end)
    result = simulate(options, seed, observer=watch)
    assert result.is_valid, result.verdict.sentence
    return found


def _views_after(links: Links, nodes: int, seed: int) -> list[float]:
    return [at for at, _ in _installed(links, nodes, seed, CUT_AT_NS)]


@pytest.mark.parametrize("seed", [*range(10), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(10, 24))])
def test_random_graphs_settle_and_stay(seed: int) -> None:
    nodes = 3 + seed % 5
    assert max(_views_after(_random_links(seed, nodes), nodes, seed), default=0) <= SETTLED_CONSENSUS_TIMEOUTS


@pytest.mark.parametrize(
    ("links", "nodes"),
    [
        (_both_ways((0, 2)), 3),  # A hears B, B hears C, A does not hear C
        (((0, 1),), 3),  # one way
        (((2, 0), (2, 1)), 3),  # one that hears all and is heard by none
        (_both_ways(*((a, b) for a in range(6) for b in range(a + 2, 6))), 6),  # a line of six
        (_both_ways(*((a, b) for a in range(1, 5) for b in range(a + 1, 5))), 5),  # a star
    ],
    ids=["line of three", "one-way link", "mute member", "line of six", "star"],
)
def test_known_shapes_settle_and_stay(links: Links, nodes: int) -> None:
    assert max(_views_after(links, nodes, 1), default=0) <= SETTLED_CONSENSUS_TIMEOUTS


@pytest.mark.parametrize(
    ("links", "nodes"),
    [
        (_both_ways((0, 2)), 3),
        (_both_ways((0, 2), (1, 3)), 4),
        (_both_ways((3, 1), (3, 2)), 4),
    ],
    ids=["line of three", "circle of four", "one that reaches one"],
)
def test_links_that_are_dead_from_the_first_start_keep_nobody_apart_who_hears_another(links: Links, nodes: int) -> None:
    """Hosts with node lists that were never on a ring with each other: some come together, and then nothing changes."""
    found = _installed(links, nodes, 1, 0, listed=True)
    assert max(at for at, _ in found) <= SETTLED_CONSENSUS_TIMEOUTS
    assert max(members for _, members in found) > 1
