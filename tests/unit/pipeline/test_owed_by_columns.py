"""Engines that prune, or deliver early, judged by columns: valid runs are cleared, and damaged ones are not."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

pytest.importorskip("numpy")

from ordercast.checker import Outcome, combined
from ordercast.model.promises import Promises
from ordercast.model.service import Service
from ordercast.pipeline.verify.judging import judge_table
from ordercast.trace.records import Event
from tests.unit.checker.histories import ALL, EARLY, PRUNING, Story
from tests.unit.checker.test_mutations import Mutation, drop, duplicate, swap
from tests.unit.pipeline.agreement import assert_agreement, reference, table_of

BOTH = replace(PRUNING, early=EARLY.early)
GROUPS = ("g", "h", "i")


def _told(seed: int, promises: Promises) -> list[Event]:
    """Four processes with interests that change, a split and a merge; early messages come out of order."""
    rng = random.Random(seed)
    story = Story(4, promises)
    wanted = {node: set[str]() for node in range(4)}
    for nodes in ((0, 1, 2, 3), (0, 1, 2), (0, 1, 2, 3)):
        if len(nodes) == 3:
            story.change(3)
        story.change(*nodes)
        for _ in range(6):
            node, group = rng.choice(nodes), rng.choice(GROUPS)
            story.want(node, group, begins=group not in wanted[node])
            wanted[node] ^= {group}
            _burst(story, rng, nodes, wanted)
    return story.finished()


def _burst(story: Story, rng: random.Random, nodes: tuple[int, ...], wanted: dict[int, set[str]]) -> None:
    """Some messages, of which the early ones come first, in any order but that of each sender."""
    sent = []
    for _ in range(4):
        node, to = rng.choice(nodes), rng.sample(GROUPS, rng.randint(0, 2))
        service = rng.choice((Service.FIFO, Service.CAUSAL, Service.AGREED, Service.SAFE))
        sender = 1 if service in story.promises.early else 0
        message = story.send(node, *to, service=service, size=rng.choice((40, 9_000)), sender=sender)
        story.number(message, node)
        at = [
            other
            for other in nodes
            if not story.promises.prunes or not to or wanted[other] & set(to) or rng.random() < 0.2
        ]
        sent.append((message, service, at))
    for node in rng.sample(nodes, len(nodes)):
        mine = [(message, service) for message, service, at in sent if node in at]
        mine.sort(key=lambda pair: pair[1] not in story.promises.early)
        for message, _ in mine:
            story.deliver(message, at=(node,))


@pytest.mark.parametrize("promises", [ALL, PRUNING, EARLY, BOTH], ids=["plain", "prunes", "early", "both"])
def test_a_valid_run_is_cleared_and_judged_alike_in_parts(promises: Promises) -> None:
    events = _told(1, promises)
    table = table_of(events)
    assert table is not None
    assert combined(reference(events)).outcome is Outcome.VALID
    assert judge_table(table)[2] == reference(events)
    assert_agreement(events)


@pytest.mark.parametrize("damage", [drop, duplicate, swap])
@pytest.mark.parametrize("promises", [PRUNING, EARLY, BOTH], ids=["prunes", "early", "both"])
def test_a_damaged_run_is_judged_alike(promises: Promises, damage: Mutation) -> None:
    assert_agreement(damage(_told(3, promises), random.Random(3)))
