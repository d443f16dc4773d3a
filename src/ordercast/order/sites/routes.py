"""Trees: how what a fragment says spreads to all others. One tree for each source, equal at everybody.

Shortest paths by directed costs, ties by fewer hops, then by the smaller rank of the parent. Whole numbers only.
"""

from __future__ import annotations

from collections.abc import Sequence

from ordercast.order.sites.views import SiteEdge

SourceTree = tuple[int | None, ...]  # the parent of each rank; None: the source itself, or out of reach


def costs_of(count: int, edges: Sequence[SiteEdge]) -> dict[int, dict[int, int]]:
    """Return what it costs from one rank to another, where an edge joins them."""
    costs: dict[int, dict[int, int]] = {rank: {} for rank in range(count)}
    for edge in edges:
        costs[edge.low][edge.high] = edge.forth
        costs[edge.high][edge.low] = edge.back
    return costs


def tree_of(source: int, count: int, edges: Sequence[SiteEdge]) -> SourceTree:
    """Return the tree on which what `source` says spreads over so many fragments."""
    costs = costs_of(count, edges)
    parents: list[int | None] = [None] * count
    best: dict[int, tuple[int, int, int]] = {source: (0, 0, -1)}
    done: set[int] = set()
    while fresh := [rank for rank in best if rank not in done]:
        rank = min(fresh, key=lambda one: (best[one], one))
        done.add(rank)
        cost, hops, parent = best[rank]
        parents[rank] = parent if rank != source else None
        for other, more in costs[rank].items():
            offer = cost + more, hops + 1, rank
            if other not in done and (other not in best or offer < best[other]):
                best[other] = offer
    return tuple(parents)


def trees_of(count: int, edges: Sequence[SiteEdge]) -> tuple[SourceTree, ...]:
    """Return the tree of each source."""
    return tuple(tree_of(source, count, edges) for source in range(count))


def children(tree: SourceTree, rank: int) -> tuple[int, ...]:
    """Return those to whom a fragment passes on what comes down a tree."""
    return tuple(child for child, parent in enumerate(tree) if parent == rank)


def reaches(tree: SourceTree, rank: int) -> int:
    """Return the fragments at and below a rank of a tree, as bits."""
    mask = 1 << rank
    for child in children(tree, rank):
        mask |= reaches(tree, child)
    return mask


def total_cost(trees: Sequence[SourceTree], edges: Sequence[SiteEdge]) -> int:
    """Return the costs of all paths from sources to everybody, over edges that have these costs now."""
    costs, total = costs_of(len(trees), edges), 0
    for tree in trees:
        for rank in range(len(tree)):
            while (parent := tree[rank]) is not None:
                total += costs[parent][rank]
                rank = parent
    return total


def used_edges(count: int, edges: Sequence[SiteEdge]) -> tuple[SiteEdge, ...]:
    """Return the edges that some tree uses."""
    pairs = {
        frozenset((parent, child))
        for tree in trees_of(count, edges)
        for child, parent in enumerate(tree)
        if parent is not None
    }
    return tuple(edge for edge in edges if frozenset((edge.low, edge.high)) in pairs)
