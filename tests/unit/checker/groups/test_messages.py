from __future__ import annotations

from dataclasses import replace

import pytest

from ordercast.checker.groups import GROUP_CHECKERS, check_groups
from ordercast.checker.verdict import Outcome
from ordercast.model.ids import Position, Seq
from ordercast.model.promises import TOTALLY_ORDERED_GROUPS, GroupPromise
from ordercast.model.service import Service
from ordercast.trace.client_records import GotMessage
from ordercast.trace.records import Ended, MessageId

from .stories import RING, Story, assert_invalid, assert_valid, verdicts_on


def _pair(*more: str) -> Story:
    story = Story("a", "b", *more)
    for name in ("a", "b", *more):
        story.join("g", name)
    return story


def test_all_kinds_of_messages_are_accepted() -> None:
    story = _pair()
    story.join("h", "b")
    several = story.send("a", "g", "h", service=Service.SAFE, confirm=True)
    story.get(several, "a", "b")
    story.confirm(several, "a")
    story.get(story.send("a", "g", self_discard=True), "b")
    story.get(story.send("b", "a@n0"), "a")
    story.connect("c", 2)
    story.get(story.send("c", "g", "h", service=Service.RELIABLE), "a", "b")
    story.calm()
    story.get(story.send("a", "c@n2", "g"), "a", "b", "c")
    assert_valid(story.finished())


def test_every_promise_has_its_checker() -> None:
    assert list(GROUP_CHECKERS) == list(GroupPromise)
    assert check_groups(_pair().finished()).outcome is Outcome.VALID


def test_what_is_not_promised_is_not_judged() -> None:
    story = _pair()
    message = story.send("a", "g")
    story.get(message, "a", "b", "b")
    promised = set(GroupPromise) - {GroupPromise.NO_DUPLICATES, GroupPromise.TOTAL_ORDER}
    assert check_groups(story.finished(), promised).outcome is Outcome.VALID
    assert check_groups(story.events).outcome is Outcome.INVALID


def test_without_messages_the_judges_of_messages_have_nothing_to_judge() -> None:
    outcomes = {promise: verdict.outcome for promise, verdict in verdicts_on(_pair().finished()).items()}
    judged = {promise for promise, outcome in outcomes.items() if outcome is Outcome.VALID}
    views = {GroupPromise.INITIAL_VIEW, GroupPromise.SELF_INCLUSION, GroupPromise.VIEW_MONOTONY}
    assert judged == {*views, GroupPromise.TRANSITIONAL_SETS, GroupPromise.VIEW_AGREEMENT, GroupPromise.PRECISION}
    assert {outcomes[promise] for promise in TOTALLY_ORDERED_GROUPS - judged} == {Outcome.NOT_EXERCISED}


def test_what_cannot_be_read_and_what_was_cut_short_is_unknown() -> None:
    story = _pair()
    events = story.finished()
    events[-1] = Ended(story.now, complete=False)
    assert verdicts_on(events)[GroupPromise.SELF_DELIVERY].outcome is Outcome.UNKNOWN
    stranger = MessageId(story.ids["a"].process, 9, 1)
    events.append(
        GotMessage(story.now, story.ids["a"]._replace(session=9), stranger, "", (), 0, 0, story.place(stranger))
    )
    assert {verdict.outcome for verdict in verdicts_on(events).values()} == {Outcome.UNKNOWN}


def test_twice_is_rejected() -> None:
    story = _pair()
    message = story.send("a", "g")
    story.get(message, "a", "b", "b")
    assert_invalid(GroupPromise.NO_DUPLICATES, story.finished(), "b@n1", "got it twice")


def test_what_nobody_sent_is_rejected() -> None:
    story = _pair()
    message = story.send("a", "g")
    story.get(message, "a", "b")
    del story.events[-3]
    assert_invalid(GroupPromise.INTEGRITY, story.finished(), "nobody had sent")


