"""The cases of Figure 4.17, with window 50, visit 20 and backlog 200. The rest is in tests/properties."""

from __future__ import annotations

from ordercast.model.ids import Seq
from ordercast.order.ring.flow_control import allowance


def _allowed(seq: int, received_seq: int, aru: int | None = None, retransmitted: int = 0) -> int:
    return allowance(50, 20, 200, Seq(seq), Seq(received_seq), Seq(seq if aru is None else aru), retransmitted)


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


def test_what_is_not_yet_received_by_all_is_bounded_by_the_backlog() -> None:
    assert _allowed(300, 300, aru=110) == 10
    assert _allowed(300, 300, aru=100) == 0
    assert _allowed(300, 300, aru=0) == 0
