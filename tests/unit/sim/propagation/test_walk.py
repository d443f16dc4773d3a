"""Tables 4.1 and 4.2: messages and delays of one message alone."""

from __future__ import annotations

from random import Random

import pytest

from ordercast.order.tree.builders import build
from ordercast.sim.propagation.walk import Costs, bound, broadcasts, two_phase, walked
from tests.unit.order.tree.drawn import groups_of

COSTS = (Costs(1, 10), Costs(10, 1), Costs(3, 3))


@pytest.mark.parametrize("name", ["heuristic-1", "shallow", "centre"])
def test_copies_are_members_and_extra_processes_and_the_delay_is_within_its_bound(name: str) -> None:
    for seed in range(40):
        graph = build(name, groups_of(Random(seed)))
        for group, members in graph.groups.items():
            for costs in COSTS:
                walk = walked(graph, group, costs)
                assert walk.copies == len(members) + len(graph.extra(group))
                assert walk.delay <= bound(graph, group, costs)
                assert broadcasts(graph, group) > graph.height(group)


def test_the_deepest_first_is_seldom_later() -> None:
    later = sooner = 0
    for seed in range(40):
        graph = build("heuristic-1", groups_of(Random(seed)))
        for group in graph.groups:
            plain, deepest = (walked(graph, group, COSTS[0], deepest_first=first).delay for first in (False, True))
            later, sooner = later + (deepest > plain), sooner + (deepest < plain)
    assert sooner > 50 * later


def test_the_two_phase_method_takes_three_rounds() -> None:
    for seed in range(20):
        for members in groups_of(Random(seed)).values():
            for costs in COSTS:
                walk = two_phase(members, costs)
                assert walk.copies == 3 * len(members)
                assert walk.delay == 3 * costs.latency + (2 * len(members) + 1) * costs.send
