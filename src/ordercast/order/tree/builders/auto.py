"""The best of several graphs, by what messages would cost on them."""

from __future__ import annotations

from collections.abc import Iterator

from ordercast.order.tree.builders.base import Builder, Slices, everybody
from ordercast.order.tree.builders.centre import centre
from ordercast.order.tree.builders.heuristic import heuristic_1
from ordercast.order.tree.builders.shallow import shallow
from ordercast.order.tree.given import Given
from ordercast.order.tree.graph import Graph, Memberships, Parents
from ordercast.order.tree.survey import surveyed

SIZES = (8, 16, 4, 32)  # of clusters
HALF = 0.55  # of the processes: two clusters, where groups meet everywhere
MANY = 1_000  # groups; with more only the first two sizes are tried
HEURISTIC_MAX = 64  # groups; with more it makes chains, and takes long to make them


def auto(groups: Memberships, given: Given) -> Slices:
    """Return the forest with the lowest score; of several the first."""
    best: Parents = {}
    lowest = float("inf")
    for builder in _candidates(groups):
        parents = yield from builder(groups, given)
        graph = yield from Graph.in_slices(parents, groups)
        found = yield from surveyed(graph, given)
        if found.score < lowest:
            best, lowest = parents, found.score
    return best


def _candidates(groups: Memberships) -> Iterator[Builder]:
    half = round(HALF * len(everybody(groups)))
    yield from map(shallow, (*SIZES, half) if len(groups) <= MANY else SIZES[:2])
    yield centre
    if len(groups) <= HEURISTIC_MAX:
        yield heuristic_1
