"""The order of a network over ideal rings that split, merge, crash and fail between installations."""

from __future__ import annotations

from collections import Counter

import pytest

from ordercast.order.gateways.occurrences import NetworkOccurrence
from tests.simulation.gateways.hostile import Run

SEEDS = range(30)
STEPS = 350
# Too rare for so few runs, or of a network that filters or holds: other tests show them.
RARE = {
    NetworkOccurrence.UNLINKED,
    NetworkOccurrence.RESIDUAL_IN_HALVES,
    NetworkOccurrence.TWO_MINDS,
    NetworkOccurrence.CLAIMED_TWICE,
    NetworkOccurrence.HELD,
    NetworkOccurrence.FILTERED,
    NetworkOccurrence.INTEREST_RAISED,
}
_counts: Counter[str] = Counter()


@pytest.mark.parametrize("seed", SEEDS)
def test_no_promise_is_broken(seed: int) -> None:
    run = Run(seed, steps=STEPS)
    assert run.judge() == [], run.name
    _counts.update(run.counts())


def test_the_runs_met_what_is_rare() -> None:
    assert [what.value for what in NetworkOccurrence if what not in RARE and not _counts[what.value]] == []


def test_a_run_is_the_same_whenever_it_is_run() -> None:
    one, other = Run(3, steps=150), Run(3, steps=150)
    one.judge()
    other.judge()
    assert [host.events for host in one.world.hosts.values()] == [host.events for host in other.world.hosts.values()]
