from __future__ import annotations

from ordercast.checker import Outcome
from ordercast.model.ids import ConfigurationId, Position, Seq
from ordercast.model.promises import Promise
from ordercast.trace.records import Event

from .histories import Story, assert_invalid, assert_valid, judge, process, with_view


def _events() -> list[Event]:
    story = Story(2)
    story.change(0, 1)
    story.change(0, 1)
    return story.finished()


def test_rising_views_are_accepted() -> None:
    assert_valid(_events())


def test_a_view_that_falls_back_is_rejected() -> None:
    broken = with_view(_events(), 1, 3, id=ConfigurationId(10, process(0)))
    assert_invalid(Promise.VIEW_MONOTONY, broken, "n1, view 10.n0", "installed after 12.n0")


def test_the_same_view_twice_is_rejected() -> None:
    broken = with_view(_events(), 1, 4, id=ConfigurationId(14, process(0)))
    assert_invalid(Promise.VIEW_MONOTONY, broken, "n1, view 14.n0", "installed after 14.n0")


def test_a_position_that_falls_back_is_rejected() -> None:
    broken = with_view(_events(), 1, 4, position=Position(ConfigurationId(12, process(0)), Seq(0), 0))
    assert_invalid(Promise.VIEW_MONOTONY, broken, "n1, view 16.n0", "position is not after that of 14.n0")


def _restarted(ring_seq: int, *, kept_storage: bool) -> list[Event]:
    story = Story(2)
    story.change(0, 1)
    story.crash(1)
    story.start(1, kept_storage=kept_storage, ring_seq=ring_seq)
    return story.finished()


def test_a_restart_above_the_past_is_accepted() -> None:
    assert judge(Promise.VIEW_MONOTONY, _restarted(13, kept_storage=True)).outcome is Outcome.VALID


def test_a_restart_at_the_past_is_rejected() -> None:
    broken = _restarted(12, kept_storage=True)
    assert_invalid(Promise.VIEW_MONOTONY, broken, "n1'2, view 12.n1'2", "had installed one of seq 12")


def test_a_restart_without_storage_may_start_anew() -> None:
    assert judge(Promise.VIEW_MONOTONY, _restarted(1, kept_storage=False)).outcome is Outcome.VALID


def _without_storage(*, ring_seq: int, is_used_again: bool) -> list[Event]:
    """Ring 12 is installed with storage, ring 16 without it; then a restart."""
    story = Story(2)
    story.change(0, 1)
    story.turn_storage(1, in_use=False)
    story.change(0, 1)
    if is_used_again:
        story.turn_storage(1, in_use=True)
    story.crash(1)
    story.start(1, ring_seq=ring_seq)
    return story.finished()


def test_rings_without_storage_do_not_bind_the_next_life() -> None:
    assert judge(Promise.VIEW_MONOTONY, _without_storage(ring_seq=13, is_used_again=False)).outcome is Outcome.VALID


def test_rings_from_before_it_went_without_do() -> None:
    broken = _without_storage(ring_seq=12, is_used_again=False)
    assert_invalid(Promise.VIEW_MONOTONY, broken, "n1'2, view 12.n1'2", "had installed one of seq 12")


def test_once_storage_is_used_again_all_of_them_do() -> None:
    assert judge(Promise.VIEW_MONOTONY, _without_storage(ring_seq=17, is_used_again=True)).outcome is Outcome.VALID
    broken = _without_storage(ring_seq=16, is_used_again=True)
    assert_invalid(Promise.VIEW_MONOTONY, broken, "n1'2, view 16.n1'2", "had installed one of seq 16")


def test_a_third_life_is_bound_by_the_second_alone_when_that_lost_its_storage() -> None:
    story = Story(2)
    story.change(0, 1)
    story.crash(1)
    story.start(1, kept_storage=False, ring_seq=2)
    story.crash(1)
    kept = list(story.events)
    story.start(1, ring_seq=3)
    assert judge(Promise.VIEW_MONOTONY, story.finished()).outcome is Outcome.VALID
    story.events = kept
    story.lives[1] = 2
    story.start(1, ring_seq=2)
    assert_invalid(Promise.VIEW_MONOTONY, story.finished(), "n1'3", "seq 2")
