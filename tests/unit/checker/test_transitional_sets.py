from __future__ import annotations

from ordercast.checker import Outcome
from ordercast.model.configuration import ConfigurationKind
from ordercast.model.ids import ConfigurationId
from ordercast.model.promises import Promise
from ordercast.trace.records import Event

from .histories import Story, assert_invalid, assert_valid, judge, process, with_view

HERE, THERE, THIRD = process(0), process(1), process(2)


def _merged() -> list[Event]:
    """n0 and n1 come together, then n2 joins. Views of n0: first, T, pair, T, three."""
    story = Story(3)
    story.change(0, 1)
    story.change(0, 1, 2)
    return story.finished()


def test_who_comes_along_is_told_rightly() -> None:
    assert_valid(_merged())


def test_a_first_view_with_others_is_rejected() -> None:
    broken = with_view(_merged(), 0, 0, members=(HERE, THERE))
    assert_invalid(Promise.TRANSITIONAL_SETS, broken, "n0, view 4.n0", "the first view of a life")


def test_a_first_view_that_is_transitional_is_rejected() -> None:
    broken = with_view(_merged(), 0, 0, kind=ConfigurationKind.TRANSITIONAL)
    assert_invalid(Promise.TRANSITIONAL_SETS, broken, "the first view of a life")


def test_a_stranger_to_the_old_ring_is_rejected() -> None:
    everyone = (HERE, THERE, THIRD)
    broken = with_view(_merged(), 0, 3, members=everyone, transitional=everyone)
    assert_invalid(Promise.TRANSITIONAL_SETS, broken, "n0, view 18.n0", "lists members that were not in 16.n0")


def test_one_who_does_not_list_itself_is_rejected() -> None:
    broken = with_view(_merged(), 0, 4, transitional=(THERE,))
    assert_invalid(Promise.TRANSITIONAL_SETS, broken, "n0, view 20.n0", "does not list the process itself")


def test_a_regular_view_that_says_otherwise_than_the_transitional_is_rejected() -> None:
    broken = with_view(_merged(), 0, 4, transitional=(HERE, THERE, THIRD))
    assert_invalid(Promise.TRANSITIONAL_SETS, broken, "lists others as coming along than the transitional view 18.n0")


def test_companions_outside_the_new_ring_are_rejected() -> None:
    broken = with_view(_merged(), 0, 4, members=(HERE, THIRD))
    assert_invalid(Promise.TRANSITIONAL_SETS, broken, "coming along some that are not members")


def test_two_transitional_views_for_one_step_are_rejected() -> None:
    broken = with_view(_merged(), 1, 3, id=ConfigurationId(18, THERE))
    assert_invalid(
        Promise.TRANSITIONAL_SETS, broken, "n1, view 20.n0", "came from 16.n0 through 18.n1, n0 through 18.n0"
    )


def test_a_companion_that_came_from_elsewhere_is_rejected() -> None:
    """All three were together, n2 went away and came back; n0 pretends that it never left."""
    story = Story(3)
    story.change(0, 1, 2)
    story.transitional(0, 1, 2, installers=(0, 1))
    story.ring_seq += 40
    story.change(2)
    story.regular(0, 1, 2, installers=(0, 1))
    story.regular(0, 1, 2, installers=())
    story.transitional(2)
    story.ring_seq -= 4
    story.regular(0, 1, 2, installers=(2,))
    broken = story.finished()
    for promise in (Promise.TRANSITIONAL_SETS, Promise.TRUTHFUL_SETS):
        assert_invalid(promise, broken, "lists n2 as coming along from 16.n0, but that came from")


def test_one_left_out_by_its_companion_is_rejected() -> None:
    broken = with_view(_merged(), 1, 3, members=(THERE,), transitional=(THERE,))
    broken = with_view(broken, 1, 4, transitional=(THERE,))
    assert_invalid(Promise.TRANSITIONAL_SETS, broken, "came from 16.n0 through 18.n0")
    assert_invalid(Promise.TRUTHFUL_SETS, broken, "lists n1 as coming along from 16.n0, but is not listed by it")


def test_whoever_comes_alone_is_truthful_though_not_exact() -> None:
    broken = _merged()
    for node, who in ((0, HERE), (1, THERE)):
        broken = with_view(broken, node, 3, members=(who,), transitional=(who,), id=ConfigurationId(18, who))
        broken = with_view(broken, node, 4, transitional=(who,))
    assert_invalid(Promise.TRANSITIONAL_SETS, broken, "came from 16.n0 through 18.n")
    assert judge(Promise.TRUTHFUL_SETS, broken).outcome is Outcome.VALID
