"""One message alone on its way, by the thesis' model of a network: N and D of Tables 4.1 and 4.2.

To send one copy takes a process P, one after another; each is under way for L. A source sends to the entry, even if it
is a member. On a broadcast network there is one message at a time, which takes T.
"""

from __future__ import annotations

from dataclasses import dataclass

from ordercast.model.ids import ProcessId
from ordercast.order.tree.graph import Graph, Routes


@dataclass(frozen=True, slots=True)
class Costs:
    """What a copy costs, in any unit."""

    send: int = 1  # P
    latency: int = 10  # L


@dataclass(frozen=True, slots=True)
class Walk:
    copies: int  # N
    arrivals: dict[ProcessId, int]  # at members

    @property
    def delay(self) -> int:
        """D: when the last member has it."""
        return max(self.arrivals.values())


def walked(graph: Graph, group: str, costs: Costs, *, deepest_first: bool = False) -> Walk:
    """Send one message to a group over a graph."""
    entry, members = graph.entry(group), graph.groups[group]
    routes = graph.routes(entry, members)
    heights = _heights(routes, entry) if deepest_first else {}
    times = {entry: costs.send + costs.latency}
    todo = [entry]
    for node in todo:
        ordered = sorted(routes[node], key=lambda child: (-heights.get(child, 0), child))
        for place, child in enumerate(ordered):
            times[child] = times[node] + (place + 1) * costs.send + costs.latency
        todo.extend(ordered)
    return Walk(len(times), {member: times[member] for member in sorted(members)})


def _heights(routes: Routes, entry: ProcessId) -> dict[ProcessId, int]:
    """Return how many edges there are below each process."""
    found = [entry]
    for node in found:
        found.extend(routes[node])
    heights: dict[ProcessId, int] = {}
    for node in reversed(found):
        heights[node] = 1 + max((heights[child] for child in routes[node]), default=-1)
    return heights


def bound(graph: Graph, group: str, costs: Costs) -> int:
    """Return what D is at most, by Table 4.1: (d + 1) L + (n + ε) P."""
    return (graph.height(group) + 1) * costs.latency + len(graph.footprint(group)) * costs.send


def two_phase(members: frozenset[ProcessId], costs: Costs) -> Walk:
    """Send one message by the two-phase method: to all, a priority back from each, the highest to all."""
    ordered = sorted(members)
    asked = {member: (place + 1) * costs.send + costs.latency for place, member in enumerate(ordered)}
    decided = max(time + costs.send + costs.latency for time in asked.values())
    times = {member: decided + (place + 1) * costs.send + costs.latency for place, member in enumerate(ordered)}
    return Walk(3 * len(members), times)


def broadcasts(graph: Graph, group: str) -> int:
    """Return how many messages there are on a broadcast network: one to the entry, one by each process that sends on.

    The thesis counts one for each level (Table 4.2: d + 1), as if all processes of a level were one sender.
    """
    routes = graph.routes(graph.entry(group), graph.groups[group])
    return 1 + sum(bool(children) for children in routes.values())
