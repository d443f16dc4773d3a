"""Views that are numbered anew, by daemons that lost their memory: components still come one after the other."""

from __future__ import annotations

import pytest

from ordercast.model.lineage import Term
from ordercast.replicated import core as core_module
from ordercast.replicated.effects import Reason
from ordercast.replicated.quorum import Majority, Rule

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
    renumbered(stage)
    stage.submit("b", b"two")
    stage.settle(*ALL)
    stage.view(60, *FOUR)
    stage.settle(*FOUR)
    stage.transfer("d")
    stage.settle(*FOUR)
    assert stage.words(*FOUR) == [[b"one", b"two"]] * 4
    assert {core.term for core in stage.cores.values()} == {Term(1, view_id(60))}


def test_without_eras_it_would_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core_module, "era_to_take_up", lambda states: None)
    stage = begun_late()
    renumbered(stage)
    stage.submit("b", b"two")
    stage.settle(*ALL)
    stage.view(60, *FOUR)
    stage.settle(*FOUR)
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
