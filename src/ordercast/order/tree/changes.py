"""What the manager decides: the forest of the next epoch. Pure, and the same wherever the same is known.

Most changes keep all edges. Trees that come to share a group are grafted: the smaller roots are hung under the root of
the largest. A component whose processes are not those of whole trees is built anew. Trees of which nothing changes go
on undisturbed, under the epoch in which they were born.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import NamedTuple

from ordercast.model.ids import ProcessId
from ordercast.order.tree.builders import build
from ordercast.order.tree.control import Opening
from ordercast.order.tree.forest import Forest, Tree, digest_of
from ordercast.order.tree.graph import Graph, Memberships, Parents

DEPTH_MAX = 5  # a forest that has grown deeper is built anew


class ChangeKind(Enum):
    KEPT = "kept"
    GRAFTED = "grafted"
    BUILT = "built"


class ForestChange(NamedTuple):
    opening: Opening
    kinds: tuple[ChangeKind, ...]


def components(groups: Memberships) -> list[Memberships]:
    """Return the groups that are joined by common members, in the order of their lowest process."""
    leaders: dict[ProcessId, ProcessId] = {}

    def leader(node: ProcessId) -> ProcessId:
        while leaders.setdefault(node, node) != node:
            leaders[node] = leaders[leaders[node]]
            node = leaders[node]
        return node

    for members in groups.values():
        first, *others = sorted(members)
        for other in others:
            one, two = sorted((leader(first), leader(other)))
            leaders[two] = one
        leader(first)
    found: dict[ProcessId, dict[str, frozenset[ProcessId]]] = defaultdict(dict)
    for name in sorted(groups):
        found[leader(min(groups[name]))][name] = groups[name]
    return [found[one] for one in sorted(found)]


def next_opening(
    number: int,
    through: int,
    directory: Memberships,
    forest: Forest,
    disturbed: Iterable[str] | None,  # groups whose trees close whatever they are; None: all
    builder: str,
) -> ForestChange:
    names = None if disturbed is None else set(disturbed)
    born: list[Parents] = []
    kinds: list[ChangeKind] = []
    going_on: set[tuple[int, ProcessId]] = set()
    for groups in components(directory):
        nodes = frozenset().union(*groups.values())
        old = sorted({tree.id: tree for node in nodes if (tree := forest.of(node)) is not None}.items())
        trees = [tree for _, tree in old]
        if len(trees) == 1 and _goes_on(trees[0], nodes, groups, names):
            going_on.add(trees[0].id)
            continue
        parents, kind = _parents(nodes, groups, trees, builder)
        born.append(parents)
        kinds.append(kind)
    closing = tuple(id for id in sorted(forest.trees) if id not in going_on)
    return ForestChange(Opening(number, through, digest_of(directory), closing, tuple(born)), tuple(kinds))


def _goes_on(tree: Tree, nodes: frozenset[ProcessId], groups: Memberships, disturbed: set[str] | None) -> bool:
    if disturbed is None or not disturbed.isdisjoint(groups):
        return False
    return tree.graph.parents.keys() == nodes and tree.graph.groups == groups


def _parents(
    nodes: frozenset[ProcessId], groups: Memberships, trees: list[Tree], builder: str
) -> tuple[Parents, ChangeKind]:
    if trees and all(nodes.issuperset(tree.nodes) for tree in trees):
        trees.sort(key=lambda tree: (-len(tree.graph.parents), tree.root))
        main = trees[0]
        parents: dict[ProcessId, ProcessId | None] = {}
        for tree in trees:
            parents.update(tree.graph.parents)
            parents[tree.root] = None if tree is main else main.root
        parents.update((node, main.root) for node in nodes - parents.keys())
        graph = Graph(parents, groups)
        if max(map(graph.depth, nodes)) <= DEPTH_MAX:
            is_kept = len(trees) == 1 and len(main.graph.parents) == len(nodes)
            return parents, ChangeKind.KEPT if is_kept else ChangeKind.GRAFTED
    return build(builder, groups).parents, ChangeKind.BUILT


def trees_of(opening: Opening, directory: Memberships) -> list[Tree]:
    """Return the trees that are born; NoGraph when they are none."""
    wanted: dict[ProcessId, list[str]] = defaultdict(list)
    for name, members in directory.items():
        for member in members:
            wanted[member].append(name)
    trees = []
    for parents in opening.born:
        names = sorted({name for node in parents for name in wanted.get(node, ())})
        trees.append(Tree(opening.number, Graph(parents, {name: directory[name] for name in names})))
    return trees


def applied(directory: Memberships, process: ProcessId, gained: Iterable[str], lost: Iterable[str]) -> Memberships:
    """Return the directory after a process has said what it wants, and no longer."""
    changed: dict[str, frozenset[ProcessId]] = dict(directory)
    for name in lost:
        changed[name] = changed.get(name, frozenset()) - {process}
        if not changed[name]:
            del changed[name]
    for name in gained:
        changed[name] = changed.get(name, frozenset()) | {process}
    return changed


def wants_of(directory: Mapping[str, frozenset[ProcessId]], process: ProcessId) -> tuple[str, ...]:
    return tuple(sorted(name for name, members in directory.items() if process in members))
