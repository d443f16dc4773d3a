from __future__ import annotations

from dataclasses import replace

import pytest

from ordercast.checker import Outcome
from ordercast.model.promises import Promise
from ordercast.model.service import Service
from ordercast.trace.records import Ended, Event

from .histories import ALL, Story, assert_invalid, assert_unknown, assert_valid, judge


def _story() -> Story:
    story = Story(2)
    story.change(0, 1)
    story.round(0, 1)
    return story


def test_own_messages_delivered_is_accepted() -> None:
    assert_valid(_story().finished())


def test_an_own_message_never_delivered_is_rejected() -> None:
    story = _story()
    story.send(0)
    assert_invalid(Promise.SELF_DELIVERY, story.finished(), "n0, message n0/0#2", "never delivered by its submitter")


def test_delivery_by_others_does_not_count() -> None:
    story = _story()
    story.deliver(story.send(0), at=(1,))
    assert_invalid(Promise.SELF_DELIVERY, story.finished(), "n0, message n0/0#2")


def test_who_leaves_must_have_delivered_its_own_even_in_a_record_cut_short() -> None:
    story = _story()
    story.send(1)
    story.leave(1)
    assert_invalid(Promise.SELF_DELIVERY, story.events, "n1, message n1/0#2", "left without delivering it")


def test_who_goes_on_to_a_later_ring_without_it_is_rejected_though_it_crashes_there() -> None:
    story = _story()
    story.deliver(story.send(0), at=(1,))
    story.change(0)
    story.crash(0)
    assert_invalid(
        Promise.SELF_DELIVERY, story.events, "n0, message n0/0#2", "went on to view 16.n0 without delivering"
    )


@pytest.mark.parametrize("is_past", [True, False])
def test_where_views_are_not_shared_who_went_on_is_past_what_lies_below(is_past: bool) -> None:
    story = Story(2, replace(ALL, shares_views=False))
    story.change(0, 1)
    message = story.send(0)
    if is_past:
        story.number(message, 0)
    story.change(0)
    if not is_past:
        story.number(message, 0)
    story.deliver(message, at=(1,))
    story.crash(0)
    if is_past:
        assert_invalid(Promise.SELF_DELIVERY, story.finished(), "n0, message n0/0#1", "went on to view 16.n0")
    else:
        assert judge(Promise.SELF_DELIVERY, story.finished()).outcome is Outcome.VALID


def test_who_crashes_owes_nothing() -> None:
    story = _story()
    story.send(1)
    story.crash(1)
    story.change(0)
    assert_valid(story.finished())


def test_an_unreliable_message_is_not_owed() -> None:
    story = _story()
    story.send(0, service=Service.UNRELIABLE)
    assert_valid(story.finished())


def test_without_healing_or_end_nothing_is_known() -> None:
    story = _story()
    story.send(0)
    unhealed: list[Event] = [*story.events, Ended(story.now)]
    assert_unknown(Promise.SELF_DELIVERY, unhealed, "n0/0#2", "never healed")
    assert_unknown(Promise.SELF_DELIVERY, story.events, "no end")
    story.heal()
    assert_unknown(Promise.SELF_DELIVERY, [*story.events, Ended(story.now, False)], "cut short")
