"""The shipped checkers and swarm are worth what they catch: every fault planted in the shipped engine of several rings.

Rules of the paper that break are sought in every run of the tests, all others in the long ones: over ideal rings, which
are quicker, each of them is (`test_planted.py`).
"""

from __future__ import annotations

import pytest

from ordercast.sim.ring_episodes import EPISODES_FIRST
from tests.simulation.catches import first_catch
from tests.simulation.gateways.planted_engine import (
    FIRST_BIRTH_ENDS_IT,
    LOST_ON_ONE_RING,
    NAMED,
    OVERTAKEN_WHILE_KEPT,
    PLANTED,
    RULES_OF_THE_PAPER,
    RUNS,
    EngineFault,
    complaint,
)

MARKED = [
    pytest.param(fault, id=fault.name, marks=() if fault.name in RULES_OF_THE_PAPER else pytest.mark.long)
    for fault in PLANTED
]


@pytest.mark.parametrize("fault", MARKED)
def test_the_checkers_catch(fault: EngineFault, monkeypatch: pytest.MonkeyPatch) -> None:
    fault.plant(monkeypatch)
    seeds = range(EPISODES_FIRST, EPISODES_FIRST + RUNS)
    found = first_catch("gateways", fault.name, seeds, lambda seed: bool(complaint(fault, seed)))
    assert found is not None, f"not caught in {RUNS} runs"


@pytest.mark.long
def test_whoever_is_lost_on_one_ring_counts_on_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seed 821: a host is left alone by one ring, and two members are cut off from it on another. It passed what it had
    of the first, with these along, and lacked what they had sent on the second before."""
    assert complaint(LOST_ON_ONE_RING, 821) == ""
    LOST_ON_ONE_RING.plant(monkeypatch)
    assert complaint(LOST_ON_ONE_RING, 821)


@pytest.mark.long
def test_a_view_begins_when_the_rings_are_gone_that_were_shared_with_those_who_left_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Seed 606: a ring that is born elsewhere ends a view; what comes later on a ring that the lost had shared comes
    in another view to them."""
    assert complaint(FIRST_BIRTH_ENDS_IT, 606) == ""
    FIRST_BIRTH_ENDS_IT.plant(monkeypatch)
    assert complaint(FIRST_BIRTH_ENDS_IT, 606)


@pytest.mark.long
def test_packets_that_are_kept_for_a_link_are_not_overtaken_by_others_of_their_ring(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Seed 1492: a gateway has the first packets of a visit over a link that began with a merge, and the next one over
    its own half; beyond it they came in another order than that of their ring."""
    assert complaint(OVERTAKEN_WHILE_KEPT, 1492) == ""
    OVERTAKEN_WHILE_KEPT.plant(monkeypatch)
    assert complaint(OVERTAKEN_WHILE_KEPT, 1492)


def test_all_that_the_design_names_is_planted() -> None:
    assert {fault.name for fault in PLANTED} >= NAMED
