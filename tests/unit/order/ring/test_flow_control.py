"""The cases of Figure 4.17 with window 50 and visit 20, and of the budget. The rest is in tests/properties."""

from __future__ import annotations

from ordercast.model.ids import Seq
from ordercast.order.ring.flow_control import BEHIND_MAX, COUNT_MAX, allowance, fair_share, renewed, rotation_budget


def _allowed(seq: int, received_seq: int, *, retransmitted: int = 0, share: int = 1000) -> int:
    return allowance(50, 20, share, Seq(seq), Seq(received_seq), retransmitted)


def _budget(seq: int, aru: int, retransmitted: int = 0) -> int:
    return rotation_budget(50, 200, Seq(seq), Seq(aru), retransmitted)


def test_a_quiet_ring_allows_a_full_visit() -> None:
    assert _allowed(100, 100) == 20


def test_a_rotation_up_to_the_window_still_allows_a_full_visit() -> None:
    assert _allowed(150, 100) == 20


def test_a_rotation_beyond_the_window_allows_less() -> None:
    assert _allowed(165, 100) == 5


def test_a_full_rotation_allows_nothing_and_never_less() -> None:
    assert _allowed(170, 100) == 0
    assert _allowed(500, 100) == 0


def test_retransmissions_count_as_packets_of_the_rotation() -> None:
    assert _allowed(150, 100, retransmitted=15) == 5


def test_nobody_takes_more_than_its_share() -> None:
    assert _allowed(100, 100, share=7) == 7
    assert _allowed(100, 100, share=0) == 0


def test_a_rotation_has_the_window_less_what_is_sent_again() -> None:
    assert _budget(300, 300) == 50
    assert _budget(300, 300, retransmitted=20) == 30
    assert _budget(300, 300, retransmitted=60) == 0


def test_what_is_not_yet_received_by_all_is_bounded_by_the_backlog() -> None:
    assert _budget(300, 110) == 10
    assert _budget(300, 100) == 0
    assert _budget(300, 0) == 0


def test_the_budget_is_shared_as_the_wishes_are() -> None:
    assert fair_share(50, 20, 20) == 50
    assert fair_share(50, 20, 100) == 10
    assert fair_share(50, 1, 100) == 1
    assert fair_share(0, 20, 20) == 0


def test_a_member_renews_its_own_part_of_the_sums() -> None:
    assert renewed((5, 60, 2), (1, 20, 1), (0, 30, 0)) == (4, 70, 1)


def test_sums_that_lack_what_a_member_has_put_into_them_do_not_fall_below_nothing() -> None:
    """A token from elsewhere, or a forged one."""
    assert renewed((0, 60, 2), (1, 20, 1), (0, 30, 0)) == (0, 70, 1)
    assert renewed((5, 10, 2), (1, 20, 1), (0, 30, 0)) == (4, 30, 1)
    assert renewed((5, 60, 0), (1, 20, 1), (0, 30, 0)) == (4, 70, 0)


def test_sums_stay_within_what_a_token_has_room_for() -> None:
    assert renewed((COUNT_MAX, 0, 0), (0, 0, 0), (1, 0, 0)) == (COUNT_MAX, 0, 0)
    assert renewed((0, COUNT_MAX, 0), (0, 0, 0), (0, 1, 0)) == (0, COUNT_MAX, 0)
    assert renewed((0, 0, BEHIND_MAX), (0, 0, 0), (0, 0, 1)) == (0, 0, BEHIND_MAX)


def test_a_budget_is_one_that_a_token_can_carry() -> None:
    assert rotation_budget(COUNT_MAX + 2, COUNT_MAX + 2, Seq(0), Seq(0), 0) == COUNT_MAX


def test_who_may_send_more_in_a_visit_has_no_more_room_in_a_rotation() -> None:
    def most(rotation: int) -> int:
        return allowance(50, 20, 1000, Seq(100 + rotation), Seq(100), 0, visit_most=50)

    assert [most(rotation) for rotation in (0, 20, 30)] == [50, 50, 40]
