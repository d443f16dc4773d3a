from __future__ import annotations

import pytest

from ordercast.model.ids import SECOND, Instant
from ordercast.networks.monitors import ArrivalCounts, Problems


def test_a_network_is_behind_when_another_leads_by_more_than_the_threshold() -> None:
    counts = ArrivalCounts(2, threshold=10, catch_up=1000, judged=(0, 1))
    assert not any(counts.add(0) for _ in range(10))
    assert counts.add(0) == [1]


def test_batches_count_as_their_packets() -> None:
    counts = ArrivalCounts(3, threshold=10, catch_up=1000, judged=(0, 1, 2))
    assert not counts.add(0, 10) and not counts.add(2, 5)
    assert counts.add(0, 3) == [1]
    assert counts.add(0, 3) == [1, 2]


def test_who_is_not_judged_neither_leads_nor_lags() -> None:
    counts = ArrivalCounts(3, threshold=10, catch_up=1000, judged=(0, 1))
    assert not counts.add(2, 100)
    counts.add(0, 5)
    assert not counts.add(1, 5)


@pytest.mark.parametrize("network", [0, 1])
def test_one_network_alone_is_behind_nobody(network: int) -> None:
    counts = ArrivalCounts(2, threshold=3, catch_up=1000, judged=(0,))
    assert not counts.add(network, 100)


def test_forgiveness_raises_what_is_behind_and_not_above_the_first() -> None:
    counts = ArrivalCounts(2, threshold=100, catch_up=10, judged=(0, 1))
    for _ in range(50):
        counts.add(0)
    assert counts.counts == [50, 5]
    counts.add(1, 45)
    assert max(counts.counts) == 50


def test_a_reset_forgets_everything_and_may_judge_others() -> None:
    counts = ArrivalCounts(3, threshold=3, catch_up=10, judged=(0, 1))
    counts.add(0, 5)
    counts.reset((1, 2))
    assert counts.counts == [0, 0, 0] and counts.judged == (1, 2)
    assert not counts.add(1, 3) and counts.add(1) == [2]


def test_problems_mark_at_the_threshold() -> None:
    problems = Problems(2, threshold=3, decay_ns=SECOND, decay_tokens=50)
    assert [problems.expired([1], Instant(at)) for at in (1, 2, 3)] == [[], [], [1]]


def test_problems_are_forgotten_with_time_down_to_zero() -> None:
    problems = Problems(1, threshold=100, decay_ns=SECOND, decay_tokens=50)
    for _ in range(5):
        problems.expired([0], Instant(0))
    problems.expired([], Instant(2 * SECOND))
    assert problems.counters == [3]
    problems.expired([], Instant(90 * SECOND))
    assert problems.counters == [0]


def test_problems_are_forgotten_with_tokens_that_came() -> None:
    problems = Problems(1, threshold=100, decay_ns=SECOND, decay_tokens=3)
    problems.expired([0], Instant(0))
    problems.expired([0], Instant(0))
    for _ in range(3):
        problems.brought(0)
    assert problems.counters == [1]
