"""Forged numbers in a network of rings: what leaps is refused where it would count, and every promise is kept."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ordercast.order.membership.bounds import Horizon
from ordercast.sim.ring import poison
from ordercast.sim.ring.poison import Poison
from ordercast.sim.run import simulate
from ordercast.sim.swarm import options_of


def _forged(seed: int) -> str:
    """Return what is wrong with a run in which every fifth control packet comes behind a forged one."""
    options = replace(options_of(seed, engine="gateways"), poison=0.2, saturation=0, large_messages=0)
    try:
        result = simulate(options, seed)
    except Exception as error:
        return repr(error)
    assert result.counts[Poison.CLOCK.value], "clocks are forged"
    return "" if result.settled and result.is_valid else result.verdict.sentence or "not settled"


@pytest.mark.parametrize("seed", [2, 3])
def test_a_network_keeps_its_promises_among_forged_numbers(seed: int) -> None:
    assert _forged(seed) == ""


def test_clocks_that_leap_without_bound_break_the_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(poison, "ON_TOKEN", (Poison.CLOCK,))
    monkeypatch.setattr(poison, "ON_COMMIT", (Poison.CLOCK,))
    monkeypatch.setattr(Horizon, "believes_clock", lambda self, *_: True)
    assert _forged(0) != ""
