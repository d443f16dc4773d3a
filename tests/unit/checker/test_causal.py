from __future__ import annotations

from ordercast.checker import Outcome
from ordercast.model.ids import RingId
from ordercast.model.promises import Promise
from ordercast.model.service import Service
from ordercast.trace.records import MessageId

from .histories import Story, assert_invalid, assert_valid, judge, process


def _question_and_answer() -> tuple[Story, MessageId, MessageId]:
    """n1 answers what n0 asked."""
    story = Story(3)
    story.change(0, 1, 2)
    question = story.send(0)
    story.deliver(question, at=(0, 1))
    answer = story.send(1)
    story.deliver(answer, at=(0, 1))
    return story, question, answer


def test_question_before_answer_is_accepted() -> None:
    story, question, answer = _question_and_answer()
    story.deliver(question, answer, at=(2,))
    assert_valid(story.finished())


def test_answer_before_question_is_rejected() -> None:
    story, question, answer = _question_and_answer()
    story.deliver(answer, at=(2,))
    story.deliver(question, at=(2,))
    assert_invalid(Promise.CAUSAL, story.finished(), "n2, message n1/0#1", "not before it n0/0#1")


def test_answer_without_question_is_rejected_on_one_ring() -> None:
    story, _, answer = _question_and_answer()
    story.deliver(answer, at=(2,))
    assert_invalid(Promise.CAUSAL, story.finished(), "n2, message n1/0#1", "not before it n0/0#1")


def test_answer_without_question_is_rejected_in_the_transitional_view() -> None:
    story, _, answer = _question_and_answer()
    story.transitional(1, 2)
    story.deliver(answer, at=(2,))
    story.regular(1, 2)
    assert_invalid(Promise.CAUSAL, story.finished(), "n2, message n1/0#1", "not before it n0/0#1")


def test_a_message_seen_long_before_is_not_forgotten() -> None:
    """n1 delivered three, then answered: the first of the three is owed as well as the last."""
    story = Story(3)
    story.change(0, 1, 2)
    first = story.send(0, sender=1)
    rest = [story.send(0, sender=2), story.send(0, sender=3)]
    story.deliver(first, *rest, at=(0, 1))
    answer = story.send(1)
    story.deliver(answer, at=(0, 1))
    story.deliver(*rest, answer, at=(2,))
    assert_invalid(Promise.CAUSAL, story.finished(), "n2, message n1/0#1", "not before it n0/1#1")


def test_a_senders_own_message_is_owed_on_one_ring() -> None:
    story = Story(2)
    story.change(0, 1)
    first, second = story.send(0), story.send(0)
    story.deliver(first, second, at=(0,))
    story.deliver(second, at=(1,))
    assert_invalid(Promise.CAUSAL, story.finished(), "n1, message n0/0#2", "not before it n0/0#1")


def test_what_was_seen_on_another_ring_is_not_owed() -> None:
    """n1 delivers n0's message apart from n2, and answers when all are together again."""
    story = Story(3)
    story.change(0, 1)
    question = story.send(0)
    story.deliver(question, at=(0, 1))
    answer = story.send(1)
    story.change(0, 1, 2)
    story.deliver(answer, at=(0, 1, 2))
    assert_valid(story.finished())


def test_a_dependency_delivered_on_a_later_view_is_rejected() -> None:
    """Lamport order holds over configurations too: n2 gets the answer, then the question of an earlier ring."""
    story = Story(3)
    story.change(0, 1, 2)
    question = story.send(0)
    story.deliver(question, at=(0, 1))
    story.change(0, 1, 2)
    answer = story.send(1)
    story.deliver(answer, at=(0, 1, 2))
    story.deliver(question, at=(2,))
    assert_invalid(Promise.CAUSAL, story.finished(), "n2, message n0/0#1", "after ring 20.n0")


def test_a_message_originated_before_what_its_submitter_had_seen_is_rejected() -> None:
    story = Story(2)
    story.change(0, 1)
    story.round(0, 1)
    late = story.send(0)
    story.positions[late] = (RingId(2, process(0)), 9, 0)
    story.deliver(late, at=(0,))
    assert_invalid(Promise.CAUSAL, story.finished(), "message n0/0#2", "its submitter had delivered of 12.n0")


def test_weaker_messages_leave_no_hole() -> None:
    story = Story(2)
    story.change(0, 1)
    lost = story.send(0, service=Service.UNRELIABLE)
    kept = story.send(0)
    story.deliver(lost, kept, at=(0,))
    answer = story.send(0)
    story.deliver(answer, at=(0,))
    story.deliver(kept, answer, at=(1,))
    assert judge(Promise.CAUSAL, story.finished()).outcome is Outcome.VALID


def test_independent_messages_in_two_orders_are_no_matter_of_causality() -> None:
    story = Story(3)
    story.change(0, 1, 2)
    one, other = story.send(0), story.send(1)
    story.deliver(one, other, at=(0, 2))
    story.deliver(other, one, at=(1,))
    answer = story.send(1)
    story.deliver(answer, at=(0, 1, 2))
    assert judge(Promise.CAUSAL, story.finished()).outcome is Outcome.VALID
