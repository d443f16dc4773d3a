"""Groups drawn at random, and what must hold of every graph of the thesis' generator."""

from __future__ import annotations

import sys
from random import Random

from ordercast.model.ids import ProcessId
from ordercast.order.tree.builders import build
from ordercast.order.tree.builders.components import components
from ordercast.order.tree.given import last_of
from ordercast.order.tree.graph import Graph, Memberships


def groups_of(rng: Random, hosts_max: int = 40, groups_max: int = 30) -> Memberships:
    """Return groups of any sizes, many that meet or few."""
    hosts = rng.randint(1, hosts_max)
    size_max = rng.randint(1, hosts)
    return {
        f"g{place}": frozenset(map(ProcessId, rng.sample(range(1, hosts + 1), rng.randint(1, size_max))))
        for place in range(rng.randint(1, groups_max))
    }


def check_generated(graph: Graph) -> None:
    """Check PG1 to PG3, and what follows from how the generator works. (Thesis, 3.3 to 3.5)"""
    groups = graph.groups
    assert set(graph.nodes) == set().union(*groups.values()), "all members are placed, and nobody else"
    assert len(graph.trees()) == len(last_of(components(groups))), "as many trees as parts that share no process"
    for name, members in groups.items():
        entry = graph.entry(name)
        assert graph.has_own_entry(name), f"PG3: the entry of {name} is a member"
        highest = min(map(graph.depth, members))
        assert [member for member in members if graph.depth(member) == highest] == [entry], "the highest member, alone"
        assert graph.footprint(name) >= members, "PG2: there is a way to each member"
        routes = graph.routes(entry, members)
        assert sorted(child for children in routes.values() for child in children) == sorted(routes.keys() - {entry})
    for one, first in groups.items():
        for other, second in groups.items():
            if first & second:
                lower = max(graph.entry(one), graph.entry(other), key=graph.depth)
                assert lower in graph.below(graph.root(lower), first) & graph.below(graph.root(lower), second)
                _check_one_way(graph, one, other)


def _check_one_way(graph: Graph, one: str, other: str) -> None:
    """Groups that meet enter on one way from the root to a leaf."""
    entries = {graph.entry(one), graph.entry(other)}
    assert graph.common_ancestor(entries) in entries


def main(count: int) -> None:
    trees = extra = 0
    for seed in range(count):
        graph = build("heuristic-1", groups_of(Random(seed)))
        check_generated(graph)
        trees += len(graph.trees())
        extra += sum(bool(graph.extra(group)) for group in graph.groups)
    sys.stdout.write(
        f"{count} graphs of Heuristic I: PG1, PG2, PG3 hold, {trees} trees = parts; {extra} groups with extra ones\n"
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
