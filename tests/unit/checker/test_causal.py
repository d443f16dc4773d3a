from __future__ import annotations

import random

import pytest

from ordercast.checker import Outcome
from ordercast.model.promises import Promise
from ordercast.model.service import Service
from ordercast.trace.records import DeliveredBatch, Event, MessageId, Submitted

from .histories import Story, assert_invalid, assert_valid, judge


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
    assert_invalid(Promise.CAUSAL, story.finished(), "n2, message n0/0#1", "of configuration 16.n0 after 20.n0")


def test_a_message_of_a_configuration_before_what_its_submitter_had_seen_is_rejected() -> None:
    story = Story(2)
    story.change(0, 1)
    story.change(0)
    story.round(0)
    story.deliver(story.send(0), at=(1,))
    assert_invalid(
        Promise.CAUSAL, story.finished(), "message n0/0#2", "in 12.n0, but its submitter had delivered of 16.n0"
    )


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


# The linear method against the definition.


def _random_history(rng: random.Random) -> list[Event]:
    """One ring; everybody sends and delivers in some order of its own, with a loss here and there."""
    story = Story(3)
    story.change(0, 1, 2)
    sent: list[MessageId] = []
    todo: dict[int, list[MessageId]] = {0: [], 1: [], 2: []}
    for _ in range(rng.randrange(4, 16)):
        node = rng.randrange(3)
        if rng.random() < 0.5:
            sent.append(story.send(node, sender=rng.randrange(2)))
            for queue in todo.values():
                queue.append(sent[-1])
        elif todo[node]:
            place = 0 if rng.random() < 0.8 else rng.randrange(len(todo[node]))
            message = todo[node].pop(place)
            if rng.random() < 0.95:
                story.deliver(message, at=(node,))
    for node, queue in todo.items():
        for message in queue:
            story.deliver(message, at=(node,))
    return story.finished()


def _is_causal_by_definition(events: list[Event]) -> bool:
    """Theorem 4.12, by the closure of the definition in chapter 3."""
    before: dict[MessageId, set[MessageId]] = {}
    seen: dict[int, list[MessageId]] = {}
    last: dict[tuple[int, int], MessageId] = {}
    for event in events:
        if isinstance(event, Submitted):
            message = event.messages[0].message
            direct = [*seen.get(event.process, []), *([last[message[:2]]] if message[:2] in last else [])]
            before[message] = set(direct).union(*(before[each] for each in direct))
            last[message[:2]] = message
        elif isinstance(event, DeliveredBatch):
            for delivered in event.messages:
                assert delivered.message is not None
                if not before[delivered.message] <= set(seen.get(event.process, [])):
                    return False
                seen.setdefault(event.process, []).append(delivered.message)
    return True


@pytest.mark.parametrize("block", [0, *(pytest.param(block, marks=pytest.mark.long) for block in range(1, 4))])
def test_the_linear_method_agrees_with_the_definition(block: int) -> None:
    seen = set()
    for seed in range(block * 250, block * 250 + 250):
        events = _random_history(random.Random(seed))
        by_definition = _is_causal_by_definition(events)
        assert (judge(Promise.CAUSAL, events).outcome is not Outcome.INVALID) == by_definition, f"seed {seed}"
        seen.add(by_definition)
    assert seen == {True, False}
