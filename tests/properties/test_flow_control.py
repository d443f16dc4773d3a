"""The allowance is bounded, a rotation is bounded, and nobody starves. (Erratum E4)"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.model.ids import Seq
from ordercast.order.ring.flow_control import allowance, fair_share, rotation_budget

AMPLE = 1 << 40


@given(
    window=st.integers(1, 500),
    visit_max=st.integers(1, 500),
    backlog_max=st.integers(1, 5000),
    aru=st.integers(0, 1000),
    unstable=st.integers(0, 6000),
    since=st.integers(0, 2000),
    retransmitted=st.integers(0, 1000),
)
def test_the_allowance_stays_within_every_bound(
    window: int, visit_max: int, backlog_max: int, aru: int, unstable: int, since: int, retransmitted: int
) -> None:
    seq = aru + unstable
    budget = rotation_budget(window, backlog_max, Seq(seq), Seq(aru), retransmitted)
    assert budget == 0 or (unstable + budget <= backlog_max and budget + retransmitted <= window)
    allowed = allowance(window, visit_max, budget, Seq(seq), Seq(seq - since), retransmitted)
    assert 0 <= allowed <= visit_max
    assert allowed == 0 or allowed + since + retransmitted <= window + visit_max
    if since + retransmitted <= window and visit_max <= budget:
        assert allowed == visit_max


@given(st.integers(0, 5000), st.lists(st.integers(0, 500), min_size=1, max_size=40))
def test_the_shares_of_all_are_the_budget_but_for_one_packet_each(budget: int, wishes: list[int]) -> None:
    shares = [fair_share(budget, wanted, sum(wishes)) for wanted in wishes]
    assert sum(shares) <= budget + len(wishes)
    assert budget == 0 or all(shares)


def _saturated(members: int, window: int, visit_max: int, rotations: int, *, at_receipt: bool) -> list[list[int]]:
    """What each member sends on each visit when all have endless work; `at_receipt` is our reading of the paper."""
    seq = 0
    remembered = [0] * members
    rounds: list[list[int]] = []
    for _ in range(rotations):
        sent: list[int] = []
        for member in range(members):
            count = allowance(window, visit_max, AMPLE, Seq(seq), Seq(remembered[member]), 0)
            remembered[member] = seq if at_receipt else seq + count
            seq += count
            sent.append(count)
        rounds.append(sent)
    return rounds


CONTENDED = [(5, 50, 20), (8, 50, 10), (3, 100, 64), (12, 256, 64), (7, 30, 30), (20, 256, 64)]


@pytest.mark.parametrize(("members", "window", "visit_max"), CONTENDED)
@pytest.mark.parametrize("at_receipt", [True, False])
def test_a_rotation_is_bounded_by_window_and_one_visit(
    members: int, window: int, visit_max: int, at_receipt: bool
) -> None:
    visits = [sent for round_ in _saturated(members, window, visit_max, 200, at_receipt=at_receipt) for sent in round_]
    rotations = [sum(visits[at : at + members]) for at in range(len(visits) - members + 1)]
    assert max(rotations) <= window + visit_max


@pytest.mark.parametrize(("members", "window", "visit_max"), CONTENDED)
def test_saturated_members_get_equal_shares_over_time(members: int, window: int, visit_max: int) -> None:
    rounds = _saturated(members, window, visit_max, 3000, at_receipt=True)
    shares = [sum(column) for column in zip(*rounds, strict=True)]
    assert max(shares) - min(shares) <= 0.03 * max(shares)
    assert sum(shares) >= window * (len(rounds) - members)


@pytest.mark.parametrize(("members", "window", "visit_max"), CONTENDED)
def test_the_papers_other_reading_starves_the_last_in_ring_order(members: int, window: int, visit_max: int) -> None:
    rounds = _saturated(members, window, visit_max, 200, at_receipt=False)
    steady = rounds[-1]
    assert all(sent == steady for sent in rounds[-50:])
    assert max(steady) == visit_max and steady[-1] < 0.6 * visit_max
    assert steady == sorted(steady, reverse=True)


def test_the_example_of_erratum_e4() -> None:
    assert _saturated(5, 50, 20, 100, at_receipt=False)[-1] == [20, 20, 20, 10, 0]
    mean = sum(map(sum, _saturated(5, 50, 20, 3000, at_receipt=True))) / 3000
    assert 57 <= mean <= 59


@given(st.integers(1, 12), st.integers(1, 40))
def test_without_contention_everybody_sends_all_it_may(members: int, visit_max: int) -> None:
    for at_receipt in (True, False):
        rounds = _saturated(members, members * visit_max, visit_max, 10, at_receipt=at_receipt)
        assert rounds == [[visit_max] * members] * 10
