"""What each method orders (Table 2.1), and what bypass edges cost."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import pytest

from ordercast.checker.orders import PROPERTIES, circle, inversion, multiple_group
from ordercast.model.ids import ProcessId
from ordercast.order.tree.builders import build
from ordercast.order.tree.builders.bypass import bypassed, removed, ways_of
from ordercast.order.tree.graph import Graph, Memberships
from ordercast.sim.propagation.rivals import METHODS
from ordercast.sim.propagation.traffic import propagated, workload

SEEDS = 12
KEPT = {  # of the three properties, from the weakest on
    "nothing": 0,
    "sequence numbers": 1,
    "timestamps": 3,
    "sequencer of each group": 2,
    "one sequencer": 3,
    "two-phase": 3,
    "propagation": 3,
}


def _groups(rng: Random) -> Memberships:
    return {f"g{place}": frozenset(map(ProcessId, rng.sample(range(1, 7), rng.randint(2, 4)))) for place in range(4)}


@pytest.mark.parametrize("name", METHODS)
def test_methods_order_what_the_thesis_says(name: str) -> None:
    broken = dict.fromkeys(PROPERTIES, 0)
    for seed in range(SEEDS):
        rng = Random(seed)
        groups = _groups(rng)
        messages = workload(groups, rng, 24)
        delivered = METHODS[name](groups, messages, rng)
        assert sum(map(len, delivered.values())) == sum(len(groups[message.group]) for message in messages)
        for words, concerns in PROPERTIES.items():
            broken[words] += inversion(delivered, concerns) is not None
        assert not circle(delivered) or KEPT[name] < len(PROPERTIES)
    assert [not count for count in broken.values()] == [place < KEPT[name] for place in range(len(PROPERTIES))]


def _example(text: str) -> Graph:
    groups = {
        str(place + 1): frozenset(ProcessId("abcdefgh".index(letter) + 1) for letter in members)
        for place, members in enumerate(text.split())
    }
    return build("heuristic-1", groups)


def test_an_extra_process_is_passed_by_where_only_one_other_merges() -> None:
    """In Figure 3.4 the second group goes from b straight to f."""
    ways = bypassed(_example("abde bcf defg"))
    assert list(removed(ways)) == [("2", 4)]
    assert ways.routes["2"] == {2: (3, 6), 3: (), 6: ()}


def test_one_of_several_merges_and_the_others_are_hung_below_it() -> None:
    """In Figure 3.5 g is moved below f, for both of its groups."""
    ways = bypassed(_example("abde bcfg defgh"))
    assert list(removed(ways)) == [("2", 4)]
    assert (ways.routes["2"][ProcessId(6)], ways.routes["3"][ProcessId(6)]) == ((7,), (7,))


def test_where_everybody_merges_no_process_is_passed_by() -> None:
    """Figure 3.6 has no independent graph."""
    assert list(removed(bypassed(_example("abc abd acd bcd")))) == []


@pytest.mark.parametrize("text", ["abde bcf defg", "abde bcfg defgh"])
def test_bypass_edges_keep_pairs_and_lose_the_order_of_all(text: str) -> None:
    graph = _example(text)
    circles = {False: 0, True: 0}
    for seed in range(60):
        for is_bypassed in circles:
            rng = Random(seed)
            messages = workload(graph.groups, rng, 8)
            delivered = propagated(bypassed(graph) if is_bypassed else ways_of(graph), messages, rng)
            assert inversion(delivered, multiple_group) is None
            circles[is_bypassed] += bool(circle(delivered))
    assert not circles[False]
    assert circles[True] > 5


@dataclass(frozen=True)
class _Message:
    source: str
    group: str
    number: int = 0


def test_pairs_in_two_orders_are_found_only_by_who_asks_for_them() -> None:
    one, other = _Message("s", "a"), _Message("s", "b")
    delivered = {"x": [one, other], "y": [other, one]}
    found = {words: inversion(delivered, concerns) for words, concerns in PROPERTIES.items()}
    assert found == {"single source": None, "multiple source": None, "multiple group": (one, other)}


def test_three_in_a_circle_are_found_though_no_pair_is_in_two_orders() -> None:
    one, two, three = (_Message("s", "a", number) for number in range(3))
    delivered = {"x": [one, two], "y": [two, three], "z": [three, one]}
    assert inversion(delivered, multiple_group) is None
    assert set(circle(delivered)) == {one, two, three}
    assert circle({"x": [one, two], "y": [two, three], "z": [one, three]}) == []
