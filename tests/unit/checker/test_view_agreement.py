from __future__ import annotations

from dataclasses import replace

from ordercast.model.configuration import ChangeReason, ConfigurationKind
from ordercast.model.ids import NO_CONFIGURATION, ConfigurationId, Position, Seq
from ordercast.model.promises import Promise
from ordercast.trace.records import DeliveredBatch, Event

from .histories import Story, assert_invalid, assert_valid, edited, process, with_view

HERE, THERE = process(0), process(1)


def _events() -> list[Event]:
    """Views of each: first, T, pair, T, pair."""
    story = Story(2)
    story.change(0, 1)
    story.round(0, 1)
    story.change(0, 1)
    return story.finished()


def test_the_same_views_are_accepted() -> None:
    assert_valid(_events())


def test_other_members_under_one_id_are_rejected() -> None:
    broken = with_view(_events(), 1, 2, members=(THERE,))
    assert_invalid(Promise.VIEW_AGREEMENT, broken, "n1, view 12.n0", "other members than at n0")


def test_another_kind_under_one_id_is_rejected() -> None:
    broken = with_view(_events(), 1, 3, kind=ConfigurationKind.REGULAR)
    assert_invalid(Promise.VIEW_AGREEMENT, broken, "n1, view 14.n0", "another kind")


def test_another_reason_for_one_step_is_rejected() -> None:
    broken = with_view(_events(), 1, 3, reason=ChangeReason.MERGE)
    assert_invalid(Promise.VIEW_AGREEMENT, broken, "n1, view 14.n0", "differs in reason from the same step at n0")


def test_another_position_for_one_step_is_rejected() -> None:
    broken = with_view(_events(), 1, 3, position=Position(ConfigurationId(12, HERE), Seq(1), 5))
    assert_invalid(Promise.VIEW_AGREEMENT, broken, "differs in position")


def test_a_view_without_its_installer_is_rejected() -> None:
    broken = with_view(_events(), 1, 4, members=(HERE,))
    assert_invalid(Promise.VIEW_AGREEMENT, broken, "n1, view 16.n0", "no member of it")


def test_a_broken_chain_is_rejected() -> None:
    broken = with_view(_events(), 1, 4, previous=ConfigurationId(12, HERE))
    assert_invalid(Promise.VIEW_AGREEMENT, broken, "names 12.n0 as the configuration before it, which was 14.n0")


def test_a_chain_that_begins_in_the_middle_is_rejected() -> None:
    broken = with_view(_events(), 1, 0, previous=ConfigurationId(2, THERE))
    assert_invalid(Promise.VIEW_AGREEMENT, broken, "n1, view 8.n1", "names 2.n1", "which was none")


def test_two_regular_views_in_a_row_are_rejected() -> None:
    broken = with_view(with_view(_events(), 0, 3, kind=ConfigurationKind.REGULAR), 1, 3, kind=ConfigurationKind.REGULAR)
    assert_invalid(Promise.VIEW_AGREEMENT, broken, "two regular views follow on each other")


def test_a_first_view_that_is_transitional_is_rejected() -> None:
    broken = with_view(_events(), 0, 0, kind=ConfigurationKind.TRANSITIONAL)
    assert_invalid(Promise.VIEW_AGREEMENT, broken, "the first view is not regular")


def test_a_delivery_that_names_another_view_is_rejected() -> None:
    def change(event: Event) -> Event:
        if isinstance(event, DeliveredBatch) and event.process == THERE:
            return replace(event, configuration=NO_CONFIGURATION)
        return event

    assert_invalid(Promise.VIEW_AGREEMENT, edited(_events(), change), "n1, view 12.n0", "naming view none")
