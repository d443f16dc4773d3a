"""Edges past extra processes: the thesis' way to independence. (3.4) For the simulator alone.

A group's messages may go straight from the parent of an extra process to the children below it, if whatever a child
then has to merge is merged nowhere else. Where several children would merge the same groups, one of them does, and the
others are hung below it. Some graphs have no such way out. (Figure 3.6)

Any two messages keep one order, but no process sees all: three of them may be delivered in a circle (the judge of
`sim/propagation` shows it). For that reason no engine uses it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ordercast.model.ids import ProcessId
from ordercast.order.tree.graph import Graph, Routes


@dataclass(frozen=True, slots=True)
class Ways:
    """Where each group enters, and who passes its messages on to whom; no longer a forest's only ways."""

    graph: Graph
    routes: dict[str, Routes]

    def entry(self, group: str) -> ProcessId:
        return self.graph.entry(group)

    def seen(self, group: str) -> set[ProcessId]:
        """Return who sees a group's messages."""
        return set(self.routes[group])

    def extra(self, group: str) -> set[ProcessId]:
        return self.seen(group) - self.graph.groups[group]


def ways_of(graph: Graph) -> Ways:
    """Return the ways of a forest as it is."""
    return Ways(graph, {name: graph.routes(graph.entry(name), members) for name, members in graph.groups.items()})


def bypassed(graph: Graph) -> Ways:
    """Return ways past as many extra processes as the rules allow."""
    ways = ways_of(graph)
    for group in sorted(graph.groups):
        for extra in sorted(ways.extra(group)):
            if extra != ways.entry(group):
                ways = _past(ways, group, extra) or _past_rehung(ways, group, extra) or ways
    return ways


def _past(ways: Ways, group: str, extra: ProcessId) -> Ways | None:
    """Return ways of a group past one extra process; None if a child would merge what is merged elsewhere too."""
    routes = {node: list(children) for node, children in ways.routes[group].items()}
    above = next(node for node, children in routes.items() if extra in children)
    below = routes.pop(extra)
    routes[above] = sorted([*(child for child in routes[above] if child != extra), *below])
    changed = Ways(ways.graph, ways.routes | {group: {node: tuple(children) for node, children in routes.items()}})
    return changed if all(_merges_alone(changed, group, extra, child) for child in below) else None


def _merges_alone(ways: Ways, group: str, extra: ProcessId, child: ProcessId) -> bool:
    """Tell whether whoever gets a group, and another one that the child gets from the extra process, is below it."""
    for other, routes in ways.routes.items():
        if other != group and child in routes.get(extra, ()):
            both = ways.seen(group) & ways.seen(other)
            if not both <= _below(ways, group, child) & _below(ways, other, child):
                return False
    return True


def _below(ways: Ways, group: str, node: ProcessId) -> set[ProcessId]:
    """Return who gets a group's messages by a process, itself among them."""
    found, todo = set(), [node]
    while todo:
        one = todo.pop()
        found.add(one)
        todo.extend(ways.routes[group].get(one, ()))
    return found


def _past_rehung(ways: Ways, group: str, extra: ProcessId) -> Ways | None:
    """Return ways past an extra process with its children below one of them."""
    children = ways.routes[group][extra]
    for merger in children if len(children) > 1 else ():
        hung = _hung_below(ways, merger, [child for child in children if child != merger], extra)
        found = hung and _past(hung, group, extra)
        if found:
            return found
    return None


def _hung_below(ways: Ways, merger: ProcessId, others: list[ProcessId], parent: ProcessId) -> Ways | None:
    """Hang some children below one, for all groups that they get from their parent; it must be a member of each."""
    routes = dict(ways.routes)
    for name, own in ways.routes.items():
        moved = [child for child in own.get(parent, ()) if child in others]
        if not moved:
            continue
        if merger not in own[parent] or merger not in ways.graph.groups[name]:
            return None
        kept = tuple(child for child in own[parent] if child not in moved)
        routes[name] = {**own, parent: kept, merger: tuple(sorted([*own[merger], *moved]))}
    return Ways(ways.graph, routes)


def removed(ways: Ways) -> Iterator[tuple[str, ProcessId]]:
    """Return which extra processes of which groups are passed by."""
    for group in sorted(ways.graph.groups):
        for node in sorted(ways.graph.extra(group) - ways.extra(group)):
            yield group, node
