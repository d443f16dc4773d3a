"""Views that are numbered anew, by daemons that lost their memory: components still come one after the other."""

from __future__ import annotations

import pytest

from ordercast.model.lineage import Lineage, Term
from ordercast.replicated import core as core_module
from ordercast.replicated.effects import Point, Reason
from ordercast.replicated.quorum import EverySide, Majority, Rule
from ordercast.replicated.wire import ERA_SAID_MAX, State, decode, encode_state

from .stage import ALL, Stage, view_id

VOICELESS: Rule = Majority(dict.fromkeys(ALL, 1))  # and a fourth that only has a copy
FOUR = (*ALL, "d")


def begun_late() -> Stage:
    """In views with high numbers, with one command applied. Then d is alone."""
    stage = Stage(*FOUR, rule=VOICELESS)
    stage.view(50, *FOUR)
    stage.settle(*FOUR)
    stage.transfer("d")
    stage.settle(*FOUR)
    stage.submit("a", b"one")
    stage.settle(*FOUR)
    assert stage.words(*FOUR) == [[b"one"]] * 4
    stage.view(51, *ALL)
    stage.settle(*ALL)
    return stage


def renumbered(stage: Stage) -> None:
    """All daemons but that of d are restarted without memory."""
    stage.cut_off(*ALL)
    stage.view(4, *ALL)
    stage.settle(*ALL)


def went_on_and_met(stage: Stage) -> None:
    """Renumbered, with one more command; then d is back."""
    renumbered(stage)
    stage.submit("b", b"two")
    stage.settle(*ALL)
    stage.view(60, *FOUR)
    stage.settle(*FOUR)


def test_who_meets_in_a_view_before_one_they_know_begins_an_era() -> None:
    stage = begun_late()
    renumbered(stage)
    assert [stage.cores[name].term for name in ALL] == [Term(1, view_id(4))] * 3
    reasons = [effect.reason for effect in stage.told["b"] if hasattr(effect, "reason")]
    assert reasons[-3:] == [Reason.VIEW, Reason.ERA, Reason.QUORUM]
    stage.submit("b", b"two")
    stage.settle(*ALL)
    assert stage.words(*ALL) == [[b"one", b"two"]] * 3


def test_a_state_of_an_era_before_is_not_the_latest() -> None:
    stage = begun_late()
    went_on_and_met(stage)
    stage.transfer("d")
    stage.settle(*FOUR)
    assert stage.words(*FOUR) == [[b"one", b"two"]] * 4
    assert {core.term for core in stage.cores.values()} == {Term(1, view_id(60))}


def test_without_eras_it_would_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core_module, "era_to_take_up", lambda states: None)
    stage = begun_late()
    went_on_and_met(stage)
    assert stage.fetches("a")[-1].donors[0].name == "d"


def test_what_came_between_the_two_rounds_has_its_place_at_the_decision() -> None:
    stage = begun_late()
    stage.cut_off(*ALL)
    stage.view(4, *ALL)
    stage.submit("a", b"two")
    stage.deliver(*ALL)
    assert stage.last("a").reason is Reason.ERA
    stage.submit("c", b"three")
    stage.settle(*ALL)
    assert stage.words(*ALL) == [[b"one", b"two", b"three"]] * 3
    assert stage.confirmed("c") == [(1, 3)] and not stage.cores["c"].outstanding


def test_a_word_of_the_first_round_is_none_of_the_second() -> None:
    stage = begun_late()
    stage.cut_off(*ALL)
    stage.view(4, *ALL)
    first = list(stage.queue)
    stage.deliver(*ALL)
    stage.queue.extendleft(first)  # they come once more
    stage.deliver(*ALL, count=len(first))
    assert stage.last("a").reason is Reason.ERA and stage.cores["a"].is_deciding
    stage.settle(*ALL)
    assert stage.cores["a"].is_primary and stage.cores["a"].era == 1


def test_who_missed_the_second_round_is_asked_again_in_the_next_view() -> None:
    stage = begun_late()
    stage.cut_off(*ALL)
    stage.view(4, *ALL)
    stage.deliver("a", "b")  # all first words; c hears nothing
    assert (stage.cores["a"].era, stage.cores["c"].era) == (1, 0)
    stage.view(5, *ALL)
    stage.settle(*ALL)
    assert {stage.cores[name].term for name in ALL} == {Term(1, view_id(5))}
    assert stage.cores["c"].is_primary


def test_a_round_that_ends_after_the_signal_asks_nobody() -> None:
    stage = begun_late()
    stage.cut_off(*ALL)
    stage.view(4, *ALL)
    stage.signal(4, *ALL)
    stage.deliver(*ALL)
    assert not stage.queue and stage.cores["a"].is_deciding
    stage.view(5, *ALL)
    stage.settle(*ALL)
    assert stage.cores["a"].is_primary and stage.cores["a"].term == Term(1, view_id(5))


def test_a_newcomer_takes_up_the_era_of_the_others() -> None:
    stage = begun_late()
    renumbered(stage)
    stage.start("d", founding=False)
    stage.view(5, *FOUR)
    stage.settle(*FOUR)
    stage.transfer("d")
    stage.settle(*FOUR)
    assert {core.term for core in stage.cores.values()} == {Term(1, view_id(5))}
    stage.view(6, *FOUR)
    stage.deliver(*FOUR)  # it is one of them now: one round is enough
    assert stage.cores["d"].is_primary and stage.cores["d"].era == 1


