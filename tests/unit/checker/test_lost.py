"""A gap behind a source that is lost: whose fault it is."""

from __future__ import annotations

import pytest

from ordercast.checker import Outcome
from ordercast.model.notes import Opened
from ordercast.model.promises import Promise, Promises
from ordercast.model.service import Service
from ordercast.order.tree.promised import PROMISED
from ordercast.trace.records import MessageId, Noted

from .histories import Story, judge

TREE = Promises("story", PROMISED, frozenset(Service), 1 << 24, prunes=True)
GROUPS = {0: ("few", "all"), 1: ("all",), 2: ("few", "all"), 3: ("few",)}
ORDERS = (Promise.FIFO, Promise.CAUSAL)


def _together() -> Story:
    """All in one configuration; n1 is not owed what goes to few."""
    story = Story(4, TREE)
    story.change(0, 1, 2, 3)
    for node, groups in GROUPS.items():
        story.events.append(Noted(story.now, story.id(node), Opened(story.members[node].ring, 0, groups)))
    return story


def _sent(story: Story, service: Service = Service.AGREED) -> tuple[MessageId, MessageId]:
    """n0 has sent two messages, and n1 has delivered the second, for the first is not for it."""
    first, second = story.send(0, "few", service=service), story.send(0, "all", service=service)
    story.deliver(first, second, at=(0,))
    story.deliver(second, at=(1,))
    return first, second


def _outcomes(story: Story) -> set[Outcome]:
    events = story.finished()
    return {judge(promise, events).outcome for promise in ORDERS}


def test_what_a_lost_source_has_taken_with_it_is_nobodys_fault() -> None:
    story = _together()
    _, second = _sent(story)
    story.transitional(1, 2)
    story.deliver(second, at=(2,))
    story.regular(1, 2)
    assert _outcomes(story) == {Outcome.VALID}


def test_a_gap_before_the_change_is_a_fault() -> None:
    story = _together()
    _, second = _sent(story)
    story.deliver(second, at=(2,))
    story.change(1, 2)
    assert _outcomes(story) == {Outcome.INVALID}


def test_a_gap_behind_a_source_that_comes_along_is_a_fault() -> None:
    story = _together()
    _, second = _sent(story)
    story.transitional(0, 1, 2)
    story.deliver(second, at=(2,))
    story.regular(0, 1, 2)
    assert _outcomes(story) == {Outcome.INVALID}


@pytest.mark.parametrize("is_late", [False, True])
def test_what_a_companion_has_must_be_had(is_late: bool) -> None:
    story = _together()
    first, second = _sent(story)
    if not is_late:
        story.deliver(first, at=(3,))
    story.transitional(1, 2, 3)
    if is_late:
        story.deliver(first, at=(3,))
    story.deliver(second, at=(2,))
    story.regular(1, 2, 3)
    assert _outcomes(story) == {Outcome.INVALID}


def test_what_was_safe_has_no_gap_before_it() -> None:
    story = _together()
    _, second = _sent(story, Service.SAFE)
    story.transitional(1, 2)
    story.deliver(second, at=(2,))
    story.regular(1, 2)
    assert _outcomes(story) == {Outcome.INVALID}
