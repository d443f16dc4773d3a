"""Forests without edges that have failed."""

from __future__ import annotations

from ordercast.model.ids import ProcessId
from ordercast.order.tree.graph import Parents

_Edge = tuple[ProcessId, ProcessId]


def edge_of(one: ProcessId, other: ProcessId) -> _Edge:
    """Return an edge as it is named, either way."""
    return (one, other) if one < other else (other, one)


def detoured(parents: Parents, forbidden: frozenset[_Edge]) -> Parents:
    """Return a forest with the same trees that has none of these edges, as far as there is a way around.

    A process whose edge is forbidden is hung below a sibling, and keeps all its ancestors; an only child below its
    grandparent. Two processes that are alone in their tree have no other edge.
    """
    result = dict(parents)
    for child in sorted(parents):
        above = result[child]
        if above is not None and edge_of(child, above) in forbidden:
            result[child] = _other_parent(child, above, result, forbidden)
    return result


def _other_parent(child: ProcessId, above: ProcessId, parents: Parents, forbidden: frozenset[_Edge]) -> ProcessId:
    siblings = sorted(node for node, parent in parents.items() if parent == above and node != child)
    grandparent = parents[above]
    candidates = [*siblings, *([] if grandparent is None else [grandparent])]
    return next((node for node in candidates if edge_of(child, node) not in forbidden), above)
