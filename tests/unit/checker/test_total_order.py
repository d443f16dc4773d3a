from __future__ import annotations

from ordercast.checker import Outcome
from ordercast.model.ids import ConfigurationId, Position, Seq
from ordercast.model.promises import Promise
from ordercast.model.service import Service

from .histories import Story, assert_invalid, assert_valid, judge, process, with_delivery, with_view


def _pair() -> Story:
    story = Story(2)
    story.change(0, 1)
    return story


def test_one_order_is_accepted() -> None:
    story = _pair()
    story.round(0, 1, count=5)
    story.change(0, 1)
    story.round(0, 1, count=5)
    assert_valid(story.finished())


def test_two_orders_are_rejected_by_their_positions() -> None:
    story = _pair()
    one, other = story.send(0), story.send(1)
    story.deliver(one, other, at=(0,))
    story.deliver(other, one, at=(1,))
    assert_invalid(Promise.TOTAL_ORDER, story.finished(), "n1, message n0/0#1", "at 12.n0 1/0, after 12.n0 2/0")


def test_two_orders_are_rejected_though_each_engine_numbers_its_own() -> None:
    """Positions rise at both processes; only the identities show that the orders differ."""
    story = _pair()
    one, other = story.send(0), story.send(1)
    story.deliver(one, other, at=(0,))
    story.positions[one], story.positions[other] = story.positions[other], story.positions[one]
    story.deliver(other, one, at=(1,))
    assert_invalid(
        Promise.TOTAL_ORDER, story.finished(), "n1, message n1/0#1", "12.n0 1/0 here, at 12.n0 2/0 elsewhere"
    )


def test_an_order_that_only_a_chain_of_three_contradicts_is_rejected() -> None:
    """No two processes deliver the same two messages, yet a before b, b before c, c before a."""
    story = Story(3)
    story.change(0, 1, 2)
    a, b, c = (story.send(node) for node in range(3))
    ring = story.members[0].ring
    for node, (first, second) in enumerate(((a, b), (b, c), (c, a))):
        story.positions[first], story.positions[second] = (ring, 1, 0), (ring, 2, 0)
        story.deliver(first, second, at=(node,))
    assert_invalid(Promise.TOTAL_ORDER, story.finished(), "elsewhere")


def test_one_position_for_two_messages_is_rejected() -> None:
    story = _pair()
    one, other = story.send(0), story.send(1)
    story.number(one, 0)
    story.positions[other] = story.positions[one]
    story.deliver(one, at=(0,))
    story.deliver(other, at=(1,))
    assert_invalid(Promise.TOTAL_ORDER, story.finished(), "message n1/0#1", "has the position of n0/0#1")


def test_one_message_on_two_rings_is_rejected() -> None:
    story = _pair()
    message = story.round(0, 1)[0]
    story.change(0)
    story.change(1)
    ring, seq, slot = story.positions[message]
    story.positions[message] = (ConfigurationId(99, process(0)), seq, slot)
    story.deliver(message, at=(1,))
    assert ring != ConfigurationId(99, process(0))
    assert_invalid(
        Promise.TOTAL_ORDER, story.finished(), "n1, message n0/0#1", "at 99.n0 1/0 here, at 12.n0 1/0 elsewhere"
    )


def test_a_view_out_of_place_is_rejected() -> None:
    story = _pair()
    story.round(0, 1, count=3)
    story.change(0, 1)
    early = Position(ConfigurationId(12, process(0)), Seq(2), 0)
    events = story.finished()
    assert_invalid(Promise.TOTAL_ORDER, with_view(events, 1, 3, position=early), "n1, view", "view at 12.n0 2/0, after")


def test_an_altered_seq_is_rejected() -> None:
    story = _pair()
    sent = story.round(0, 1, count=3)
    assert_invalid(Promise.TOTAL_ORDER, with_delivery(story.finished(), 1, sent[2], number=77), "12.n0 77/0 here")


def test_what_is_said_of_one_order_names_the_messages_that_are_judged() -> None:
    story = _pair()
    story.round(0, 1)
    events = story.finished()
    assert "one order of all agreed and safe messages" in judge(Promise.TOTAL_ORDER, events).sentence
    assert "one sequence of agreed and safe messages" in judge(Promise.AGREED_DELIVERY, events).sentence


def test_weaker_messages_are_not_judged() -> None:
    story = _pair()
    one, other = story.send(0, service=Service.FIFO), story.send(1, service=Service.FIFO)
    story.deliver(one, other, at=(0,))
    story.deliver(other, one, at=(1,))
    assert judge(Promise.TOTAL_ORDER, story.finished()).outcome is Outcome.NOT_EXERCISED
