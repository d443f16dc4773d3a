"""Faults planted in the adaptive engine: the checkers and the witness catch each of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from ordercast.model.errors import WireError
from tests.conformance import test_adaptive_recovery as recoveries
from tests.simulation.catches import first_catch
from tests.unit.order.adaptive import test_bad_input, test_parts
from tests.unit.order.adaptive import test_merge as rules

from .planted import (
    FAULTS,
    FORMER_LIFE,
    GARBAGE,
    MARKS_DECIDE,
    OUT_OF_ORDER,
    PLANS_FORGOTTEN,
    SAFE_UNSAID,
    SENT_ALONE,
    PlantedFault,
    findings,
)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_planted_fault_is_caught(fault: PlantedFault) -> None:
    seeds = range(fault.first, fault.first + fault.runs)
    seed = first_catch("adaptive", fault.name, seeds, lambda one: bool(findings(fault, one) & fault.broken))
    assert seed is not None, f"{fault.name} was not caught in {fault.runs} runs"


@pytest.mark.parametrize(
    ("fault", "rule"),
    [
        (MARKS_DECIDE, rules.test_what_only_my_marks_said_decides_nothing),
        (GARBAGE, rules.test_the_acknowledgement_in_an_exchanged_packet_is_not_read),
        (FORMER_LIFE, test_bad_input.test_a_mark_of_a_former_life_is_not_heeded),
        (SENT_ALONE, test_parts.test_saturated_members_do_not_confirm_weights_that_starve_one_of_them),
        (SAFE_UNSAID, partial(recoveries.test_what_comes_with_the_commit_token_is_delivered_before_it_is_said, False)),
        (PLANS_FORGOTTEN, recoveries.test_what_companions_had_delivered_is_said_on_the_next_commit_token),
        (OUT_OF_ORDER, rules.test_a_distribution_is_adopted_in_order_and_everybody_moves),
    ],
    ids=lambda one: getattr(one, "name", ""),
)
def test_a_fault_that_hostile_runs_seldom_show_breaks_a_rule(fault: PlantedFault, rule: Callable[[], None]) -> None:
    rule()
    with pytest.MonkeyPatch.context() as patch:
        fault.plant(patch)
        with pytest.raises((AssertionError, WireError)):
            rule()
