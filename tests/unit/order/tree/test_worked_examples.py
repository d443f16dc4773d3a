"""The examples that the thesis works through, tree by tree. Sites are letters; of several equals the first is taken."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from ordercast.model.ids import ProcessId
from ordercast.order.tree.builders import build
from ordercast.order.tree.graph import Graph

LETTERS = "abcdefghj"


@dataclass(frozen=True)
class Example:
    where: str
    groups: str  # members of each group
    edges: str  # parent:children
    entries: str  # of each group
    extra: str = ""  # group number and site
    order: str = LETTERS  # which of several equals is taken first


EXAMPLES = (
    Example("3.1", "abcd cdef", "c:abdef", "cc"),
    Example("3.2", "cd abc bcde def ef bg ch dj", "d:cej c:abh e:f b:g", "dcddebcd", order="dcbaefghj"),
    Example("3.2 and a ninth", "cd abc bcde def ef bg ch dj ad", "d:cej c:abh e:f b:g", "dcddebcdd", "9c", "dcbaefghj"),
    Example("3.4a", "abde bcf defg", "b:acd d:efg", "bbd", "2d"),
    Example("3.5a", "abde bcfg defgh", "b:acd d:efgh", "bbd", "2d"),
    Example("3.6a", "abc abd acd bcd", "a:b b:cd", "aaab", "3b"),
    Example("4.1a", "abcde bfgh ab", "b:acdefgh", "bbb"),
    Example("7.1", "abcde cde ab", "a:bc c:de", "aca"),
    Example("7.2", "abde de ab", "a:bd d:e", "ada"),
)


def _built(example: Example) -> tuple[Graph, dict[str, ProcessId]]:
    numbers = {letter: ProcessId(place + 1) for place, letter in enumerate(example.order)}
    members = {
        str(place + 1): frozenset(map(numbers.__getitem__, group)) for place, group in enumerate(example.groups.split())
    }
    return build("heuristic-1", members), numbers


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.where)
def test_the_trees_of_the_thesis(example: Example) -> None:
    graph, numbers = _built(example)
    expected = {numbers[child]: numbers[part[0]] for part in example.edges.split() for child in part[2:]}
    assert {node: above for node, above in graph.parents.items() if above is not None} == expected
    assert [graph.entry(group) for group in graph.groups] == [numbers[letter] for letter in example.entries]
    extra = [(group, node) for group in graph.groups for node in graph.extra(group)]
    assert extra == ([(example.extra[0], numbers[example.extra[1]])] if example.extra else [])
    assert len(graph.trees()) == 1


def test_only_processes_between_the_entry_and_members_see_a_message() -> None:
    """In Figure 3.2 a message of the third group goes from d to c and e, and from c to b; g sees only its own group."""
    graph, numbers = _built(EXAMPLES[1])
    routes = graph.routes(graph.entry("3"), graph.groups["3"])
    named = {
        letter: {other for other in LETTERS if numbers[other] in routes.get(numbers[letter], ())} for letter in "dceb"
    }
    assert named == {"d": {"c", "e"}, "c": {"b"}, "e": set(), "b": set()}
    assert [group for group in graph.groups if numbers["g"] in graph.footprint(group)] == ["6"]
