from __future__ import annotations

from ordercast.checker import Outcome
from ordercast.model.promises import Promise
from ordercast.model.service import Service

from .histories import EARLY, Story, assert_invalid, assert_unknown, assert_valid, judge


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


# Services that an engine delivers early


def _early() -> Story:
    story = Story(3, EARLY)
    story.change(0, 1, 2)
    return story


def test_an_early_message_may_come_before_the_change_here_and_after_it_there() -> None:
    story = _early()
    message = story.send(0, service=Service.RELIABLE)
    story.deliver(message, at=(0,))
    story.transitional(0, 1, 2)
    story.deliver(message, at=(1, 2))
    story.regular(0, 1, 2)
    assert_valid(story.finished())


def test_early_messages_may_come_in_any_order() -> None:
    story = _early()
    first, second = story.send(0, service=Service.RELIABLE), story.send(1, service=Service.RELIABLE)
    story.deliver(first, second, at=(0, 1))
    story.deliver(second, first, at=(2,))
    story.change(0, 1, 2)
    assert_valid(story.finished())


def test_an_early_message_that_one_of_those_who_go_along_never_delivers_is_rejected() -> None:
    story = _early()
    story.deliver(story.send(0, service=Service.FIFO), at=(0, 1))
    story.change(0, 1, 2)
    assert_invalid(Promise.VIRTUAL_SYNCHRONY, story.finished(), "not delivered by n2")


def test_an_early_message_that_comes_after_the_next_regular_view_is_rejected() -> None:
    story = _early()
    message = story.send(0, service=Service.RELIABLE)
    story.deliver(message, at=(0, 1))
    story.change(0, 1, 2)
    story.deliver(message, at=(2,))
    assert_invalid(Promise.VIRTUAL_SYNCHRONY, story.finished(), "not delivered by n2")


def test_other_services_of_such_an_engine_are_judged_as_ever() -> None:
    story = _early()
    message = story.send(0)
    story.deliver(message, at=(0,))
    story.transitional(0, 1, 2)
    story.deliver(message, at=(1, 2))
    story.regular(0, 1, 2)
    assert_invalid(Promise.VIRTUAL_SYNCHRONY, story.finished(), "not delivered by n1")
