"""Faults planted in the sites engine: the checkers catch each of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.simulation.catches import first_catch
from tests.unit.order.sites import test_order as rules

from .planted import FAULTS, NO_LINE, TIES, PlantedFault, findings


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_planted_fault_is_caught(fault: PlantedFault) -> None:
    seeds = range(fault.first, fault.first + fault.runs)
    seed = first_catch("sites", fault.name, seeds, lambda one: bool(findings(fault, one) & fault.broken))
    assert seed is not None, f"{fault.name} was not caught in {fault.runs} runs"


@pytest.mark.parametrize(
    ("fault", "rule"),
    [(TIES, rules.test_ties_go_by_rank), (NO_LINE, rules.test_a_silent_tail_is_a_hole)],
    ids=lambda one: getattr(one, "name", ""),
)
def test_a_fault_that_hostile_runs_seldom_show_breaks_a_rule(fault: PlantedFault, rule: Callable[[], None]) -> None:
    rule()
    with pytest.MonkeyPatch.context() as patch:
        fault.plant(patch)
        with pytest.raises(AssertionError):
            rule()
