from __future__ import annotations

from dataclasses import replace

from ordercast.checker import Outcome
from ordercast.model.ids import Position, Seq
from ordercast.model.promises import Promise
from ordercast.model.service import Service
from ordercast.trace.records import Event

from .histories import (
    ALL,
    Story,
    assert_invalid,
    assert_valid,
    delivery_index,
    judge,
    swapped,
    with_view,
    without_delivery,
)


def _pair() -> Story:
    story = Story(2)
    story.change(0, 1)
    return story


def test_rising_messages_of_several_senders_are_accepted() -> None:
    story = _pair()
    for sender in (1, 2):
        for _ in range(3):
            story.deliver(story.send(0, sender=sender), at=(0, 1))
    assert_valid(story.finished())


def test_falling_order_is_rejected() -> None:
    story = _pair()
    first, second = story.send(0), story.send(0)
    story.deliver(first, second, at=(0,))
    story.deliver(second, at=(1,))
    story.deliver(first, at=(1,))
    assert_invalid(Promise.FIFO, story.finished(), "n1, message n0/0#1", "after n0/0#2 of the same sender")


def test_a_gap_on_one_ring_is_rejected() -> None:
    story = _pair()
    first, second, third = (story.send(0) for _ in range(3))
    story.deliver(first, second, third, at=(0,))
    story.deliver(first, third, at=(1,))
    assert_invalid(Promise.FIFO, story.finished(), "n1, message n0/0#3", "delivered without n0/0#2")


def test_a_gap_before_the_first_message_on_one_ring_is_rejected() -> None:
    story = _pair()
    first, second = story.send(0), story.send(0)
    story.deliver(first, second, at=(0,))
    story.deliver(second, at=(1,))
    assert_invalid(Promise.FIFO, story.finished(), "n1, message n0/0#2", "delivered without n0/0#1")


def test_a_gap_on_one_ring_is_rejected_across_the_transitional_view() -> None:
    story = _pair()
    first, second, third = (story.send(0) for _ in range(3))
    story.deliver(first, at=(0, 1))
    story.deliver(second, at=(0,))
    story.number(third, 0)
    story.transitional(0, 1)
    story.deliver(third, at=(0, 1))
    story.regular(0, 1)
    assert_invalid(Promise.FIFO, story.finished(), "n1, message n0/0#3", "delivered without n0/0#2")


def test_a_gap_is_rejected_between_views_that_both_passed_together() -> None:
    story = _pair()
    first, second = story.round(0, count=1)[0], story.send(0)
    story.deliver(first, at=(1,))
    story.deliver(second, at=(0,))
    story.change(0, 1)
    third = story.send(0)
    story.deliver(third, at=(0, 1))
    assert_invalid(Promise.FIFO, story.finished(), "n1, message n0/0#3", "delivered without n0/0#2")


def test_a_gap_is_allowed_for_who_was_apart() -> None:
    story = _pair()
    story.round(0, 1)
    story.change(0)
    story.change(1)
    story.round(0, count=3)
    story.change(0, 1)
    story.round(0, 1)
    assert_valid(story.finished())


def test_a_process_that_joins_later_need_not_know_the_past() -> None:
    story = Story(3)
    story.change(0, 1)
    story.round(0, 1, count=3)
    story.change(0, 1, 2)
    story.round(0, 1, 2)
    assert_valid(story.finished())


def test_weaker_messages_are_not_judged() -> None:
    story = _pair()
    first, second = story.send(0, service=Service.RELIABLE), story.send(0, service=Service.RELIABLE)
    third = story.send(0, service=Service.FIFO)
    for node in (0, 1):
        story.deliver(second, at=(node,))
        story.deliver(first, at=(node,))
        story.deliver(third, at=(node,))
    assert_valid(story.finished())


def test_a_swap_and_a_loss_in_a_longer_history_are_rejected() -> None:
    story = _pair()
    sent = [message for message in story.round(0, 1, count=20) if message.sender == 0]
    events = story.finished()
    mine = [message for message in sent if message.process == sent[0].process]
    there, here = delivery_index(events, 1, mine[8]), delivery_index(events, 1, mine[9])
    assert_invalid(Promise.FIFO, swapped(events, there, here), "n0/0#9")
    assert_invalid(Promise.FIFO, without_delivery(events, 1, mine[8]), "delivered without n0/0#9")
    assert judge(Promise.FIFO, without_delivery(events, 1, mine[19])).outcome.value == "VALID"  # the last leaves no gap


def _apart(number: int) -> list[Event]:
    """Of two messages n2, which was apart, delivers the second, in a configuration that begins behind this number."""
    story = Story(3, replace(ALL, shares_views=False))
    story.change(0, 1)
    first, second = story.send(0), story.send(0)
    story.deliver(first, second, at=(0, 1))
    story.deliver(second, at=(2,))
    origin, _, _ = story.positions[first]
    return with_view(story.finished(), 2, 0, position=Position(origin, Seq(number), 0xFFFF))


def test_where_views_are_not_shared_a_gap_before_the_own_view_is_accepted() -> None:
    """A ring whose members have left may still bring messages to those who merged meanwhile."""
    assert judge(Promise.FIFO, _apart(number=1)).outcome is Outcome.VALID


def test_where_views_are_not_shared_a_gap_in_the_own_view_is_rejected() -> None:
    assert_invalid(Promise.FIFO, _apart(number=0), "n2, message n0/0#2", "delivered without n0/0#1")
