"""What the manager decides: the forest of the next epoch. Pure, in slices, and the same wherever the same is known.

Most changes keep all edges. Trees that come to share a group are grafted: the smaller roots are hung under the root of
the largest. A component whose processes are not those of whole trees is built anew. Trees of which nothing changes go
on undisturbed, under the epoch in which they were born; now and then one is built anew because it would cost less.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from enum import Enum
from typing import NamedTuple

from ordercast.model.ids import ProcessId
from ordercast.order.tree.builders import built
from ordercast.order.tree.builders.components import components
from ordercast.order.tree.builders.detours import edge_of
from ordercast.order.tree.control import Opening
from ordercast.order.tree.directory import Directory
from ordercast.order.tree.forest import Forest, Tree, TreeId
from ordercast.order.tree.given import Given
from ordercast.order.tree.graph import Graph, Memberships, NoGraph, Parents
from ordercast.order.tree.survey import surveyed

DEPTH_MAX = 5  # a forest that has grown deeper is built anew
PAYS = 0.75  # a tree is built anew when messages would cost at most this part of what they do


class ChangeKind(Enum):
    KEPT = "kept"
    GRAFTED = "grafted"
    BUILT = "built"
    REBUILT = "rebuilt"


class ForestChange(NamedTuple):
    opening: Opening
    kinds: tuple[ChangeKind, ...]


Planning = Generator[None, None, ForestChange | None]


def next_opening(
    opening: Opening,  # without trees
    directory: Directory,
    forest: Forest,
    disturbed: Iterable[str] | None,  # groups whose trees close whatever they are; None: all
    builder: str,
    given: Given,
) -> Planning:
    """Plan the forest of a directory."""
    names = None if disturbed is None else set(disturbed)
    born: list[Parents] = []
    kinds: list[ChangeKind] = []
    going_on: set[TreeId] = set()
    for part in (yield from components(directory.groups)):
        groups = {name: directory.groups[name] for name in part}
        nodes = frozenset().union(*groups.values())
        old = sorted({tree.id: tree for node in nodes if (tree := forest.of(node)) is not None}.items())
        trees = [tree for _, tree in old]
        yield
        if len(trees) == 1 and _goes_on(trees[0], nodes, groups, names):
            going_on.add(trees[0].id)
            continue
        parents, kind = yield from _parents(nodes, groups, trees, builder, given)
        born.append(parents)
        kinds.append(kind)
    closing = tuple(id for id in sorted(forest.trees) if id not in going_on)
    return ForestChange(opening._replace(closing=closing, born=tuple(born)), tuple(kinds))


def better_opening(opening: Opening, forest: Forest, builder: str, given: Given) -> Planning:
    """Plan which trees are built anew because it pays; None if none is."""
    closing: list[TreeId] = []
    born: list[Parents] = []
    for id, tree in sorted(forest.trees.items()):
        present = yield from surveyed(tree.graph, given)
        graph = yield from built(builder, tree.graph.groups, given)
        found = yield from surveyed(graph, given)
        if found.score <= PAYS * present.score:
            closing.append(id)
            born.append(graph.parents)
    if not closing:
        return None
    return ForestChange(opening._replace(closing=tuple(closing), born=tuple(born)), (ChangeKind.REBUILT,) * len(born))


def _goes_on(tree: Tree, nodes: frozenset[ProcessId], groups: Memberships, disturbed: set[str] | None) -> bool:
    if disturbed is None or not disturbed.isdisjoint(groups):
        return False
    return tree.graph.parents.keys() == nodes and tree.graph.groups == groups


def _parents(
    nodes: frozenset[ProcessId], groups: Memberships, trees: list[Tree], builder: str, given: Given
) -> Generator[None, None, tuple[Parents, ChangeKind]]:
    if trees and all(nodes.issuperset(tree.nodes) for tree in trees):
        trees.sort(key=lambda tree: (-len(tree.graph.parents), tree.root))
        main = trees[0]
        parents: dict[ProcessId, ProcessId | None] = {}
        for tree in trees:
            parents.update(tree.graph.parents)
            parents[tree.root] = None if tree is main else main.root
        parents.update((node, main.root) for node in nodes - parents.keys())
        graph = yield from Graph.in_slices(parents, groups)
        if max(map(graph.depth, nodes)) <= DEPTH_MAX and not _is_forbidden(parents, given):
            is_kept = len(trees) == 1 and len(main.graph.parents) == len(nodes)
            return parents, ChangeKind.KEPT if is_kept else ChangeKind.GRAFTED
    graph = yield from built(builder, groups, given)
    return graph.parents, ChangeKind.BUILT


def _is_forbidden(parents: Parents, given: Given) -> bool:
    """Whether a forest has an edge that has failed."""
    edges = (edge_of(node, above) for node, above in parents.items() if above is not None) if given.forbidden else ()
    return any(edge in given.forbidden for edge in edges)


def trees_of(opening: Opening, directory: Directory, members: frozenset[ProcessId], forest: Forest) -> list[Tree]:
    """Return the trees that are born. NoGraph when they are none, or not of members who are in no other tree."""
    gone = set(opening.closing)
    if not gone <= forest.trees.keys():
        raise NoGraph("a tree closes that there is not")
    placed: set[ProcessId] = set()
    trees = []
    for parents in opening.born:
        if not members >= parents.keys():
            raise NoGraph(f"{min(parents.keys() - members)} is in the forest, and no member")
        taken = [node for node in parents if (tree := forest.of(node)) is not None and tree.id not in gone]
        if taken or not placed.isdisjoint(parents):
            raise NoGraph(f"{min([*taken, *placed.intersection(parents)])} is in two trees")
        placed.update(parents)
        graph = Graph(parents, directory.groups_of(parents))
        if len(graph.trees()) != 1:
            raise NoGraph(f"there are {len(graph.trees())} roots in one tree")
        trees.append(Tree(opening.number, graph))
    return trees
