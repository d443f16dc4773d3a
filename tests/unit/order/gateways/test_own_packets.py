"""Own packets: which of them the order has passed without their bodies."""

from __future__ import annotations

from ordercast.model.ids import ConfigurationId, ProcessId
from ordercast.order.gateways.items import EVERYTHING, Stretch
from ordercast.order.gateways.own_packets import OwnPackets, OwnRun
from ordercast.order.stamped.lanes import StampedRun

ME = ProcessId(1)
TAG, OTHER_TAG = 7, 5  # of rings
BUCKET = 2


def _stretch(*seqs: int, tick: int = 9, mask: int = BUCKET) -> Stretch:
    return Stretch(ConfigurationId(1028, ME), tick, ME, seqs, tuple(b"%d" % seq for seq in seqs), mask=mask)


def _run(*seqs: int, tick: int = 9, tag: int = TAG, mask: int = BUCKET) -> OwnRun:
    return StampedRun((tick, tag, seqs[0]), (tick, tag, seqs[-1]), _stretch(*seqs, tick=tick, mask=mask))


def _bare(own: OwnPackets, tick: int, tag: int = TAG, seq: int = 1000) -> list[tuple[int, ...]]:
    return [tuple(run.content.seqs) for run in own.bare((tick, tag, seq))]


def test_what_is_passed_as_it_was_handed_up_is_not_bare() -> None:
    own = OwnPackets(ME)
    own.handed_up(TAG, _stretch(1, 2))
    assert _bare(own, 8) == []
    own.passed(_run(1, 2))
    assert _bare(own, 9) == []


def test_what_was_handed_up_and_not_passed_is_bare_once_its_place_is_behind() -> None:
    own = OwnPackets(ME)
    own.handed_up(TAG, _stretch(1, 2))
    own.handed_up(TAG, _stretch(5, tick=10))
    assert _bare(own, 9, seq=1) == []
    assert _bare(own, 9) == [(1, 2)]
    assert _bare(own, 10) == [(5,)]
    assert _bare(own, 11) == []


def test_what_came_whole_another_way_is_not_bare_when_it_is_handed_up() -> None:
    own = OwnPackets(ME)
    own.passed(_run(1, 2))
    assert _bare(own, 9) == []
    own.handed_up(TAG, _stretch(1, 2))
    assert _bare(own, 9) == []


def test_stretches_may_be_cut_in_other_places_on_other_ways() -> None:
    own = OwnPackets(ME)
    own.handed_up(TAG, _stretch(1, 2, 3))
    own.passed(_run(1, 3, 4))
    own.handed_up(TAG, _stretch(4, 5))
    assert _bare(own, 9) == [(2,), (5,)]


def test_each_ring_counts_for_itself_and_places_rise() -> None:
    own = OwnPackets(ME)
    own.handed_up(TAG, _stretch(1, 2))
    own.handed_up(OTHER_TAG, _stretch(1, 2))
    own.passed(_run(1, tag=TAG))
    own.passed(_run(2, tag=OTHER_TAG))
    assert [run.first for run in own.bare((9, TAG, 9))] == [(9, OTHER_TAG, 1), (9, TAG, 2)]


def test_what_goes_everywhere_is_always_whole() -> None:
    own = OwnPackets(ME)
    own.handed_up(TAG, _stretch(1, mask=EVERYTHING))
    assert _bare(own, 9) == []


def test_what_others_sent_is_none_of_it() -> None:
    own = OwnPackets(ProcessId(2))
    own.handed_up(TAG, _stretch(1))
    own.passed(_run(2))
    assert _bare(own, 9) == []


def test_what_is_passed_piece_by_piece_is_not_bare() -> None:
    own = OwnPackets(ME)
    own.handed_up(TAG, _stretch(1, 2, 3, 4))
    for seqs in ((1, 2), (3,), (4,)):
        own.passed(_run(*seqs))
    assert _bare(own, 9) == []
    own.handed_up(TAG, _stretch(5, 6))
    own.handed_up(TAG, _stretch(7))
    own.passed(_run(6))
    assert _bare(own, 9) == [(5,), (7,)]


def test_what_was_passed_by_is_bare_though_others_behind_it_were_passed() -> None:
    own = OwnPackets(ME)
    for seq in range(1, 7):
        own.handed_up(TAG, _stretch(seq))
    for seq in (2, 5):
        own.passed(_run(seq))
    assert _bare(own, 9) == [(1,), (3,), (4,), (6,)]
    assert _bare(own, 9) == []


def test_nothing_stays_of_rings_of_which_nothing_waits() -> None:
    own = OwnPackets(ME)
    for tag in range(100):
        own.handed_up(tag, _stretch(1))
        own.passed(_run(1, tag=tag))
        assert _bare(own, 9, tag=1000) == []
    assert not own._waiting and not own._ahead
