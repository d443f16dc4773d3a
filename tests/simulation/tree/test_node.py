"""The tree engine in the simulator: hostile runs with overlapping topics are valid, and what is pruned is pruned."""

from __future__ import annotations

import pytest

from ordercast.checker.verdict import Outcome
from ordercast.model.ids import MILLISECOND, node_of
from ordercast.model.notes import Occurrence
from ordercast.model.promises import GroupPromise, Promise
from ordercast.sim.options import SimOptions
from ordercast.sim.run import simulate
from ordercast.sim.swarm import SwarmKind, outline
from ordercast.trace.records import DeliveredBatch, Submitted

from .scenes import BROKEN_LINK

TOPICS = ((0, 1, 2), (2, 3), (3, 4), (0, 4, 1))


# Those from 542 on have failed once.
@pytest.mark.parametrize("seed", [9, 14, 542, pytest.param(713, marks=pytest.mark.long), 1072])
def test_a_hostile_run_is_valid(seed: int) -> None:
    found = outline(seed, SwarmKind.PLAIN, "tree")
    assert found.is_valid, found.sentence


def test_a_calm_run_keeps_everything_but_total_order() -> None:
    options = SimOptions(engine="tree", messages=60, topics=TOPICS, fault_time_ns=200 * MILLISECOND)
    result = simulate(options, 1, keep_events=True)
    assert result.is_valid
    outcomes = {verdict.promise: verdict.outcome for verdict in result.verdicts}
    assert outcomes[Promise.MULTIPLE_GROUP_ORDER] is Outcome.VALID
    assert outcomes[Promise.TOTAL_ORDER] is outcomes[Promise.FAIRNESS] is Outcome.NOT_PROMISED
    sent = {
        message.message: event.destinations
        for event in result.events
        if isinstance(event, Submitted)
        for message in event.messages
    }
    for event in result.events:
        if isinstance(event, DeliveredBatch):
            for delivered in event.messages:
                assert delivered.message is not None
                topics = [int(name[1:]) for name in sent[delivered.message]]
                hosts = {host for topic in topics if topic < len(TOPICS) for host in TOPICS[topic]}
                node = node_of(event.process)
                assert not topics or node in hosts or node == node_of(delivered.message.process)


@pytest.mark.parametrize(
    ("kind", "seed"),
    [
        (SwarmKind.GROUPS, 3),
        (SwarmKind.GROUPS, 163),  # a join behind its group's end made the view that a lost daemon had made before it
        (SwarmKind.REPLICATED, 2),
        (SwarmKind.NETWORKS, 1),
        pytest.param(SwarmKind.NETWORKS, 48, marks=pytest.mark.long),
    ],
    ids=str,
)
def test_a_hostile_run_with_more_than_topics_is_valid(kind: SwarmKind, seed: int) -> None:
    found = outline(seed, kind, "tree")
    assert found.is_valid, found.sentence


def test_clients_see_one_order_among_those_who_share_groups() -> None:
    options = SimOptions(engine="tree", messages=80, clients=2, groups=3, fault_time_ns=200 * MILLISECOND)
    result = simulate(options, 1)
    assert result.is_valid
    outcomes = {verdict.promise: verdict.outcome for verdict in result.verdicts}
    assert outcomes[GroupPromise.TOTAL_ORDER] is Outcome.NOT_PROMISED
    judged = {GroupPromise.MULTIPLE_GROUP_ORDER, GroupPromise.CONFIRMATIONS, GroupPromise.CAUSAL}
    assert {outcomes[promise] for promise in judged} == {Outcome.VALID}


def test_trees_with_a_blocked_link_are_reconciled() -> None:
    """Everything is delivered."""
    result = simulate(BROKEN_LINK, 3)
    assert result.is_valid, result.verdict.sentence
    assert result.counts[Occurrence.TREE_LINK_BROKEN.value] and result.counts[Occurrence.TREE_RECONCILED.value]
