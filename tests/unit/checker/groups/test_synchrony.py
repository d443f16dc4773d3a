from __future__ import annotations

from dataclasses import replace

import pytest

from ordercast.checker.verdict import Outcome
from ordercast.model.events import ViewId
from ordercast.model.ids import NO_POSITION, ConfigurationId, Incarnation, Instant, NodeId, Position, process_id_from
from ordercast.model.promises import GroupPromise
from ordercast.model.service import Service
from ordercast.trace.client_records import Disconnected, End
from ordercast.trace.records import Started

from ..histories import ALL
from .stories import RING, Story, assert_invalid, assert_valid, verdicts_on


def _three() -> Story:
    story = Story("a", "b", "c")
    for name in "abc":
        story.join("g", name)
    return story


def _parted(story: Story) -> Story:
    """c is lost; a and b go on."""
    story.view("g", "a", "b", along="ab")
    story.end("c", End.DAEMON_CRASHED)
    return story


def test_what_comes_after_a_signal_may_be_missing_at_those_out_of_reach() -> None:
    story = _three()
    story.members["g"] = []
    story.get(story.send("a", "g", service=Service.SAFE), "a", "b", "c")
    story.signal("g", "a", "b", remaining="ab")
    story.get(story.send("a", "g", service=Service.SAFE), "a", "b")
    assert_valid(_parted(story).finished())


def test_a_message_that_a_companion_did_not_get_is_rejected() -> None:
    story = _three()
    story.members["g"] = []
    story.signal("g", "a", "b", remaining="ab")
    story.get(story.send("b", "g"), "b")
    assert_invalid(GroupPromise.VIRTUAL_SYNCHRONY, _parted(story).finished(), "a@n0", "did not get it")


def test_a_message_that_its_sender_discards_is_no_difference() -> None:
    story = _three()
    story.members["g"] = []
    story.signal("g", "a", "b", remaining="ab")
    story.get(story.send("b", "g", self_discard=True), "a")
    assert_valid(_parted(story).finished())


def test_two_signals_in_one_view_are_rejected() -> None:
    story = _three()
    story.signal("g", "a", "a", remaining="ab")
    assert_invalid(GroupPromise.SIGNALS, story.finished(), "got 2 signals")


def test_a_signal_that_only_one_of_two_companions_gets_is_rejected() -> None:
    story = _three()
    story.members["g"] = []
    story.signal("g", "a", remaining="ab")
    assert_invalid(GroupPromise.SIGNALS, _parted(story).finished(), "unlike")


def test_going_on_without_a_member_and_without_a_signal_is_rejected() -> None:
    story = _three()
    story.members["g"] = []
    assert_invalid(GroupPromise.SIGNALS, _parted(story).finished(), "goes on without ['c@n2'], and got no signal")


def test_going_on_with_one_whom_the_signal_had_given_up_is_rejected() -> None:
    story = _three()
    story.members["g"] = []
    story.signal("g", "a", "b", remaining="a")
    assert_invalid(GroupPromise.SIGNALS, _parted(story).finished(), "goes on with ['b@n1'], whom the signal")


def test_a_message_before_the_signal_at_one_and_after_it_at_another_is_rejected() -> None:
    story = _three()
    story.members["g"] = []
    message = story.send("a", "g")
    story.get(message, "a")
    story.signal("g", "a", "b", remaining="ab")
    story.get(message, "b")
    assert_invalid(GroupPromise.SIGNALS, _parted(story).finished(), "the signal", "not both")


def test_a_signal_that_names_another_view_is_rejected() -> None:
    story = _three()
    story.views["ag"] = story.views["ag"]._replace(position=NO_POSITION)
    story.signal("g", "a", remaining="ab")
    assert_invalid(GroupPromise.SIGNALS, story.finished(), "a view of g that it is not in")


def test_a_message_in_a_view_before_that_of_its_sending_is_rejected() -> None:
    story = _three()
    at = story.view("g", "a", along="abc", members="abc")
    message = story.send("a", "g")
    story.get(message, "a", "b", "c")
    story.view("g", "b", "c", along="abc", members="abc", at=at)
    assert_invalid(GroupPromise.SANE_VIEWS, story.finished(), "b@n1", "but it was sent in")


