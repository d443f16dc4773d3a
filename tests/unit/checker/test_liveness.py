from __future__ import annotations

from ordercast.checker import Outcome
from ordercast.model.promises import Promise
from ordercast.trace.records import Ended, Event

from .histories import Story, assert_invalid, assert_unknown, assert_valid, judge, without_delivery


def _story() -> Story:
    story = Story(3)
    story.change(0, 1, 2)
    story.round(0, 1, 2)
    return story


def test_all_together_with_all_delivered_is_accepted() -> None:
    assert_valid(_story().finished())


def test_two_views_at_the_end_are_rejected() -> None:
    story = _story()
    story.change(0, 1)
    story.change(2)
    assert_invalid(Promise.LIVENESS, story.finished(), "n0, view 20.n0: ends in a view of n0, n1", "n2, view 24.n2")


def test_a_view_with_the_dead_is_rejected() -> None:
    story = _story()
    story.crash(2)
    assert_invalid(Promise.LIVENESS, story.finished(), "n0, view 16.n0: ends in a view of n0, n1, n2")


def test_two_views_of_the_same_members_are_rejected() -> None:
    story = _story()
    story.change(0, 1, 2, installers=(0, 1))
    assert_invalid(Promise.LIVENESS, story.finished(), "n2, view 16.n0: ends in another view than n0 in 20.n0")


def test_an_end_in_a_transitional_view_is_rejected() -> None:
    story = _story()
    story.transitional(0, 1, 2)
    assert_invalid(Promise.LIVENESS, story.finished(), "is in no regular view at the end")


def test_a_message_that_one_of_the_view_lacks_is_rejected() -> None:
    story = _story()
    last = story.round(0, 1, 2)[2]
    broken = without_delivery(story.finished(), 1, last)
    assert_invalid(Promise.LIVENESS, broken, "n1, message n2/0#2, view 16.n0", "never delivered")


def test_a_message_that_nobody_delivered_is_rejected() -> None:
    story = _story()
    story.send(1)
    assert_invalid(Promise.LIVENESS, story.finished(), "n0, message n1/0#2", "n2, message n1/0#2")


def test_a_message_submitted_before_the_last_view_is_left_to_self_delivery() -> None:
    story = _story()
    story.send(1)
    story.change(0, 1, 2)
    assert judge(Promise.LIVENESS, story.finished()).outcome is Outcome.VALID


def test_who_leaves_after_healing_is_not_waited_for() -> None:
    story = _story()
    story.heal()
    story.leave(2)
    story.change(0, 1)
    assert_valid([*story.events, Ended(story.now)])


def test_where_all_have_left_nothing_is_owed() -> None:
    story = _story()
    story.leave(2)
    story.change(0, 1)
    story.leave(1)
    story.change(0)
    story.leave(0)
    verdict = judge(Promise.LIVENESS, [*story.events, Ended(story.now)])
    assert verdict.outcome is Outcome.NOT_EXERCISED


def test_without_healing_or_end_nothing_is_known() -> None:
    story = _story()
    ended: list[Event] = [*story.events, Ended(story.now)]
    assert_unknown(Promise.LIVENESS, ended, "nothing says that the network was whole")
    story.heal()
    assert_unknown(Promise.LIVENESS, story.events, "no end")
    assert_unknown(Promise.LIVENESS, [*story.events, Ended(story.now, False)], "cut short")
