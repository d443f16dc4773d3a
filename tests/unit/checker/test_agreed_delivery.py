from __future__ import annotations

from ordercast.checker import Outcome
from ordercast.model.promises import Promise

from .histories import Story, assert_invalid, assert_valid, judge, without_delivery


def _three() -> Story:
    story = Story(3)
    story.change(0, 1, 2)
    return story


def test_prefixes_of_one_sequence_are_accepted() -> None:
    story = _three()
    story.round(0, 1, 2)
    last = story.send(0)
    story.deliver(last, at=(0,))
    story.crash(1)
    story.transitional(0, 2)
    story.deliver(last, at=(2,))
    story.regular(0, 2)
    assert judge(Promise.AGREED_DELIVERY, story.finished()).outcome is Outcome.VALID


def test_a_hole_in_the_sequence_is_rejected() -> None:
    story = _three()
    sent = story.round(0, 1, 2)
    broken = without_delivery(story.finished(), 2, sent[1])
    assert_invalid(Promise.AGREED_DELIVERY, broken, "n2, message n2/0#1, view 16.n0", "where n0 delivered n1/0#1")


def test_another_order_is_rejected() -> None:
    story = _three()
    one, other = story.send(0), story.send(1)
    story.deliver(one, other, at=(0, 1))
    story.deliver(other, one, at=(2,))
    assert_invalid(Promise.AGREED_DELIVERY, story.finished(), "n2, message n1/0#1", "where n0 delivered n0/0#1")


def test_a_hole_in_a_transitional_view_is_rejected() -> None:
    story = _three()
    sent = [story.send(0) for _ in range(3)]
    story.transitional(0, 1)
    story.deliver(*sent, at=(0,))
    story.deliver(sent[0], sent[2], at=(1,))
    story.regular(0, 1)
    assert_invalid(Promise.AGREED_DELIVERY, story.finished(), "n1, message n0/0#3, view 18.n0")


def test_a_message_of_the_old_ring_in_the_new_view_is_rejected() -> None:
    story = _three()
    message = story.send(0)
    story.deliver(message, at=(0, 1))
    story.change(0, 1, 2)
    story.deliver(message, at=(2,))
    assert_invalid(Promise.AGREED_DELIVERY, story.finished(), "n2, message n0/0#1, view 20.n0", "of 16.n0 elsewhere")


def test_a_message_of_a_ring_the_process_was_never_on_is_rejected() -> None:
    story = Story(3)
    story.change(0, 1)
    message = story.round(0, 1)[0]
    story.deliver(message, at=(2,))
    assert_invalid(Promise.AGREED_DELIVERY, story.finished(), "n2, message n0/0#1", "of 16.n0 elsewhere")


def test_partitions_may_deliver_differently_in_their_transitional_views() -> None:
    story = _three()
    story.round(0, 1, 2)
    here, there = story.send(0), story.send(2)
    story.number(here, 0)
    story.number(there, 2)
    story.transitional(0, 1)
    story.deliver(here, at=(0, 1))
    story.regular(0, 1)
    story.transitional(2)
    story.deliver(there, at=(2,))
    story.regular(2)
    story.change(0, 1, 2)
    assert_valid(story.finished())
