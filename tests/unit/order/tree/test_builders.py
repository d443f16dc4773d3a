"""Every builder makes a propagation graph of any groups; those of the thesis have its properties."""

from __future__ import annotations

from random import Random

import pytest

from ordercast.model.errors import UsageError
from ordercast.model.ids import ProcessId
from ordercast.order.tree.builders import BUILDERS, build
from ordercast.order.tree.builders.detours import edge_of
from ordercast.order.tree.given import Given
from ordercast.order.tree.graph import Graph, Memberships, NoGraph
from ordercast.order.tree.survey import survey
from tests.unit.order.tree.drawn import check_generated, groups_of

SEEDS = 150
OF_THE_GENERATOR = ("heuristic-1", "heuristic-2", "heuristic-3", "random")


@pytest.mark.parametrize("seed", range(3))
def test_heuristic_1_has_the_properties_of_the_thesis(seed: int) -> None:
    for number in range(seed * SEEDS, (seed + 1) * SEEDS):
        check_generated(build("heuristic-1", groups_of(Random(number))))


@pytest.mark.parametrize("name", BUILDERS)
def test_every_builder_makes_a_forest_in_which_each_group_has_an_entry(name: str) -> None:
    for seed in range(30):
        rng = Random(seed)
        graph = build(name, groups_of(rng), Given(rng=rng))
        for group, members in graph.groups.items():
            assert members <= graph.footprint(group)
            assert graph.has_own_entry(group) or name not in OF_THE_GENERATOR
        found = survey(graph, Given())
        assert found.copies == pytest.approx(sum(map(len, graph.groups.values())) / len(graph.groups) + found.extra)


@pytest.mark.parametrize("name", BUILDERS)
def test_the_same_groups_in_another_order_make_the_same_forest(name: str) -> None:
    for seed in range(10):
        groups = groups_of(Random(seed))
        turned = {group: frozenset(sorted(groups[group], reverse=True)) for group in reversed(list(groups))}
        assert build(name, groups).parents == build(name, turned).parents


def test_no_groups_make_no_forest() -> None:
    assert [dict(build(name, {}).parents) for name in BUILDERS] == [{}] * len(BUILDERS)


def test_a_builder_that_is_not_there_is_named() -> None:
    with pytest.raises(UsageError, match="no builder 'steep': it is one of auto, shallow"):
        build("steep", {})


def _racks(hosts: int, count: int, rng: Random, size: int = 8, away: float = 0.05) -> Memberships:
    """Return groups of three to five within racks, some members anywhere."""
    groups = {}
    for place in range(count):
        rack, wanted = rng.randrange(hosts // size) * size, rng.randint(3, 5)
        members: set[ProcessId] = set()
        while len(members) < wanted:
            members.add(ProcessId(1 + rng.randrange(hosts) if rng.random() < away else 1 + rack + rng.randrange(size)))
        groups[f"g{place}"] = frozenset(members)
    return groups


def test_where_groups_have_neighbourhoods_our_builder_is_flat_and_the_thesis_makes_a_chain() -> None:
    groups = _racks(64, 300, Random(1))
    ours, theirs = (survey(build(name, groups), Given()) for name in ("auto", "heuristic-1"))
    assert (ours.depth_max, ours.trees) == (2, 1)
    assert ours.depth < 1.4 and ours.busiest < 0.8 and ours.copies < 5
    assert theirs.depth > 10 and theirs.copies > 12


def test_parts_that_share_nothing_are_trees_of_their_own() -> None:
    assert len(build("auto", _racks(64, 300, Random(1), away=0.0)).trees()) == 8


def test_edges_that_have_failed_are_gone_around() -> None:
    groups = _racks(16, 40, Random(2))
    whole = build("auto", groups)
    edges = {edge_of(node, above) for node, above in whole.parents.items() if above is not None}
    for edge in edges:
        around = build("auto", groups, Given(forbidden=frozenset({edge})))
        assert edge not in {edge_of(node, above) for node, above in around.parents.items() if above is not None}


def _graph(parents: dict[int, int | None], members: tuple[int, ...] = (1, 2)) -> Graph:
    forest = {ProcessId(node): None if above is None else ProcessId(above) for node, above in parents.items()}
    return Graph(forest, {"a": frozenset(map(ProcessId, members))})


@pytest.mark.parametrize(
    ("parents", "members", "reason"),
    [
        ({1: 2, 2: 1}, (1,), "1 is below itself"),
        ({1: 1}, (1,), "1 is below itself"),
        ({1: None, 2: 3}, (1,), "the parent of 2, 3, is not in the forest"),
        ({1: None, 2: None}, (1, 2), "the members of 'a' are in several trees"),
        ({1: None}, (1, 2), "2, a member of 'a', is not in the forest"),
        ({1: None}, (), "group 'a' has no members"),
    ],
)
def test_what_is_no_graph_is_refused(parents: dict[int, int | None], members: tuple[int, ...], reason: str) -> None:
    with pytest.raises(NoGraph, match=reason):
        _graph(parents, members)


def test_an_entry_need_not_be_above_a_process_that_it_is_asked_for() -> None:
    graph = _graph({1: None, 2: 1, 3: 1}, (2,))
    with pytest.raises(NoGraph, match="2 is not above 3"):
        graph.below(ProcessId(2), [ProcessId(3)])
    assert graph.common_ancestor(map(ProcessId, (2, 3))) == 1
