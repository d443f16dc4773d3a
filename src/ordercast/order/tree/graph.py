"""The propagation graph: a forest of processes over which the messages of groups travel.

A group's messages enter at the lowest common ancestor of its members and walk down from there, each process passing
them on to those children below which there are members. Processes on the way that are no members are *extra* ones. Any
forest orders messages consistently if every group has a common ancestor (thesis, 4.4); that, and being a forest, is
what a `Graph` insists on. Pure, and immutable: whoever changes the forest makes another one.

The thesis' properties: PG1, one entry of each group, and PG2, one way from the entry to each member, hold for every
`Graph`; PG3, the entry is a member, and PG4, no extra processes, are asked for by `has_own_entry` and `extra`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator, Iterable, Mapping
from typing import Self

from ordercast.model.ids import ProcessId

Memberships = Mapping[str, frozenset[ProcessId]]  # group -> its members
Parents = Mapping[ProcessId, ProcessId | None]  # process -> its parent; None: it is a root
Routes = Mapping[ProcessId, tuple[ProcessId, ...]]  # process -> the children that it passes a message on to
CHECKED_AT_ONCE = 2_000  # groups


class NoGraph(ValueError):
    """These parents and groups make no propagation graph. It says which process or group is the reason."""


class Graph:
    """A forest, and the groups that travel over it."""

    __slots__ = ("_children", "_depths", "_entries", "_roots", "groups", "parents")

    parents: Parents
    groups: Memberships

    def __init__(self, parents: Parents, groups: Memberships) -> None:
        """Check that it is a forest with a common ancestor of each group (PG1, PG2); raises `NoGraph`."""
        for _ in self._prepared(parents, groups):
            pass

    @classmethod
    def in_slices(cls, parents: Parents, groups: Memberships) -> Generator[None, None, Self]:
        """Make a graph with stops between, for thousands of groups."""
        graph = cls.__new__(cls)
        yield from graph._prepared(parents, groups)
        return graph

    def _prepared(self, parents: Parents, groups: Memberships) -> Generator[None]:
        self.parents, self.groups = dict(parents), dict(groups)
        self._entries: dict[str, ProcessId] = {}  # as they are asked for
        self._children = _children_of(self.parents)
        yield
        self._depths, self._roots = _walked(self.parents, self._children)
        for place, (group, members) in enumerate(self.groups.items()):
            self._check(group, members)
            if place % CHECKED_AT_ONCE == 0:
                yield

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Graph) and (self.parents, self.groups) == (other.parents, other.groups)

    __hash__ = None  # type: ignore[assignment]

    # The forest

    @property
    def nodes(self) -> list[ProcessId]:
        """All processes of the forest, sorted."""
        return sorted(self.parents)

    def parent(self, node: ProcessId) -> ProcessId | None:
        return self.parents[node]

    def children(self, node: ProcessId) -> tuple[ProcessId, ...]:
        return self._children.get(node, ())

    def root(self, node: ProcessId) -> ProcessId:
        return self._roots[node]

    def depth(self, node: ProcessId) -> int:
        """Return how many edges above a process its root is."""
        return self._depths[node]

    def trees(self) -> dict[ProcessId, frozenset[ProcessId]]:
        """Return the processes of each tree, by its root, in the order of the roots."""
        found: dict[ProcessId, set[ProcessId]] = defaultdict(set)
        for node, root in self._roots.items():
            found[root].add(node)
        return {root: frozenset(found[root]) for root in sorted(found)}

    def common_ancestor(self, nodes: Iterable[ProcessId]) -> ProcessId | None:
        """Return the lowest one, each process being an ancestor of its own; None if they are in several trees."""
        first, *others = nodes
        found: ProcessId | None = first
        for node in others:
            if found is None:
                return None
            found = self._meeting(found, node)
        return found

    def below(self, entry: ProcessId, receivers: Iterable[ProcessId]) -> frozenset[ProcessId]:
        """Return all processes on the ways down from an entry to receivers, both ends included."""
        found = {entry}
        for receiver in receivers:
            node = receiver
            while node not in found:
                found.add(node)
                above = self.parents[node]
                if above is None:
                    raise NoGraph(f"{entry} is not above {receiver}")
                node = above
        return frozenset(found)

    def child_towards(self, node: ProcessId, below: ProcessId) -> ProcessId:
        """Return the child of a process that is above one below it, or is that one."""
        while (above := self.parents[below]) != node:
            assert above is not None, "it is below"
            below = above
        return below

    def routes(self, entry: ProcessId, receivers: Iterable[ProcessId]) -> Routes:
        """Return who passes a message on to whom, for each process that sees it."""
        seen = self.below(entry, receivers)
        return {node: tuple(child for child in self.children(node) if child in seen) for node in sorted(seen)}

    # Groups

    def entry(self, group: str) -> ProcessId:
        """Return where a group's messages enter: the lowest common ancestor of its members."""
        found = self._entries.get(group)
        if found is None:
            found = self.common_ancestor(self.groups[group])
            assert found is not None, "every group has a common ancestor"
            self._entries[group] = found
        return found

    def footprint(self, group: str) -> frozenset[ProcessId]:
        """Return the processes that a group's messages visit."""
        return self.below(self.entry(group), self.groups[group])

    def extra(self, group: str) -> frozenset[ProcessId]:
        """Return the processes that a group's messages visit though they are no members: none, by PG4."""
        return self.footprint(group) - self.groups[group]

    def has_own_entry(self, group: str) -> bool:
        """Tell whether the entry of a group is one of its members (PG3)."""
        return self.entry(group) in self.groups[group]

    def height(self, group: str) -> int:
        """Return how many edges below the entry the furthest member is."""
        return max(self._depths[member] for member in self.groups[group]) - self._depths[self.entry(group)]

    def _check(self, group: str, members: frozenset[ProcessId]) -> None:
        """Refuse a group without a common ancestor. In a forest that is one whose members are in several trees."""
        if not members:
            raise NoGraph(f"group {group!r} has no members")
        roots = set(map(self._roots.get, members))
        if None in roots:
            missing = min(members - self.parents.keys())
            raise NoGraph(f"{missing}, a member of {group!r}, is not in the forest")
        if len(roots) > 1:
            raise NoGraph(f"the members of {group!r} are in several trees")

    def _meeting(self, one: ProcessId, other: ProcessId) -> ProcessId | None:
        """Return the lowest common ancestor of two."""
        if self._roots[one] != self._roots[other]:
            return None
        parents, depths = self.parents, self._depths
        while one != other:
            if depths[one] < depths[other]:
                one, other = other, one
            above = parents[one]
            assert above is not None
            one = above
        return one


def _children_of(parents: Parents) -> dict[ProcessId, tuple[ProcessId, ...]]:
    found: dict[ProcessId, list[ProcessId]] = defaultdict(list)
    for node in sorted(parents):
        above = parents[node]
        if above is None:
            continue
        if above not in parents:
            raise NoGraph(f"the parent of {node}, {above}, is not in the forest")
        found[above].append(node)
    return {node: tuple(children) for node, children in found.items()}


def _walked(
    parents: Parents, children: Mapping[ProcessId, tuple[ProcessId, ...]]
) -> tuple[dict[ProcessId, int], dict[ProcessId, ProcessId]]:
    """Return the depth and the root of every process, reached from above."""
    depths: dict[ProcessId, int] = {}
    roots: dict[ProcessId, ProcessId] = {}
    for root in sorted(node for node, above in parents.items() if above is None):
        todo = [(root, 0)]
        while todo:
            node, depth = todo.pop()
            depths[node], roots[node] = depth, root
            todo.extend((child, depth + 1) for child in children.get(node, ()))
    if unreached := sorted(parents.keys() - depths.keys()):
        raise NoGraph(f"{unreached[0]} is below itself")
    return depths, roots
