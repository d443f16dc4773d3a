"""What clients of groups see where the order is one among those who share groups: positions are only names."""

from __future__ import annotations

from dataclasses import replace

from ordercast.checker.verdict import Outcome
from ordercast.model.ids import ConfigurationId, Incarnation, Instant, NodeId, Position, process_id_from
from ordercast.model.promises import GroupPromise
from ordercast.order.tree.promised import GROUPS
from ordercast.trace.records import MessageId, Started

from ..histories import ALL
from .stories import RING, Story, assert_invalid, verdicts_on

LATER = ConfigurationId(RING.seq + 4, RING.representative)


def _story(**groups: str) -> Story:
    """Clients a to d, in groups of their letters; their engine has no order of all messages."""
    story = Story(*"abcd")
    promises = replace(ALL, groups=GROUPS)
    story.events.insert(0, Started(Instant(0), process_id_from(NodeId(0), Incarnation(1)), promises))
    for group, members in groups.items():
        for name in members:
            story.join(group, name)
    return story


def _get(story: Story, name: str, *messages: MessageId) -> None:
    for message in messages:
        story.get(message, name)


def test_positions_need_not_rise_and_total_order_is_not_promised() -> None:
    story = _story(g="ab", h="bc")
    one, two = story.send("a", "g"), story.send("c", "h")
    places = story.place(two), story.place(one)
    assert places == tuple(sorted(places))
    _get(story, "a", one)
    _get(story, "b", one, two)
    _get(story, "c", two)
    events = story.finished()
    assert verdicts_on(events)[GroupPromise.TOTAL_ORDER].outcome is Outcome.NOT_PROMISED
    assert verdicts_on(events)[GroupPromise.MULTIPLE_GROUP_ORDER].outcome is Outcome.VALID


def test_two_who_share_groups_get_messages_in_one_order() -> None:
    story = _story(g="ab", h="ab")
    one, two = story.send("a", "g"), story.send("b", "h")
    _get(story, "a", one, two)
    _get(story, "b", two, one)
    assert_invalid(GroupPromise.MULTIPLE_GROUP_ORDER, story.events, "before and after itself")


def test_no_circle_of_clients_contradicts_itself() -> None:
    story = _story(g="ab", h="bc", i="ca")
    one, two, three = story.send("a", "g"), story.send("b", "h"), story.send("c", "i")
    _get(story, "b", one, two)
    _get(story, "c", two, three)
    _get(story, "a", three, one)
    assert_invalid(GroupPromise.MULTIPLE_GROUP_ORDER, story.events, "before and after itself")


def test_a_message_has_one_position_in_a_configuration_and_may_be_ordered_again_in_a_later_one() -> None:
    story = _story(g="ab")
    message = story.send("a", "g", confirm=True)
    story.get(message, "a")
    again = Position(LATER, 1, 0)
    story.get(message, "b", place=again)
    assert verdicts_on(story.events)[GroupPromise.MULTIPLE_GROUP_ORDER].outcome is Outcome.VALID
    story.confirm(message, "a", again)
    assert verdicts_on(story.events)[GroupPromise.CONFIRMATIONS].outcome is Outcome.VALID
    other = story.send("a", "g", confirm=True)
    story.get(other, "a")
    story.get(other, "b", place=Position(RING, 77, 0))
    assert_invalid(GroupPromise.MULTIPLE_GROUP_ORDER, story.events, "others at")


def test_a_confirmation_tells_the_position_of_its_configuration() -> None:
    story = _story(g="ab")
    message = story.send("a", "g", confirm=True)
    story.get(message, "a", "b")
    story.confirm(message, "a", Position(RING, 77, 0))
    assert_invalid(GroupPromise.CONFIRMATIONS, story.events, "others saw")


def test_a_message_comes_after_what_it_may_depend_on_over_others_too() -> None:
    story = _story(g="abc", h="bc")
    cause = story.send("a", "g")
    _get(story, "b", cause)
    effect = story.send("b", "h")
    _get(story, "b", effect)
    _get(story, "c", effect, cause)
    assert_invalid(GroupPromise.CAUSAL, story.events, "on which it may depend")


def test_whoever_has_a_message_of_a_view_has_all_that_others_got_before_it() -> None:
    story = _story(g="ab")
    one, two = story.send("a", "g"), story.send("a", "g")
    _get(story, "a", one, two)
    _get(story, "b", two)
    assert_invalid(GroupPromise.AGREED_DELIVERY, story.events, "unlike")


def test_messages_that_nobody_can_compare_are_no_hole() -> None:
    story = _story(g="ab")
    one, two = story.send("a", "g", self_discard=True), story.send("b", "g", self_discard=True)
    _get(story, "b", one)
    _get(story, "a", two)
    assert verdicts_on(story.events)[GroupPromise.AGREED_DELIVERY].outcome is Outcome.VALID
