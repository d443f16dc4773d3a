"""Rules of node lists taken out one by one: the stories of `test_rosters.py` or hostile runs notice each."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ordercast.checker.verdict import Outcome
from ordercast.model.ids import ProcessId
from ordercast.model.promises import RosterPromise
from ordercast.order.membership.admission import Admission, Around
from ordercast.order.membership.rosters import Rosters
from ordercast.order.membership.step import Step
from ordercast.sim.rosters import with_rosters
from ordercast.sim.run import simulate
from ordercast.sim.swarm import LISTED_EVERY, LISTED_FIRST, hostile_options, options_of

from . import test_rosters as stories
from .catches import first_catch

HOSTILE_RUNS = 40


def _strangers_are_heard(patch: pytest.MonkeyPatch) -> None:
    def nobody(self: Rosters, process: ProcessId, step: Step) -> bool:
        return False

    patch.setattr(Rosters, "is_stranger", nobody)


def _lists_are_not_asked(patch: pytest.MonkeyPatch) -> None:
    def everybody(self: Admission, newcomers: object, ring: object, around: Around) -> bool:
        return True

    patch.setattr(Admission, "admits", everybody)


def _nobody_waits(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Admission, "_have_to_wait", lambda self, newcomers, ring, around: False)


def _contradictions_are_no_matter(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Admission, "_contradict", lambda self, ring, newcomers: False)


def _one_list_drops_a_member(patch: pytest.MonkeyPatch) -> None:
    def by_me(self: Admission, members: tuple[ProcessId, ...]) -> list[ProcessId]:
        return [one for one in members if self.mine is not None and not self.takes(one, ())]

    patch.setattr(Admission, "dropped", by_me)


def _nobody_is_dropped(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Admission, "dropped", lambda self, members: [])


def _ordered_lists_stay_where_they_are(patch: pytest.MonkeyPatch) -> None:
    right = Rosters.copied

    def as_a_stranger(self: Rosters, copy: object, step: Step, *, is_stranger: bool) -> None:
        right(self, copy, step, is_stranger=True)  # type: ignore[arg-type]

    patch.setattr(Rosters, "copied", as_a_stranger)


def _hostile() -> None:
    def is_caught(seed: int) -> bool:
        return not simulate(with_rosters(hostile_options(seed), seed), seed).is_valid

    assert first_catch("rosters", "lists are not asked", range(HOSTILE_RUNS), is_caught) is None


def _hostile_on_rings() -> None:
    """Each ring of a network goes by lists of its own, and is judged by them."""
    listed = range(LISTED_FIRST, LISTED_EVERY * HOSTILE_RUNS, LISTED_EVERY)

    def is_caught(seed: int) -> bool:
        verdicts = simulate(options_of(seed, engine="gateways"), seed).verdicts
        return any(each.promise is RosterPromise.ADMISSION and each.outcome is Outcome.INVALID for each in verdicts)

    assert first_catch("rosters", "lists are not asked on rings", listed, is_caught) is None


def _removed() -> None:
    stories.test_a_host_is_dropped_by_one_view_when_the_last_of_the_others_has_reloaded((1, 0, 2), unicast=False)


FAULTS: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], Callable[[], None]]] = {
    "strangers are heard": (
        _strangers_are_heard,
        stories.test_a_host_that_starts_before_the_others_know_it_changes_no_view_and_is_named,
    ),
    "lists are not asked": (_lists_are_not_asked, _hostile),
    "lists are not asked on rings": (_lists_are_not_asked, _hostile_on_rings),
    "nobody waits": (
        _nobody_waits,
        stories.test_who_restarts_with_the_new_list_does_not_leave_the_others_for_the_newcomer,
    ),
    "contradictions are no matter": (
        _contradictions_are_no_matter,
        stories.test_lists_that_contradict_each_other_stay_apart_though_all_name_all,
    ),
    "one list drops a member": (_one_list_drops_a_member, _removed),
    "nobody is dropped": (_nobody_is_dropped, _removed),
    "ordered lists stay where they are": (
        _ordered_lists_stay_where_they_are,
        stories.test_an_ordered_list_is_taken_over_from_any_member,
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_missing_rule_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant, story = FAULTS[name]
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        story()
