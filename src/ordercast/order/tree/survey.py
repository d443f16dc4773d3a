"""What a graph costs: depth, extra processes, load and ways, as the thesis measures them, and in copies. Pure.

One message is sent to each group. It is received by all processes of its footprint, the entry among them, and sent on
once for each but the entry. The load of a process is what it receives and what it sends. (Thesis, 4.2)
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator
from dataclasses import dataclass

from ordercast.model.ids import ProcessId
from ordercast.order.tree.given import SLICE, Given, last_of
from ordercast.order.tree.graph import Graph

HOP_NS = 50_000  # a message on its way from one daemon to the next, both of them awake
COPY_NS = 25_000  # the daemon's work of receiving or sending it once, under load


@dataclass(frozen=True, slots=True)
class Survey:
    """Means over the groups of a graph, each weighted by its rate; all of them 1, it is the thesis' plain mean."""

    trees: int
    depth: float  # d: edges from the entry to the furthest member
    depth_max: int
    extra: float  # ε: processes on the way that are no members
    copies: float  # N: receives of a message, n + ε
    load_max: float  # receives and sends of the busiest process, for one message to each group
    busiest: float  # the same for an average message
    average: float  # the same of an average process of the forest
    path_cost: float  # on the network below, from the entry to the furthest member
    score: float  # nanoseconds: what `auto` chooses by


def survey(graph: Graph, given: Given) -> Survey:
    return last_of(surveyed(graph, given))


def surveyed(graph: Graph, given: Given) -> Generator[None, None, Survey]:
    """Measure a graph, in slices."""
    loads: dict[ProcessId, float] = defaultdict(float)
    depth = copies = extra = path = total = 0.0
    highest = 0
    for place, (group, members) in enumerate(graph.groups.items()):
        rate, entry, seen = given.rate(group), graph.entry(group), graph.footprint(group)
        height = graph.height(group)
        highest = max(highest, height)
        total += rate
        depth += rate * height
        copies += rate * len(seen)
        extra += rate * (len(seen) - len(members))
        path += rate * _path_cost(graph, entry, members, given)
        _add_load(loads, graph, seen, rate)
        if place % (SLICE // 4) == 0:
            yield
    total = total or 1.0
    busiest = max(loads.values(), default=0.0)
    average = (2 * copies - total) / total / max(1, len(graph.parents))
    score = (depth / total + 1) * HOP_NS + busiest / total * COPY_NS
    means = (depth / total, highest, extra / total, copies / total)
    return Survey(len(graph.trees()), *means, busiest, busiest / total, average, path / total, score)


def _add_load(loads: dict[ProcessId, float], graph: Graph, seen: frozenset[ProcessId], rate: float) -> None:
    """Count what each process receives and sends of one message."""
    for node in seen:
        loads[node] += rate
        above = graph.parent(node)
        if above in seen:
            loads[above] += rate


def _above(graph: Graph, node: ProcessId) -> ProcessId:
    above = graph.parent(node)
    assert above is not None, "a process below the entry has a parent"
    return above


def _path_cost(graph: Graph, entry: ProcessId, members: frozenset[ProcessId], given: Given) -> int:
    if given.terrain is None:
        return max(map(graph.depth, members)) - graph.depth(entry)
    costs = {entry: 0}
    return max(_cost_to(graph, member, costs, given) for member in members)


def _cost_to(graph: Graph, node: ProcessId, costs: dict[ProcessId, int], given: Given) -> int:
    """Return what the way from the entry costs; `costs` has those that are known."""
    way = []
    while node not in costs:
        way.append(node)
        node = _above(graph, node)
    for below in reversed(way):
        costs[below] = costs[node] + given.distance(node, below)
        node = below
    return costs[node]
