"""Ways to build a propagation graph from groups, by name."""

from __future__ import annotations

from collections.abc import Generator, Mapping

from ordercast.model.errors import UsageError
from ordercast.order.tree.builders.auto import auto
from ordercast.order.tree.builders.base import Builder
from ordercast.order.tree.builders.centre import centre
from ordercast.order.tree.builders.detours import detoured
from ordercast.order.tree.builders.heuristic import heuristic_1, heuristic_2, heuristic_3, random_tree
from ordercast.order.tree.builders.shallow import shallow
from ordercast.order.tree.builders.spanning import minimum_spanning, shortest_paths
from ordercast.order.tree.given import Given, last_of
from ordercast.order.tree.graph import Graph, Memberships

BUILDERS: Mapping[str, Builder] = {
    "auto": auto,
    "shallow": shallow(),
    "heuristic-1": heuristic_1,
    "heuristic-2": heuristic_2,
    "heuristic-3": heuristic_3,
    "random": random_tree,
    "mst": minimum_spanning,
    "spt": shortest_paths,
    "centre": centre,
}
NOTHING_GIVEN = Given()


def build(name: str, groups: Memberships, given: Given = NOTHING_GIVEN) -> Graph:
    """Build the graph of these groups; the same one wherever the same is given."""
    return last_of(built(name, groups, given))


def built(name: str, groups: Memberships, given: Given = NOTHING_GIVEN) -> Generator[None, None, Graph]:
    """Build a graph in slices."""
    builder = BUILDERS.get(name)
    if builder is None:
        raise UsageError(f"there is no builder {name!r}: it is one of {', '.join(BUILDERS)}")
    parents = yield from builder(groups, given)
    parents = detoured(parents, given.forbidden) if given.forbidden else parents
    return (yield from Graph.in_slices(parents, groups))