@pytest.mark.parametrize("changed", [{"digest": 1}, {"groups": ("g", "h")}, {"service": 1}, {"sender": "b@n1"}])
def test_what_was_changed_on_the_way_is_rejected(changed: dict[str, object]) -> None:
    story = _pair()
    story.get(story.send("a", "g"), "a", "b")
    event = story.events[-1]
    assert isinstance(event, GotMessage)
    story.events[-1] = replace(event, **changed)  # type: ignore[arg-type]
    assert_invalid(GroupPromise.INTEGRITY, story.finished(), "b@n1", "got it")


def test_what_its_sender_did_not_want_back_is_rejected() -> None:
    story = _pair()
    story.get(story.send("a", "g", self_discard=True), "a", "b")
    assert_invalid(GroupPromise.INTEGRITY, story.finished(), "did not want back")


def test_a_wrong_a_second_and_a_missing_confirmation_are_rejected() -> None:
    story = _pair()
    message = story.send("a", "g", confirm=True)
    story.get(message, "a", "b")
    assert_invalid(GroupPromise.CONFIRMATIONS, story.finished(), "never told")
    story.events = story.events[:-2]
    story.confirm(message, "a", Position(RING, Seq(1), 7))
    assert_invalid(GroupPromise.CONFIRMATIONS, story.events, "others saw")
    story.events.pop()
    story.confirm(message, "a")
    story.confirm(message, "a")
    assert_invalid(GroupPromise.CONFIRMATIONS, story.events, "twice")


def test_another_order_is_rejected() -> None:
    story = _pair()
    first, second = story.send("a", "g"), story.send("b", "g")
    story.get(first, "a", "b")
    story.get(second, "a", "b")
    events = story.finished()
    events[-4], events[-3] = events[-3], events[-4]  # the order at one of them
    events[-6], events[-4] = events[-4], events[-6]
    assert_invalid(GroupPromise.TOTAL_ORDER, events, "after a message at")


def test_two_positions_of_one_message_and_two_messages_at_one_are_rejected() -> None:
    story = _pair()
    message, other = story.send("a", "g"), story.send("a", "g")
    story.get(message, "a")
    story.get(message, "b", place=Position(RING, Seq(99), 0))
    story.get(other, "a", place=Position(RING, Seq(99), 0))
    assert_invalid(GroupPromise.TOTAL_ORDER, story.finished(), "others at", "where others got another")


def test_a_senders_messages_in_another_order_are_rejected_even_across_groups() -> None:
    story = _pair()
    story.join("h", "b")
    first, second = story.send("a", "h", service=Service.RELIABLE), story.send("a", "g", service=Service.FIFO)
    story.get(second, "a", "b")
    story.get(first, "b")
    assert_invalid(GroupPromise.FIFO, story.finished(), "b@n1", "of the same sender")


def test_an_answer_before_its_question_is_rejected_even_across_groups() -> None:
    story = _pair("c")
    story.join("h", "c")
    question = story.send("a", "g")
    place = Position(RING, Seq(99), 0)
    story.get(question, "b", place=place)
    answer = story.send("b", "h", service=Service.CAUSAL)
    story.get(answer, "c")
    story.get(question, "c", "a", place=place)
    assert_invalid(GroupPromise.CAUSAL, story.finished(), "c@n2", "on which it may depend")


def test_a_private_message_that_never_comes_is_rejected() -> None:
    story = _pair()
    story.calm()
    story.send("a", "b@n1")
    assert_invalid(GroupPromise.TERMINATION, story.finished(), "b@n1", "never got it")


def test_a_private_message_within_one_daemon_must_come_at_any_time() -> None:
    story = _pair()
    story.connect("c", 0, session=2)
    story.send("a", "c@n0")
    assert_invalid(GroupPromise.TERMINATION, story.finished(), "c@n0", "never got it")


def test_a_message_in_the_last_view_that_does_not_reach_all_is_rejected() -> None:
    story = _pair()
    story.get(story.send("a", "g"), "a")
    assert_invalid(GroupPromise.TERMINATION, story.finished(), "b@n1", "never got it")


def test_a_message_that_its_own_sender_never_gets_is_rejected() -> None:
    story = _pair()
    story.get(story.send("a", "g"), "b")
    assert_invalid(GroupPromise.SELF_DELIVERY, story.finished(), "a@n0", "never got its own")