def test_views_and_messages_are_compared_by_their_positions_whatever_the_configuration_is_called() -> None:
    story = _three()
    at = ViewId(ConfigurationId(99, RING.representative), Position(RING, story.clock + 1, 0))
    story.view("g", "a", along="abc", members="abc", at=at)
    message = story.send("a", "g")
    story.get(message, "a", "b", "c", place=Position(RING, story.clock + 2, 0))
    assert_invalid(GroupPromise.SANE_VIEWS, story.finished(), "b@n1", "but it was sent in")


def test_a_message_of_a_client_in_the_view_of_its_successor_is_rejected() -> None:
    story = _three()
    message = story.send("c", "g")
    story.end("c")
    story.connect("d", 2, session=2, full="c@n2")
    story.join("g", "d")
    story.get(message, "a", "b", "d")
    assert_invalid(GroupPromise.SANE_VIEWS, story.finished(), "a@n0", "has its name")


def test_a_hole_before_an_agreed_message_is_rejected() -> None:
    story = _three()
    first, second = story.send("a", "g", service=Service.RELIABLE), story.send("b", "g")
    story.get(first, "a", "b")
    story.get(second, "a", "b", "c")
    assert_invalid(GroupPromise.AGREED_DELIVERY, story.finished(), "c@n2", "but got a later one")


def test_a_hole_after_a_signal_is_rejected_when_its_sender_comes_along_and_accepted_when_not() -> None:
    for sender, is_valid in (("a", False), ("c", True)):
        story = _three()
        story.members["g"] = []
        story.signal("g", "a", "b", "c", remaining="ab")
        first, second = story.send(sender, "g"), story.send("b", "g")
        story.get(first, "c")
        story.get(second, "a", "b", "c")
        events = _parted(story).finished()
        if is_valid:
            assert_valid(events)
        else:
            assert_invalid(GroupPromise.AGREED_DELIVERY, events, "a@n0", "but got a later one")


def test_a_safe_message_that_a_member_does_not_get_is_rejected_unless_it_ends() -> None:
    story = _three()
    story.members["g"] = []
    story.get(story.send("a", "g", service=Service.SAFE), "a", "b")
    assert_invalid(GroupPromise.SAFE_DELIVERY, list(story.events), "c@n2", "which was safe in")
    story.signal("g", "a", "b", remaining="ab")
    assert_valid(_parted(story).finished())


@pytest.mark.parametrize("is_past", [True, False])
def test_where_views_are_not_shared_who_ends_before_the_place_of_a_safe_message_is_excused(is_past: bool) -> None:
    story = _three()
    promises = replace(ALL, shares_views=False)
    story.events.insert(0, Started(Instant(0), process_id_from(NodeId(0), Incarnation(1)), promises))
    message = story.send("a", "g", service=Service.SAFE)
    if is_past:
        story.place(message)
    story.signal("g", "c", remaining="c")
    story.view("g", "c", along="c")
    story.get(message, "a", "b")
    story.events.append(Disconnected(story.now, story.ids["c"], End.CRASHED))
    outcome = verdicts_on(story.finished())[GroupPromise.SAFE_DELIVERY].outcome
    assert outcome is (Outcome.INVALID if is_past else Outcome.VALID)


def test_where_views_are_not_shared_who_came_past_a_safe_message_in_another_group_is_not_excused() -> None:
    story = _three()
    story.join("h", "a")
    story.join("h", "c")
    promises = replace(ALL, shares_views=False)
    story.events.insert(0, Started(Instant(0), process_id_from(NodeId(0), Incarnation(1)), promises))
    story.get(story.send("a", "g", service=Service.SAFE), "a", "b")
    story.get(story.send("a", "h"), "a", "c")
    story.end("c")
    assert_invalid(GroupPromise.SAFE_DELIVERY, story.finished(), "c@n2", "which was safe in")


def test_a_safe_message_after_a_signal_must_reach_those_who_come_along() -> None:
    story = _three()
    story.members["g"] = []
    story.signal("g", "a", "b", remaining="ab")
    story.get(story.send("a", "g", service=Service.SAFE), "a")
    assert_invalid(GroupPromise.SAFE_DELIVERY, _parted(story).finished(), "b@n1", "which was safe in")
