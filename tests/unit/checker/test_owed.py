"""What a process of an engine that prunes is owed, and that every judge asks for it."""

from __future__ import annotations

import pytest

from ordercast.checker import Outcome
from ordercast.checker.history import History
from ordercast.checker.owed import Owed
from ordercast.model.promises import Promise
from ordercast.model.service import Service
from ordercast.trace.records import UNKNOWN, MessageId

from .histories import ALL, PRUNING, Story, assert_invalid, assert_valid, panel_of, process


def _owed(story: Story, message: MessageId, node: int) -> bool:
    history = History()
    for event in story.events:
        history.observe(event)
    number = next(number for number, one in enumerate(history.columns.submissions) if one.message == message)
    return Owed(history).is_owed(history.life(process(node)), number)


def _story(*wants: str) -> Story:
    """Three together; each wants what is said, n0 first."""
    story = Story(3, PRUNING)
    story.change(0, 1, 2)
    for node, wanted in enumerate(wants):
        story.want(node, *wanted.split())
    return story


# What is owed


def test_where_nothing_is_pruned_everything_is_owed_to_everybody() -> None:
    story = Story(2, ALL)
    assert _owed(story, story.send(0, "g"), 1)


def test_a_message_without_destinations_is_owed_to_everybody() -> None:
    story = _story()
    assert _owed(story, story.send(0), 2)


def test_a_message_is_owed_to_whoever_wants_one_of_its_destinations() -> None:
    story = _story("g", "h", "i")
    message = story.send(0, "g", "h")
    assert [_owed(story, message, node) for node in range(3)] == [True, True, False]


def test_whoever_begins_to_want_it_later_may_have_it_or_not() -> None:
    story = _story("g")
    message = story.send(0, "g")
    story.want(1, "g")
    assert not _owed(story, message, 1)


def test_whoever_gives_it_up_before_the_last_delivery_may_have_it_or_not() -> None:
    story = _story("g", "g", "g")
    message = story.send(0, "g")
    story.want(2, "g", begins=False)
    story.deliver(message, at=(0, 1))
    story.want(1, "g", begins=False)
    assert [_owed(story, message, node) for node in range(3)] == [True, True, False]


def test_a_message_that_nobody_delivered_is_owed_to_those_who_still_want_it() -> None:
    story = _story("g", "g")
    message = story.send(0, "g")
    story.want(1, "g", begins=False)
    assert [_owed(story, message, node) for node in range(2)] == [True, False]


def test_what_is_wanted_again_is_owed_from_then_on() -> None:
    story = _story("g", "g")
    story.want(1, "g", begins=False)
    story.want(1, "g")
    assert _owed(story, story.send(0, "g"), 1)


def test_a_message_whose_destinations_are_lost_is_owed_to_nobody() -> None:
    story = _story("g", "g")
    assert not _owed(story, story.send(0, *UNKNOWN), 1)


# Every judge asks


def _pruned(service: Service = Service.SAFE) -> Story:
    """n0 and n1 want g, n2 wants h; everybody gets its own."""
    story = _story("g", "g h", "h")
    for to, at in (("g", (0, 1)), ("h", (1, 2)), ("g", (0, 1))):
        story.deliver(story.send(1, to, service=service), at=at)
    story.deliver(story.send(0, service=service), at=(0, 1, 2))
    return story


@pytest.mark.parametrize("service", [Service.RELIABLE, Service.FIFO, Service.CAUSAL, Service.AGREED, Service.SAFE])
def test_nobody_is_blamed_for_what_it_is_not_owed(service: Service) -> None:
    story = _pruned(service)
    story.change(0, 1, 2)
    story.deliver(story.send(2, "g", service=service), at=(0, 1))  # not even its own
    assert_valid(story.finished())


def test_without_pruning_the_same_history_is_refused() -> None:
    events = _pruned().finished()
    story = Story(3, ALL)
    same = [*story.events, *events[len(story.events) :]]
    refused = {verdict.promise for verdict in panel_of(same).verdicts() if verdict.outcome is Outcome.INVALID}
    assert refused >= {Promise.AGREED_DELIVERY, Promise.SAFE_DELIVERY, Promise.FIFO, Promise.CAUSAL, Promise.LIVENESS}


def _lacking(*, service: Service = Service.AGREED) -> tuple[Story, MessageId]:
    """n2 wants g too, and lacks the first message to it."""
    story = _story("g", "g", "g")
    message = story.send(1, "g", service=service)
    story.deliver(message, at=(0, 1))
    return story, message


@pytest.mark.parametrize(
    ("promise", "what"),
    [
        (Promise.AGREED_DELIVERY, "not delivered, but a later one was"),
        (Promise.FIFO, "delivered without n1/0#1"),
        (Promise.CAUSAL, "not before it n1/0#1"),
        (Promise.LIVENESS, "never delivered"),
    ],
)
def test_a_hole_in_what_is_owed_is_found(promise: Promise, what: str) -> None:
    story, _ = _lacking()
    story.deliver(story.send(1, "g"), at=(0, 1, 2))
    assert_invalid(promise, story.finished(), what)


def test_a_safe_message_that_is_owed_and_lacks_is_found() -> None:
    story, _ = _lacking(service=Service.SAFE)
    assert_invalid(Promise.SAFE_DELIVERY, story.finished(), "n2 never delivered it and still runs")


def test_one_who_goes_along_without_what_it_is_owed_is_found() -> None:
    story, _ = _lacking()
    story.change(0, 1, 2)
    assert_invalid(Promise.VIRTUAL_SYNCHRONY, story.finished(), "not delivered by n2")


def test_an_own_message_that_is_owed_and_lacks_is_found() -> None:
    story = _story("g", "g")
    story.deliver(story.send(0, "g"), at=(1,))
    assert_invalid(Promise.SELF_DELIVERY, story.finished(), "never delivered by its submitter")


def test_a_chain_of_causes_may_lead_through_what_a_process_is_not_owed() -> None:
    """n2 gets the first and the third; the second, which joins them, is for others."""
    story = _story("g", "g h", "g h")
    first = story.send(0, "g")
    story.deliver(first, at=(0, 1))
    second = story.send(1, "h")
    story.deliver(second, at=(1, 2))
    story.deliver(first, at=(2,))
    assert_invalid(Promise.CAUSAL, story.finished(), "not before it n0/0#1")


def test_a_place_below_that_of_a_cause_is_found() -> None:
    """Nobody but n1 has both, so that nobody delivers them in a wrong order; yet a third message could come between."""
    story = _story("g", "g h", "h")
    first, second = story.send(0, "g"), story.send(1, "h")
    story.number(second, 1)
    story.deliver(first, at=(0, 1))
    later = story.send(1, "h")
    story.positions[later] = (story.positions[first][0], 0, 0)
    story.deliver(later, at=(2,))
    assert_invalid(Promise.CAUSAL, story.finished(), "its place is below")
