from __future__ import annotations

from ordercast.checker import Outcome
from ordercast.model.promises import Promise

from .histories import Story, assert_invalid, assert_unknown, assert_valid, judge


def _three() -> Story:
    story = Story(3)
    story.change(0, 1, 2)
    story.round(0, 1, 2)
    return story


def test_the_same_messages_before_the_same_step_are_accepted() -> None:
    story = _three()
    story.transitional(0, 1, 2)
    message = story.send(0)
    story.deliver(message, at=(0, 1, 2))
    story.regular(0, 1, 2)
    assert_valid(story.finished())


def test_one_message_less_in_the_regular_view_is_rejected() -> None:
    story = _three()
    story.deliver(story.send(0), at=(0, 1))
    story.change(0, 1, 2)
    assert_invalid(Promise.VIRTUAL_SYNCHRONY, story.finished(), "message n0/0#2, view 16.n0", "not delivered by n2")


def test_one_message_less_in_the_transitional_view_is_rejected() -> None:
    story = _three()
    message = story.send(0)
    story.transitional(0, 1, 2)
    story.deliver(message, at=(0, 1))
    story.regular(0, 1, 2)
    assert_invalid(Promise.VIRTUAL_SYNCHRONY, story.finished(), "message n0/0#2, view 18.n0", "not delivered by n2")


def test_regular_here_and_transitional_there_is_rejected() -> None:
    story = _three()
    message = story.send(0)
    story.deliver(message, at=(0,))
    story.transitional(0, 1, 2)
    story.deliver(message, at=(1, 2))
    story.regular(0, 1, 2)
    assert_invalid(Promise.VIRTUAL_SYNCHRONY, story.finished(), "n0, message n0/0#2, view 16.n0", "not delivered by n1")


def test_those_who_part_may_differ() -> None:
    story = _three()
    story.deliver(story.send(0), at=(0, 1))
    story.change(0, 1)
    story.change(2)
    assert judge(Promise.VIRTUAL_SYNCHRONY, story.finished()).outcome is Outcome.VALID


def test_one_who_may_yet_follow_leaves_it_open_when_the_record_is_cut() -> None:
    story = _three()
    story.change(0, 1, 2, installers=(0, 1))
    assert_unknown(Promise.VIRTUAL_SYNCHRONY, story.events, "n2, view 16.n0", "cut short")
