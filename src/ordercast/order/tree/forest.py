"""The forest of a configuration: trees, each with the epoch of its birth, and how messages go through them.

Within its life nothing about a tree changes: neither its edges nor who wants which of its groups. What does change is
made anew, under another birth.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ordercast.model.ids import ProcessId
from ordercast.order.tree.blocks import GroupPlaces
from ordercast.order.tree.graph import Graph, NoGraph

TreeId = tuple[int, ProcessId]  # birth and root


class Tree:
    """One tree. GroupPlaces are numbered by their sorted names."""

    __slots__ = ("_entries", "_footprints", "_places", "_receivers", "_routes", "birth", "graph", "names", "root")

    def __init__(self, birth: int, graph: Graph) -> None:
        self.birth = birth
        self.graph = graph
        (self.root,) = graph.trees()
        self.names = sorted(graph.groups)
        self._places = {name: place for place, name in enumerate(self.names)}
        self._receivers: dict[GroupPlaces, frozenset[ProcessId]] = {}
        self._entries: dict[tuple[GroupPlaces, ProcessId | None], ProcessId] = {}
        self._footprints: dict[tuple[ProcessId, GroupPlaces], frozenset[ProcessId]] = {}
        self._routes: dict[tuple[ProcessId, GroupPlaces], Mapping[ProcessId, tuple[ProcessId, ...]]] = {}

    @property
    def id(self) -> TreeId:
        return self.birth, self.root

    @property
    def nodes(self) -> Iterable[ProcessId]:
        return self.graph.parents

    def has(self, process: ProcessId) -> bool:
        return process in self.graph.parents

    def places(self, names: Iterable[str]) -> GroupPlaces:
        """Return the numbers of those groups that are here."""
        return tuple(sorted({self._places[name] for name in names if name in self._places}))

    def receivers(self, groups: GroupPlaces) -> frozenset[ProcessId]:
        found = self._receivers.get(groups)
        if found is None:
            members = (self.graph.groups[self.names[place]] for place in groups)
            found = self._receivers[groups] = frozenset().union(*members)
        return found

    def entry(self, groups: GroupPlaces, sender: ProcessId) -> ProcessId:
        """Return where messages of a sender to these groups enter: at the lowest common ancestor of all receivers, and
        of the sender if it is none of them; at the root, if the sender is in another tree."""
        receivers = self.receivers(groups)
        outside = None if sender in receivers else sender
        found = self._entries.get((groups, outside))
        if found is None:
            found = self._entries[groups, outside] = self._entry(receivers, outside)
        return found

    def _entry(self, receivers: frozenset[ProcessId], outside: ProcessId | None) -> ProcessId:
        if outside is None:
            found = self.graph.common_ancestor(sorted(receivers))
        elif outside in self.graph.parents:
            found = self.graph.common_ancestor(sorted(receivers | {outside}))
        else:
            found = self.root
        assert found is not None, "all of a tree have its root above them"
        return found

    def is_above(self, one: ProcessId, other: ProcessId) -> bool:
        """Whether one process is another, or an ancestor of it."""
        return one in self.graph.parents and self.graph.common_ancestor((one, other)) == one

    def children(self, node: ProcessId, entry: ProcessId, groups: GroupPlaces) -> tuple[ProcessId, ...]:
        """Return whom a process passes messages on to."""
        routes = self._routes.get((entry, groups))
        if routes is None:
            routes = self._routes[entry, groups] = self.graph.routes(entry, self.receivers(groups))
        return routes[node]

    def footprint(self, entry: ProcessId, groups: GroupPlaces) -> frozenset[ProcessId]:
        """Return the processes that messages visit; none, if the entry is not above all receivers."""
        found = self._footprints.get((entry, groups))
        if found is None:
            try:
                found = self.graph.below(entry, self.receivers(groups))
            except NoGraph:
                found = frozenset()
            self._footprints[entry, groups] = found
        return found

    def wants(self, process: ProcessId) -> tuple[str, ...]:
        """Return the groups that a process wants, by name."""
        return tuple(name for name in self.names if process in self.graph.groups[name])


class Forest:
    """The trees that are open, by processes and groups. Immutable."""

    __slots__ = ("_by_group", "_by_process", "trees")

    def __init__(self, trees: Iterable[Tree] = ()) -> None:
        self.trees = {tree.id: tree for tree in trees}
        self._by_process = {node: tree for tree in self.trees.values() for node in tree.nodes}
        self._by_group = {name: tree for tree in self.trees.values() for name in tree.names}

    def of(self, process: ProcessId) -> Tree | None:
        return self._by_process.get(process)

    def of_groups(self, names: Iterable[str]) -> list[Tree]:
        """Return the trees of these groups, each once; of groups that nobody wants there is none."""
        found = {tree.id: tree for name in names if (tree := self._by_group.get(name)) is not None}
        return [found[id] for id in sorted(found)]

    def has_group(self, name: str) -> bool:
        return name in self._by_group

    def after(self, closing: Iterable[TreeId], born: Iterable[Tree]) -> Forest:
        ended = set(closing)
        return Forest([*(tree for id, tree in self.trees.items() if id not in ended), *born])
