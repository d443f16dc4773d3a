"""Trees with an oracle for control: valid whoever comes and goes, and the same at ten times as many hosts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ordercast.model.errors import UsageError
from ordercast.model.ids import MILLISECOND
from ordercast.sim.faults import Fault, FaultKind
from ordercast.sim.options import ORACLE, SimOptions
from ordercast.sim.run import simulate

TOPICS = ((0, 1, 2), (2, 3), (3, 4, 5), (5, 6, 7), (1, 7), (4, 6), (0, 5))
FAULTS = (
    Fault(60 * MILLISECOND, FaultKind.CRASH, 2),
    Fault(90 * MILLISECOND, FaultKind.PAUSE, 5, duration_ns=40 * MILLISECOND),
    Fault(120 * MILLISECOND, FaultKind.RESTART, 2),
    Fault(150 * MILLISECOND, FaultKind.CRASH, 0),
    Fault(180 * MILLISECOND, FaultKind.LEAVE, 7),
    Fault(220 * MILLISECOND, FaultKind.RESTART, 0),
)
OPTIONS = SimOptions(
    engine="tree",
    control=ORACLE,
    nodes=8,
    messages=300,
    topics=TOPICS,
    topic_changes=10,
    fault_time_ns=300 * MILLISECOND,
    loss=0.02,
)


@pytest.mark.parametrize("seed", range(4))
def test_whoever_comes_and_goes(seed: int) -> None:
    result = simulate(replace(OPTIONS, faults=FAULTS), seed, keep_events=False)
    assert result.settled and result.is_valid, result.verdict.sentence
    assert result.counts["transitional views"] > OPTIONS.nodes


def test_more_hosts_than_a_ring_has() -> None:
    topics = tuple((host, host + 1, host + 2) for host in range(0, 147, 3))
    result = simulate(replace(OPTIONS, nodes=150, topics=topics, topic_changes=0, all_at_once=True), 1)
    assert result.settled and result.is_valid, result.verdict.sentence


def test_witnesses_alone_may_look_on() -> None:
    result = simulate(OPTIONS, 1, judged=False)
    assert result.settled and not result.verdicts


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"engine": "ring"}, "the oracle is for trees"),
        ({"random_faults": 2}, "the oracle is for trees, one network and crashes alone"),
        ({"faults": (Fault(1, FaultKind.PARTITION, groups=((0,), (1,))),)}, "the oracle is for trees"),
        ({"nodes": 5_001}, "nodes must be within 1..5000"),
        ({"control": "nobody"}, "control must be one of ring, oracle"),
    ],
)
def test_what_an_oracle_does_not_know_of_is_refused(change: dict[str, object], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        simulate(replace(OPTIONS, **change), 1)  # type: ignore[arg-type]
