from __future__ import annotations

import pytest

from ordercast.model.ids import Seq
from ordercast.order.ring.store import Store

from .rings import make_packet


def _store(*seqs: int) -> Store:
    store = Store()
    for seq in seqs:
        assert store.add(Seq(seq), make_packet(seq))
    store.check_invariants()
    return store


def test_an_empty_store_has_received_nothing() -> None:
    store = Store()
    assert (store.aru, store.high) == (0, 0)
    assert not store.has(Seq(1)) and store.get(Seq(1)) is None
    assert list(store.held_after(Seq(0))) == []


def test_the_aru_stops_at_the_first_hole_and_jumps_when_it_is_filled() -> None:
    store = _store(1, 2, 4, 5, 7)
    assert (store.aru, store.high) == (2, 7)
    assert store.add(Seq(3), make_packet(3))
    assert store.aru == 5


def test_a_duplicate_is_refused_and_the_first_copy_kept() -> None:
    store = _store(1, 3)
    for seq in (1, 3):
        assert not store.add(Seq(seq), make_packet(seq, "another"))
        assert store.get(Seq(seq)) == make_packet(seq)


def test_the_lowest_missing_are_named_up_to_a_limit() -> None:
    store = _store(1, 4, 6)
    assert store.missing(Seq(9), 10) == [2, 3, 5, 7, 8, 9]
    assert store.missing(Seq(9), 3) == [2, 3, 5]
    assert store.missing(Seq(4), 10) == [2, 3]
    assert store.missing(Seq(1), 10) == []
    assert store.missing(Seq(9), 0) == []


def test_what_is_held_above_a_seq_comes_ascending() -> None:
    store = _store(5, 1, 3)
    assert list(store.held_after(Seq(1))) == [(3, make_packet(3)), (5, make_packet(5))]


def test_discarded_packets_count_as_received_and_are_not_taken_again() -> None:
    store = _store(1, 2, 3, 5)
    store.discard(Seq(2))
    store.check_invariants()
    assert (store.base, store.aru, store.high) == (2, 3, 5)
    assert store.has(Seq(1)) and store.get(Seq(1)) is None
    assert not store.add(Seq(2), make_packet(2))
    assert [seq for seq, _ in store.held_after(Seq(0))] == [3, 5]


def test_discarding_less_than_before_changes_nothing() -> None:
    store = _store(1, 2, 3)
    store.discard(Seq(3))
    store.discard(Seq(1))
    assert (store.base, store.aru, store.high) == (3, 3, 3)


def test_what_was_not_received_may_not_be_discarded() -> None:
    with pytest.raises(AssertionError, match="only what was received"):
        _store(1, 3).discard(Seq(3))


def test_a_run_continues_a_store_without_holes_only() -> None:
    store = _store(1)
    store.extend([make_packet(2), make_packet(3)])
    assert (store.aru, store.high) == (3, 3) and store.get(Seq(3)) == make_packet(3)
    with pytest.raises(AssertionError, match="without holes"):
        _store(1, 3).extend([make_packet(4)])
