from __future__ import annotations

import pytest

from ordercast.model.ids import NOBODY, Seq
from ordercast.order.membership.store import Store

from ..rings import ONE, THREE, TWO, make_packet, make_run


def _store(*seqs: int) -> Store:
    store = Store()
    for seq in seqs:
        assert store.add(Seq(seq), make_packet(seq))
    store.check_invariants()
    return store


def _held(store: Store, after: int = 0) -> list[tuple[int, bytes]]:
    """Each packet as it travels."""
    return [(seq, run.packet(seq)) for seq, run in store.held_after(Seq(after))]


def _packets(*seqs: int) -> list[tuple[int, bytes]]:
    return [(seq, make_packet(seq).packet(Seq(seq))) for seq in seqs]


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
    assert _held(store) == _packets(1, 3)


def test_the_lowest_missing_are_named_up_to_a_limit() -> None:
    store = _store(1, 4, 6)
    assert store.missing(Seq(9), 10) == [2, 3, 5, 7, 8, 9]
    assert store.missing(Seq(9), 3) == [2, 3, 5]
    assert store.missing(Seq(4), 10) == [2, 3]
    assert store.missing(Seq(1), 10) == []
    assert store.missing(Seq(9), 0) == []


def test_what_is_held_above_a_seq_comes_ascending() -> None:
    store = _store(5, 1, 3)
    assert _held(store, after=1) == _packets(3, 5)


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
    store.extend(make_run(2, "2", "3"))
    store.check_invariants()
    assert (store.aru, store.high) == (3, 3)
    assert _held(store) == _packets(1, 2, 3)
    for run in (make_packet(4), make_packet(2)):
        with pytest.raises(AssertionError, match="without holes"):
            _store(1, 3).extend(run)
    for run in (make_packet(3), make_packet(5)):
        with pytest.raises(AssertionError, match="without holes"):
            store.extend(run)


def test_every_packet_of_a_run_is_found_by_its_seq() -> None:
    store = Store()
    run = make_run(1, "1", "2", "3")
    store.extend(run)
    assert [store.get(Seq(seq)) for seq in (1, 2, 3, 4)] == [run, run, run, None]
    assert store.missing(Seq(5), 10) == [4, 5]
    assert not any(store.add(Seq(seq), make_packet(seq, "another")) for seq in (1, 2, 3))


def test_discarding_in_the_middle_of_a_run_keeps_the_rest_of_it() -> None:
    store = Store()
    store.extend(make_run(1, "1", "2", "3", "4"))
    store.discard(Seq(2))
    store.check_invariants()
    assert (store.base, store.aru, store.high) == (2, 4, 4)
    assert _held(store) == _packets(3, 4)
    assert store.has(Seq(1)) and store.get(Seq(2)) is None
    store.extend(make_run(5, "5", "6"))
    assert _held(store) == _packets(3, 4, 5, 6)


def test_a_run_beyond_a_hole_is_kept_packet_by_packet_and_its_place_is_right_once_the_hole_is_filled() -> None:
    store = _store(1, 2)
    run = make_run(4, "4", "5", "6")
    assert all(store.add(Seq(seq), run) for seq in (4, 5, 6))
    assert (store.aru, store.high) == (2, 6)
    assert store.add(Seq(3), make_packet(3))
    store.check_invariants()
    assert (store.aru, store.high) == (6, 6)
    assert _held(store) == _packets(1, 2, 3, 4, 5, 6)


def test_the_originator_of_the_highest_packet_is_known_and_outlives_it() -> None:
    store = Store()
    assert store.high_originator == NOBODY
    store.extend(make_run(1, "1", "2", originator=TWO))
    assert store.high_originator == TWO
    assert store.add(Seq(4), make_packet(4, originator=THREE))
    assert store.add(Seq(3), make_packet(3, originator=ONE))
    assert store.high_originator == THREE
    for through in (1, 3, 4):
        store.discard(Seq(through))
        assert store.high_originator == THREE
    store.extend(make_run(5, "5", originator=ONE))
    assert store.high_originator == ONE


def test_what_is_cut_off_leaves_no_holes_behind_it() -> None:
    store = _store(1, 2, 5, 6)
    store.cut(Seq(4))
    store.check_invariants()
    assert (store.aru, store.high) == (2, 2)
    store.cut(Seq(0))
    assert (store.aru, store.high) == (0, 0)
