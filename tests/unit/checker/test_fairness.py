from __future__ import annotations

from ordercast.checker import Outcome
from ordercast.model.promises import Promise
from ordercast.trace.records import Event

from .histories import Story, assert_invalid, assert_valid, judge


def _saturated(*counts: int) -> list[Event]:
    """While saturated, node i has counts[i] messages delivered."""
    nodes = tuple(range(len(counts)))
    story = Story(len(counts))
    story.change(*nodes)
    story.round(*nodes, count=3)
    story.saturate(*nodes, begins=True)
    for node, count in enumerate(counts):
        for _ in range(count):
            story.deliver(story.send(node), at=nodes)
    story.saturate(*nodes, begins=False)
    for _ in range(300):
        story.deliver(story.send(0), at=nodes)  # afterwards one alone may send
    return story.finished()


def test_equal_shares_are_accepted() -> None:
    events = _saturated(60, 60, 60)
    assert_valid(events)
    assert "half of an equal share" in judge(Promise.FAIRNESS, events).sentence


def test_half_a_share_is_accepted() -> None:
    assert judge(Promise.FAIRNESS, _saturated(50, 75, 25)).outcome is Outcome.VALID


def test_less_than_half_a_share_is_rejected() -> None:
    assert_invalid(Promise.FAIRNESS, _saturated(60, 75, 20), "n0, view 16.n0", "20 messages of n2, of 155 by 3")


def test_starvation_is_rejected() -> None:
    assert_invalid(Promise.FAIRNESS, _saturated(100, 0), "0 messages of n1, of 100 by 2")


def test_too_few_messages_are_not_judged() -> None:
    verdict = judge(Promise.FAIRNESS, _saturated(70, 5))
    assert (verdict.outcome, "saturated long enough" in verdict.sentence) == (Outcome.NOT_EXERCISED, True)


def test_a_sender_outside_the_view_is_not_counted() -> None:
    story = Story(3)
    story.change(0, 1)
    story.saturate(0, 1, 2, begins=True)
    story.round(0, 1, count=50)
    story.change(0, 1, 2)
    assert_valid(story.finished())


def test_each_view_is_judged_by_itself() -> None:
    story = Story(2)
    story.change(0, 1)
    story.saturate(0, 1, begins=True)
    for first, second in ((90, 10), (10, 90)):
        for node, count in ((0, first), (1, second)):
            for _ in range(count):
                story.deliver(story.send(node), at=(0, 1))
        story.change(0, 1)
    assert_invalid(Promise.FAIRNESS, story.finished(), "view 12.n0", "view 16.n0")
