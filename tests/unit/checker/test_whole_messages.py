from __future__ import annotations

from ordercast.checker import Outcome
from ordercast.model.promises import Promise
from ordercast.trace.records import Event, MessageId

from .histories import Story, assert_invalid, assert_valid, judge, with_delivery

LARGE = 50_000


def _story() -> tuple[list[Event], MessageId]:
    story = Story(2)
    story.change(0, 1)
    message = story.send(0, size=LARGE)
    story.deliver(message, at=(0, 1))
    return story.finished(), message


def test_whole_is_accepted() -> None:
    assert_valid(_story()[0])


def test_a_part_is_rejected() -> None:
    events, message = _story()
    broken = with_delivery(events, 1, message, size=1_400, digest=1)
    assert_invalid(Promise.WHOLE_MESSAGES, broken, "n1, message n0/0#1", "cut off: 1400 of 50000 bytes")


def test_too_much_is_rejected() -> None:
    events, message = _story()
    broken = with_delivery(events, 1, message, size=LARGE + 1)
    assert_invalid(Promise.WHOLE_MESSAGES, broken, "too long: 50001 bytes for 50000")


def test_parts_in_the_wrong_order_are_rejected() -> None:
    events, message = _story()
    assert_invalid(Promise.WHOLE_MESSAGES, with_delivery(events, 1, message, digest=1), "put together wrongly")


def test_large_for_one_and_not_for_another_that_moved_along_is_rejected() -> None:
    story = Story(3)
    story.change(0, 1, 2)
    message = story.send(0, size=LARGE)
    story.number(message, 0)
    story.transitional(0, 1, 2)
    story.deliver(message, at=(0, 1))
    story.regular(0, 1, 2)
    assert_invalid(
        Promise.WHOLE_MESSAGES, story.finished(), "n0, message n0/0#1", "not delivered by n2, which moved along"
    )


def test_where_it_ends_does_not_matter_here() -> None:
    """Delivered in the regular view by one, in the transitional by the other: for virtual synchrony to judge."""
    story = Story(2)
    story.change(0, 1)
    message = story.send(0, size=LARGE)
    story.deliver(message, at=(0,))
    story.transitional(0, 1)
    story.deliver(message, at=(1,))
    story.regular(0, 1)
    assert judge(Promise.WHOLE_MESSAGES, story.finished()).outcome is Outcome.VALID


def test_cut_by_a_change_of_view_and_sent_again_is_accepted() -> None:
    story = Story(2)
    story.change(0, 1)
    message = story.send(0, size=LARGE)
    story.change(0, 1)
    story.deliver(message, at=(0, 1))
    assert_valid(story.finished())
