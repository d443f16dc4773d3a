from __future__ import annotations

from dataclasses import replace

import pytest

from ordercast.checker import Outcome
from ordercast.model.ids import Position, Seq
from ordercast.model.promises import Promise
from ordercast.model.service import Service
from ordercast.trace.records import Ended, Event, Installed, MessageId

from .histories import ALL, Story, assert_invalid, assert_unknown, assert_valid, edited, judge


def _three(at: tuple[int, ...] = ()) -> tuple[Story, MessageId]:
    """A safe message of n0, delivered at these."""
    story = Story(3)
    story.change(0, 1, 2)
    message = story.send(0, service=Service.SAFE)
    story.number(message, 0)
    if at:
        story.deliver(message, at=at)
    return story, message


def test_delivered_by_all_is_accepted() -> None:
    assert_valid(_three((0, 1, 2))[0].finished())


def test_delivered_later_in_the_transitional_view_is_accepted() -> None:
    story, message = _three((0,))
    story.crash(0)
    story.transitional(1, 2)
    story.deliver(message, at=(1, 2))
    story.regular(1, 2)
    assert_valid(story.finished())


def test_a_member_that_went_on_without_it_is_rejected() -> None:
    story, _ = _three((0, 1))
    story.change(0, 1, 2)
    assert_invalid(Promise.SAFE_DELIVERY, story.finished(), "message n0/0#1, view 16.n0", "n2 installed view 20.n0")


def test_going_on_without_it_counts_though_the_member_crashes_later_and_the_record_is_cut_short() -> None:
    story, _ = _three((0, 1))
    story.change(2)
    story.crash(2)
    assert_invalid(Promise.SAFE_DELIVERY, story.events, "n2 installed view 20.n2 without having delivered it")


def test_a_member_that_stays_to_the_end_without_it_is_rejected() -> None:
    story, _ = _three((0, 1))
    assert_invalid(Promise.SAFE_DELIVERY, story.finished(), "n2 never delivered it and still runs")


def test_a_member_that_crashes_before_its_next_view_owes_nothing() -> None:
    story, _ = _three((0, 1))
    story.crash(2)
    story.change(0, 1)
    assert_valid(story.finished())


def test_a_member_that_leaves_before_its_next_view_owes_nothing() -> None:
    story, _ = _three((0, 1))
    story.leave(2)
    story.change(0, 1)
    assert_valid(story.finished())


def test_safe_in_a_transitional_view_binds_its_members_alone() -> None:
    story, message = _three()
    story.transitional(0, 1)
    story.deliver(message, at=(0, 1))
    story.regular(0, 1)
    story.change(2)
    story.change(0, 1, 2)
    assert_valid(story.finished())


def test_a_member_of_the_transitional_view_that_never_installed_it_is_bound() -> None:
    """Figure 4.16: n1 does not complete the recovery, but n0 relied on its acknowledgement."""
    story, message = _three()
    story.transitional(0, 1, installers=(0,))
    story.deliver(message, at=(0,))
    story.regular(0, 1, installers=(0,))
    story.transitional(1)
    kept = len(story.events)
    story.deliver(message, at=(1,))
    story.regular(1)
    story.change(2)
    story.change(0, 1, 2)
    events = story.finished()
    assert_valid(events)
    broken = events[:kept] + events[kept + 1 :]
    assert_invalid(Promise.SAFE_DELIVERY, broken, "n1 installed view 24.n1 without having delivered it")


def test_a_listed_member_that_never_installed_the_ring_is_bound() -> None:
    story = Story(2)
    story.change(0, 1, installers=(0,))
    story.deliver(story.send(0, service=Service.SAFE), at=(0,))
    story.change(1)
    assert_invalid(Promise.SAFE_DELIVERY, story.finished(), "n1 installed view 16.n1")


def test_agreed_messages_promise_less() -> None:
    story = Story(2)
    story.change(0, 1)
    story.deliver(story.send(0), at=(0,))
    story.change(0)
    story.change(1)
    assert judge(Promise.SAFE_DELIVERY, story.finished()).outcome is Outcome.NOT_EXERCISED


def test_before_healing_or_end_nothing_is_known() -> None:
    story, _ = _three((0, 1))
    unhealed: list[Event] = [*story.events, Ended(story.now)]
    assert_unknown(Promise.SAFE_DELIVERY, unhealed, "not yet by n2")
    assert_unknown(Promise.SAFE_DELIVERY, story.events, "no end")


@pytest.mark.parametrize("steps", [(0, 2), (1, 1), (2, 0)], ids=["in the view", "in what ends it", "in the next view"])
def test_where_views_are_not_shared_those_in_one_view_deliver_there_or_in_what_ends_it(steps: tuple[int, int]) -> None:
    """n0 delivers a safe message in a view that n1 and n2 leave: so many steps before they deliver it, and after."""
    story = Story(3, replace(ALL, shares_views=False))
    story.change(0, 1, 2)
    message = story.send(0, service=Service.SAFE)
    changes = [story.transitional, story.regular]
    for change in changes[: steps[0]]:
        change(1, 2)
    story.number(message, 0)
    story.deliver(message, at=(0, 1, 2))
    for change in changes[steps[0] :]:
        change(1, 2)
    story.crash(0)
    if steps[1]:
        assert judge(Promise.SAFE_DELIVERY, story.finished()).outcome is Outcome.VALID
    else:
        said = "a view that n1 was in, who delivers it in 20.n1"
        assert_invalid(Promise.SAFE_DELIVERY, story.finished(), "message n0/0#1, view 16.n0", said)


def test_where_views_are_not_shared_who_was_in_a_view_above_the_place_is_not_excused() -> None:
    """n0 is counted in a view that it never installs; it had gone through one of its own, above what is safe there."""
    story = Story(3, replace(ALL, shares_views=False))
    story.change(0, 1, 2)
    story.change(0)
    alone = story.members[0].view.id
    story.change(0, 1, 2, installers=(1, 2))
    together = story.members[1].view.id
    message = story.send(1, service=Service.SAFE)
    story.deliver(message, at=(1, 2))
    story.crash(0)

    def raised(event: Event) -> Event:
        if not isinstance(event, Installed) or event.configuration.id != alone:
            return event
        return replace(event, configuration=replace(event.configuration, position=Position(together, Seq(9), 0)))

    assert judge(Promise.SAFE_DELIVERY, story.finished()).outcome is Outcome.VALID
    said = f"n0 installed view {alone} without having delivered it"
    assert_invalid(Promise.SAFE_DELIVERY, edited(story.events, raised), said)
