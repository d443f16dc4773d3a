"""Tables 2.1, 4.1 and 4.2 of the thesis, by running what it calculates."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from statistics import fmean

from ordercast.checker.orders import PROPERTIES, circle, inversion
from ordercast.order.tree.builders import build
from ordercast.order.tree.graph import Graph
from ordercast.pipeline.campaign.propagation import TWO_PHASE, Point, drawn_groups
from ordercast.sim.propagation.rivals import METHODS
from ordercast.sim.propagation.traffic import workload
from ordercast.sim.propagation.walk import Costs, Walk, bound, broadcasts, two_phase, walked

POINT = Point(60, 20, 5)
DRAWS = 20
MESSAGES, RUNS = 24, 60
COSTS = Costs()
THESIS = {  # of Table 2.1; what it calls modified has one who numbers for all groups
    "nothing": "",
    "sequence numbers": "single source",
    "timestamps": "all three",
    "sequencer of each group": "single, multiple source",
    "one sequencer": "all three, modified",
    "two-phase": "all three",
    "propagation": "all three",
}


def delay_rows() -> list[list[str]]:
    """Return messages and delays of every message: means, and the formulas' values."""
    graphs = {name: _graphs(name) for name in ("heuristic-1", "shallow", "centre")}
    rows = [_two_phase_row(graphs["centre"])]
    rows += [_walked_row(name, graphs[name]) for name in ("centre", "heuristic-1", "shallow")]
    rows += [["broadcast", "two-phase", f"{POINT.size + 2}", "n + 2", f"{POINT.size + 2}", "(n + 2) T", ""]]
    return rows + [_broadcast_row(name, graphs[name]) for name in ("centre", "heuristic-1", "shallow")]


def _graphs(builder: str) -> list[Graph]:
    return [build(builder, drawn_groups(POINT, Random(seed))) for seed in range(DRAWS)]


def _over(graphs: list[Graph], value: Callable[[Graph, str], float]) -> float:
    return fmean(value(graph, group) for graph in graphs for group in graph.groups)


def arrivals() -> dict[str, list[int]]:
    """Return when each member of each group has its message, by method, sorted."""
    found = {
        name: [time for graph in _graphs(name) for group in graph.groups for time in _times(graph, group)]
        for name in ("heuristic-1", "shallow", "centre")
    }
    groups = [members for graph in _graphs("centre") for members in graph.groups.values()]
    found[TWO_PHASE] = [time for members in groups for time in two_phase(members, COSTS).arrivals.values()]
    return {name: sorted(times) for name, times in found.items()}


def _times(graph: Graph, group: str) -> list[int]:
    return list(walked(graph, group, COSTS, deepest_first=True).arrivals.values())


def _two_phase_row(graphs: list[Graph]) -> list[str]:
    walks = [two_phase(members, COSTS) for graph in graphs for members in graph.groups.values()]
    copies, delay = fmean(walk.copies for walk in walks), fmean(walk.delay for walk in walks)
    formula = 3 * COSTS.latency + (2 * POINT.size + 1) * COSTS.send
    return ["point to point", "two-phase", f"{copies:.1f}", f"3n = {3 * POINT.size}", f"{delay:.1f}", f"{formula}", ""]


def _walked_row(name: str, graphs: list[Graph]) -> list[str]:
    def walk(graph: Graph, group: str, *, deepest_first: bool = False) -> Walk:
        found = walked(graph, group, COSTS, deepest_first=deepest_first)
        assert found.copies == len(graph.groups[group]) + len(graph.extra(group)), "N = n + ε"
        assert found.delay <= bound(graph, group, COSTS), "D is within its bound"
        return found

    copies = _over(graphs, lambda graph, group: walk(graph, group).copies)
    extra = _over(graphs, lambda graph, group: len(graph.extra(group)))
    delay = _over(graphs, lambda graph, group: walk(graph, group).delay)
    deepest = _over(graphs, lambda graph, group: walk(graph, group, deepest_first=True).delay)
    most = _over(graphs, lambda graph, group: bound(graph, group, COSTS))
    formula = f"n + ε = {POINT.size + extra:.1f}"
    return ["point to point", name, f"{copies:.1f}", formula, f"{delay:.1f}", f"at most {most:.1f}", f"{deepest:.1f}"]


def _broadcast_row(name: str, graphs: list[Graph]) -> list[str]:
    sent = _over(graphs, broadcasts)
    depth = _over(graphs, lambda graph, group: graph.height(group))
    return ["broadcast", name, f"{sent:.1f}", f"d + 1 = {depth + 1:.1f}", f"{sent:.1f}", f"{depth + 1:.1f} T", ""]


def method_rows() -> list[list[str]]:
    """Return in how many of the runs each method keeps each property."""
    return [[name, *map(str, _kept(name)), THESIS[name]] for name in METHODS]


def _kept(name: str) -> list[int]:
    kept = [0] * (len(PROPERTIES) + 1)
    for seed in range(RUNS):
        rng = Random(seed)
        groups = drawn_groups(Point(6, 4, 3), rng)
        delivered = METHODS[name](groups, workload(groups, rng, MESSAGES), rng)
        for place, concerns in enumerate(PROPERTIES.values()):
            kept[place] += inversion(delivered, concerns) is None
        kept[-1] += not circle(delivered)
    return kept
