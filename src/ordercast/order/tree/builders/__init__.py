"""Ways to build a propagation graph from groups, by name."""

from __future__ import annotations

from collections.abc import Mapping

from ordercast.model.errors import UsageError
from ordercast.order.tree.builders.base import Builder, Given
from ordercast.order.tree.builders.centre import centre
from ordercast.order.tree.builders.heuristic import heuristic_1, heuristic_2, heuristic_3, random_tree
from ordercast.order.tree.graph import Graph, Memberships

BUILDERS: Mapping[str, Builder] = {
    "heuristic-1": heuristic_1,
    "heuristic-2": heuristic_2,
    "heuristic-3": heuristic_3,
    "random": random_tree,
    "centre": centre,
}
NOTHING_GIVEN = Given()


def build(name: str, groups: Memberships, given: Given = NOTHING_GIVEN) -> Graph:
    """Build the graph of these groups; the same one wherever the same is given."""
    builder = BUILDERS.get(name)
    if builder is None:
        raise UsageError(f"there is no builder {name!r}: it is one of {', '.join(BUILDERS)}")
    return Graph(builder(groups, given), groups)
