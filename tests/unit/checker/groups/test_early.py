"""Services that an engine delivers early, as clients of groups see them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ordercast.checker.verdict import Outcome
from ordercast.model.ids import Incarnation, Instant, NodeId, process_id_from
from ordercast.model.promises import GroupPromise
from ordercast.model.service import Service
from ordercast.trace.client_records import AskedJoin, AskedLeave, ClientEvent, GotDropped
from ordercast.trace.records import Started

from ..histories import EARLY
from .stories import Story, assert_valid, verdicts_on

R = Service.RELIABLE


def _together(*names: str) -> Story:
    """All in g, in a view that the network made; their engine delivers reliable and fifo messages early."""
    story = Story(*names)
    story.events.insert(0, Started(Instant(0), process_id_from(NodeId(0), Incarnation(1)), EARLY))
    for name in names:
        story.join("g", name)
    _change(story, *names)
    return story


def _change(story: Story, *names: str) -> None:
    story.view("g", *names, along=names)


def _outcome(events: list[ClientEvent], promise: GroupPromise) -> Outcome:
    return verdicts_on(events)[promise].outcome


def test_early_messages_come_in_any_order_and_before_or_after_a_view() -> None:
    story = _together("a", "b")
    first, second = story.send("a", "g", service=R), story.send("b", "g", service=R)
    story.get(first, "a")
    story.get(second, "a")
    story.get(second, "b")
    story.signal("g", "a", "b", remaining=("a", "b"))
    _change(story, "a", "b")
    story.get(first, "b")
    _change(story, "a", "b")
    assert_valid(story.finished())
    sentence = verdicts_on(story.finished())[GroupPromise.TOTAL_ORDER].sentence
    assert sentence.endswith("positions rose at every client, but for services that come early")


@pytest.mark.parametrize("promise", [GroupPromise.TOTAL_ORDER, GroupPromise.VIRTUAL_SYNCHRONY, GroupPromise.SIGNALS])
def test_of_an_engine_that_delivers_in_order_the_same_is_refused(promise: GroupPromise) -> None:
    story = _together("a", "b")
    first, second = story.send("a", "g", service=R), story.send("b", "g", service=R)
    story.get(first, "a")
    story.get(second, "a")
    story.get(second, "b")
    story.signal("g", "a", "b", remaining=("a", "b"))
    story.get(first, "b")
    _change(story, "a", "b")
    third = story.send("a", "g", service=R)
    story.get(third, "a")
    _change(story, "a", "b")
    events = story.finished()
    start = events[0]
    assert isinstance(start, Started)
    assert _outcome(events, promise) is Outcome.VALID
    assert (
        _outcome([replace(start, promises=replace(EARLY, early=frozenset())), *events[1:]], promise) is Outcome.INVALID
    )


def test_an_early_message_that_a_companion_never_gets_is_refused_two_changes_later() -> None:
    story = _together("a", "b")
    story.get(story.send("a", "g", service=R), "a")
    _change(story, "a", "b")
    assert _outcome(list(story.events), GroupPromise.VIRTUAL_SYNCHRONY) is Outcome.VALID
    _change(story, "a", "b")
    verdict = verdicts_on(story.finished())[GroupPromise.VIRTUAL_SYNCHRONY]
    assert verdict.outcome is Outcome.INVALID and "never got it" in verdict.sentence


def test_one_who_did_not_go_along_is_not_asked() -> None:
    story = _together("a", "b")
    story.get(story.send("a", "g", service=R), "a")
    story.view("g", "a", along=("a",))
    story.view("g", "b", along=("b",))
    for _ in range(2):
        _change(story, "a", "b")
    assert _outcome(story.finished(), GroupPromise.VIRTUAL_SYNCHRONY) is Outcome.VALID


def test_one_who_joined_meanwhile_may_lack_it() -> None:
    """The message may have passed its daemon before the join came there."""
    story = _together("a", "b")
    story.connect("c", 2)
    story.join("g", "c")
    message = story.send("a", "g", service=R)
    story.get(message, "a", "b")
    agreed = story.send("a", "g")
    story.get(agreed, "a", "b", "c")
    for _ in range(3):
        _change(story, "a", "b", "c")
    assert_valid(story.finished())


@pytest.mark.parametrize("is_told", [True, False])
def test_a_loss_behind_an_early_message_lies_at_any_place_behind_the_last_one_in_order(is_told: bool) -> None:
    """The early message has the highest place, and b got it before it lost the second."""
    story = _together("a", "b")
    first, second, third = (story.send("a", "g") for _ in range(3))
    early = story.send("a", "g", service=R)
    story.get(first, "a", "b")
    places = [story.place(message) for message in (second, third, early)]
    assert places == sorted(places)
    story.get(early, "a", "b")
    story.get(second, "a")
    if is_told:
        story.events.append(GotDropped(story.now, story.ids["b"], 1))
    story.get(third, "a", "b")
    _change(story, "a", "b")
    events = story.finished()
    expected = Outcome.VALID if is_told else Outcome.INVALID
    assert _outcome(events, GroupPromise.AGREED_DELIVERY) is expected


def test_one_that_left_and_joins_again_may_miss_what_it_sends_meanwhile_also_when_it_reads_that_late() -> None:
    """The message passes by the second join: its sender, who still reads the first view, is in no group then."""
    story = _together("a", "b")
    at, client = story.now, story.ids["a"]
    story.events += [AskedLeave(at, client, ("g",)), AskedJoin(at, client, ("g",))]
    story.send("a", "g", service=R)
    assert _outcome(story.finished(), GroupPromise.SELF_DELIVERY) is Outcome.VALID
    story = _together("a", "b")
    story.send("a", "g", service=R)
    assert _outcome(story.finished(), GroupPromise.SELF_DELIVERY) is Outcome.INVALID
