"""Faults planted in the sites engine: the checkers catch each of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.simulation.catches import first_catch
from tests.unit.order.sites import test_tape as tape

from .planted import FAULTS, SELDOM, PlantedFault, findings

SLOW = {"join before its wish is known", "routes without vectors", "lines beyond a gap"}
MARKED = [pytest.param(one, id=one.name, marks=pytest.mark.long if one.name in SLOW else ()) for one in FAULTS]


@pytest.mark.parametrize("fault", MARKED)
def test_a_planted_fault_is_caught(fault: PlantedFault) -> None:
    seeds = range(fault.first, fault.first + fault.runs)
    seed = first_catch("sites", fault.name, seeds, lambda one: bool(findings(fault, one) & fault.broken))
    assert seed is not None, f"{fault.name} was not caught in {fault.runs} runs"


RULES: dict[str, Callable[[], None]] = {
    "void sent twice": tape.test_what_a_transitional_configuration_brought_is_not_sent_again,
    "lines frozen": tape.test_lines_move_in_the_transitional_configuration_up_to_its_first_gap,
    "no commits": tape.test_commits_are_kept_of_those_who_do_not_come_along,
    "behind out of order": tape.test_of_two_updates_the_later_one_says_who_is_behind,
}


@pytest.mark.parametrize("fault", SELDOM, ids=lambda fault: fault.name)
def test_a_fault_that_hostile_runs_seldom_show_breaks_a_rule(fault: PlantedFault) -> None:
    rule = RULES[fault.name]
    rule()
    with pytest.MonkeyPatch.context() as patch:
        fault.plant(patch)
        with pytest.raises((AssertionError, ValueError)):
            rule()