def test_numbers_that_rise_for_one_and_fall_for_others_begin_an_era() -> None:
    """All daemons forgot, but a knows no number that tells it so."""
    stage = Stage(*ALL)
    stage.view(3, *ALL)
    stage.settle(*ALL)
    stage.view(9, "b", "c")
    stage.settle("b", "c")
    stage.submit("c", b"one")
    stage.settle("b", "c")
    stage.cut_off(*ALL)
    stage.view(5, *ALL)
    stage.settle(*ALL)
    stage.transfer("a")
    stage.settle(*ALL)
    assert {core.term for core in stage.cores.values()} == {Term(1, view_id(5))}
    assert stage.words(*ALL) == [[b"one"]] * 3


def test_a_transfer_goes_on_in_the_next_era() -> None:
    stage = begun_late()
    stage.view(52, *FOUR)
    stage.settle(*FOUR)
    stage.start("d", founding=False)
    stage.view(53, *FOUR)
    stage.settle(*FOUR)
    point = stage.fetches("d")[-1].point
    stage.cut_off("c")
    stage.view(60, "c")  # another daemon had higher numbers
    stage.cut_off("c")
    stage.view(54, *FOUR)
    stage.deliver(*FOUR)
    stage.transfer("d")  # between the rounds
    stage.settle(*FOUR)
    assert stage.fetches("d")[-1].point == point == Point(Term(0, view_id(53)), 0)
    assert {core.term for core in stage.cores.values()} == {Term(1, view_id(54))}
    assert stage.words("d") == [[b"one"]]


def test_what_was_attempted_in_the_second_round_is_refuted_by_who_missed_it() -> None:
    stage = begun_late()
    stage.cut_off(*ALL)
    stage.view(4, *ALL)
    stage.deliver(*ALL)  # the first words
    stage.signal(4, *ALL)
    second = list(stage.queue)
    stage.deliver("a")
    assert stage.last("a").reason is Reason.QUORUM and not stage.cores["a"].is_primary
    assert second and stage.cores["b"].is_deciding
    stage.view(5, *ALL)
    stage.settle(*ALL)
    stage.transfer("b")  # a was to be in a later component than they
    stage.transfer("c")
    stage.settle(*ALL)
    assert {stage.cores[name].term for name in ALL} == {Term(1, view_id(5))}
    assert all(stage.cores[name].is_primary for name in ALL)


def test_no_vote_returns_to_who_was_cut_off_between_the_rounds() -> None:
    stage = begun_late()
    stage.cut_off(*ALL)
    stage.view(4, *ALL)
    stage.deliver(*ALL)
    stage.cut_off("a")
    stage.view(5, *ALL)
    stage.settle(*ALL)
    assert stage.last("b").reason is Reason.NO_QUORUM


def test_what_is_forced_in_an_era_is_a_sequence_of_that_era() -> None:
    stage = begun_late()
    stage.cut_off(*ALL)
    stage.view(4, "c")
    stage.settle("c")
    stage.carry_out("c", stage.cores["c"].force())
    stage.settle("c")
    assert stage.cores["c"].lineage == Lineage(Term(1, view_id(4)), 1) and stage.cores["c"].is_primary


def test_sides_meet_in_a_new_era() -> None:
    stage = Stage("a", "b", rule=EverySide(lambda sides: sides[0].state))
    stage.view(8, "a")
    stage.settle("a")
    stage.submit("a", b"left")
    stage.settle("a")
    stage.view(9, "b")
    stage.settle("b")
    stage.submit("b", b"right")
    stage.settle("b")
    stage.cut_off("a", "b")
    stage.view(3, "a", "b")
    stage.settle("a", "b")
    uniter, other = ("a", "b") if stage.fetches("a") else ("b", "a")
    stage.transfer(uniter)
    stage.settle("a", "b")
    stage.transfer(other)
    stage.settle("a", "b")
    assert stage.words("a", "b") == [[b"left", b"right"]] * 2
    assert stage.cores["b"].lineage == Lineage(Term(1, view_id(3)))


def test_nothing_is_decided_in_an_era_that_some_did_not_take_up() -> None:
    """Were it enough that all are heard once, a would take part in a later component than the others ever will."""
    stage = Stage(*ALL)
    stage.view(50, *ALL)
    stage.settle(*ALL)
    stage.cut_off("a")
    stage.view(51, "b", "c")
    stage.view(4, "a")
    stage.settle("a")
    stage.view(52, *ALL)
    stage.signal(52, "a")
    stage.deliver("a")  # b and c hear nothing
    assert [stage.cores[name].era for name in ALL] == [1, 0, 0]
    stage.view(53, "b", "c")
    stage.settle("b", "c")
    stage.submit("b", b"one")
    stage.settle("b", "c")
    assert stage.confirmed("b") == [(1, 1)]
    stage.view(60, *ALL)
    stage.settle(*ALL)
    stage.transfer("a")
    stage.settle(*ALL)
    assert stage.words(*ALL) == [[b"one"]] * 3
    assert {core.term for core in stage.cores.values()} == {Term(1, view_id(60))}


@pytest.mark.parametrize(("era", "is_heard"), [(ERA_SAID_MAX, True), (ERA_SAID_MAX + 1, False)])
def test_an_era_after_which_there_is_none_is_not_heard(era: int, is_heard: bool) -> None:
    """Who says such a thing is no replica: the next one could not be written."""
    stage = begun_late()
    stage.view(60, *FOUR)
    said = [(name, decode(payload)) for name, payload in stage.queue]
    stage.queue.clear()
    for name, state in said:
        assert isinstance(state, State)
        stage.queue.append((name, encode_state(state._replace(era=era, behind=True) if name == "d" else state)))
    stage.deliver(*ALL)
    assert [stage.cores[name].malformed for name in ALL] == [int(not is_heard)] * 3
    assert [stage.cores[name].era for name in ALL] == [era + 1 if is_heard else 0] * 3
