"""Clients that were told of a loss, or refused a group: nothing is owed to them that they were told they do not get."""

from __future__ import annotations

from ordercast.model.promises import GroupPromise
from ordercast.model.service import Service
from ordercast.trace.client_records import AskedJoin, GotDropped, GotRefusal

from .stories import Story, assert_invalid, assert_valid


def _lossy(*, is_told: bool, is_before: bool = False) -> Story:
    """b misses the second of three messages, of which the last comes in calm; everybody goes on together."""
    story = Story("a", "b")
    for name in ("a", "b"):
        story.join("g", name)
    first, second, third = (story.send("a", "g", service=Service.SAFE) for _ in range(3))
    if is_told and is_before:
        story.events.append(GotDropped(story.now, story.ids["b"], 1))
    story.get(first, "a", "b")
    story.get(second, "a")
    if is_told and not is_before:
        story.events.append(GotDropped(story.now, story.ids["b"], 1))
    story.get(third, "a", "b")
    story.view("g", "a", "b", along="ab")
    return story


def test_what_a_client_was_told_it_lost_is_not_owed_to_it() -> None:
    assert_valid(_lossy(is_told=True).finished())


def test_what_it_was_not_told_of_is() -> None:
    for promise in (GroupPromise.AGREED_DELIVERY, GroupPromise.SAFE_DELIVERY, GroupPromise.VIRTUAL_SYNCHRONY):
        assert_invalid(promise, _lossy(is_told=False).finished(), "b@n1")


def test_a_loss_elsewhere_excuses_nothing() -> None:
    assert_invalid(GroupPromise.AGREED_DELIVERY, _lossy(is_told=True, is_before=True).finished(), "b@n1")


def test_a_loss_at_the_end_excuses_what_nobody_got() -> None:
    story = Story("a")
    story.join("g", "a")
    story.get(story.send("a", "g"), "a")
    story.send("a", "g")
    story.events.append(GotDropped(story.now, story.ids["a"], 1))
    assert_valid(story.finished())


def test_who_was_refused_a_group_is_owed_nothing_from_there() -> None:
    story = Story("a", "b")
    story.join("g", "b")
    story.events.append(AskedJoin(story.now, story.ids["a"], ("g",)))
    hello = story.send("a", "g")
    story.get(hello, "b")
    without = [*story.events]
    story.events.append(GotRefusal(story.now, story.ids["a"], ("g",)))
    assert_valid(story.finished())
    story.events = without
    assert_invalid(GroupPromise.SELF_DELIVERY, story.finished(), "a@n0")


def test_a_refusal_excuses_nothing_of_an_earlier_stay() -> None:
    story = Story("a")
    story.join("g", "a")
    story.send("a", "g")
    story.leave("g", "a")
    story.events.append(AskedJoin(story.now, story.ids["a"], ("g",)))
    story.events.append(GotRefusal(story.now, story.ids["a"], ("g",)))
    assert_invalid(GroupPromise.SELF_DELIVERY, story.finished(), "a@n0")
