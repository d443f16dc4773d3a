"""Hostile runs that failed once, and what every run is like. Others: `test_recorded.py`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ordercast.model.ids import MILLISECOND
from ordercast.model.promises import Promise
from ordercast.sim.options import SIM_RING, SimOptions
from ordercast.sim.run import simulate
from ordercast.sim.swarm import LARGE_EVERY, hostile_options

REGRESSIONS = [
    int(line.split()[0])
    for line in (Path(__file__).parent / "regressions.txt").read_text().splitlines()
    if line and not line.startswith("#")
]


@pytest.mark.parametrize("seed", REGRESSIONS)
def test_what_failed_once_stays_valid(seed: int) -> None:
    assert simulate(hostile_options(seed), seed).is_valid


def test_every_run_is_as_hostile_as_promised() -> None:
    for seed in range(40):
        options = hostile_options(seed)
        assert options.messages >= 200 and len(options.services) > 1
        assert options.random_faults >= 3 or options.poison
        assert (options.large_messages > 0 and options.large_size > 64_000) == (seed % LARGE_EVERY == 0)


def test_another_seed_gives_another_history() -> None:
    options = SimOptions(messages=50)
    assert simulate(options, 1).digest != simulate(options, 2).digest


@pytest.mark.parametrize("accelerated", [False, True], ids=["plain", "accelerated"])
@pytest.mark.parametrize("seed", range(3))
def test_without_loss_nothing_is_sent_twice(accelerated: bool, seed: int) -> None:
    ring = replace(SIM_RING, accelerated=accelerated)
    options = SimOptions(messages=1500, ring=ring, fault_time_ns=300 * MILLISECOND)
    result = simulate(options, seed)
    assert result.is_valid
    assert result.counts["retransmissions"] == 0


@pytest.mark.parametrize("accelerated", [False, True], ids=["plain", "accelerated"])
def test_everybody_gets_a_fair_share_of_a_saturated_ring(accelerated: bool) -> None:
    ring = replace(SIM_RING, accelerated=accelerated, window=40, visit_max=16)
    options = SimOptions(nodes=6, messages=0, ring=ring, saturation=200)
    verdicts = {verdict.promise: verdict for verdict in simulate(options, 1).verdicts}
    assert (
        verdicts[Promise.FAIRNESS].outcome.name == "VALID"
        and "not exercised" not in verdicts[Promise.FAIRNESS].sentence
    )
