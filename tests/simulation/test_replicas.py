"""Runs with replicas of a state: what failed once, and quiet ones. Hostile ones: `test_recorded.py`."""

from __future__ import annotations

from pathlib import Path

import pytest

from ordercast.sim.options import SimOptions
from ordercast.sim.run import simulate
from ordercast.sim.swarm import hostile_replica_options
from ordercast.trace.replica_records import ReplicaKnown, Returned

REGRESSIONS = [
    int(line.split()[0])
    for line in (Path(__file__).parent / "replica_regressions.txt").read_text().splitlines()
    if line and not line.startswith("#")
]


@pytest.mark.parametrize("seed", REGRESSIONS)
def test_what_failed_once_stays_valid(seed: int) -> None:
    assert simulate(hostile_replica_options(seed), seed).is_valid


@pytest.mark.parametrize("weights", [(1, 1, 1), (3, 1, 0), ()], ids=["weights", "uneven weights", "last majority"])
def test_without_faults_everything_is_confirmed_and_all_are_alike(weights: tuple[int, ...]) -> None:
    options = SimOptions(nodes=3, messages=60, replicas=1, replica_weights=weights, founders=2)
    result = simulate(options, 5, keep_events=True)
    assert result.is_valid
    known = [event for event in result.replica_events if isinstance(event, ReplicaKnown)]
    assert len(known) == 3 and len({(event.count, event.chain) for event in known}) == 1
    assert sum(isinstance(event, Returned) for event in result.replica_events) >= 3
