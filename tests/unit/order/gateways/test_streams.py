"""The stream of one ring: copies, residual packets of several halves, beginnings."""

from __future__ import annotations

from dataclasses import replace

from ordercast.model.ids import ConfigurationId, ProcessId
from ordercast.order.gateways.bodies import size_of
from ordercast.order.gateways.items import LogicalRing, Stretch
from ordercast.order.gateways.streams import RingStream

RING = LogicalRing(ConfigurationId(1028, ProcessId(1)), frozenset(), frozenset(), 1)
HALF, OTHER = frozenset((ProcessId(1),)), frozenset((ProcessId(2),))


def _stretch(tick: int, *seqs: int) -> Stretch:
    return Stretch(RING.id, tick, ProcessId(1), seqs, tuple(b"%d" % seq for seq in seqs))


def test_copies_are_dropped_and_what_is_new_of_them_is_taken() -> None:
    stream = RingStream(RING)
    assert stream.take(_stretch(5, 2, 3)) == _stretch(5, 2, 3)
    assert stream.take(_stretch(5, 2, 3)) is None
    assert stream.take(_stretch(5, 3, 6, 7)) == _stretch(5, 6, 7)
    assert stream.front == stream.stamp(5, 7)
    assert [run.first[2] for run in stream.runs] == [2, 6]


def test_packets_wait_until_they_are_taken_out() -> None:
    stream = RingStream(RING)
    stream.take(_stretch(5, 2, 3))
    stream.take(_stretch(6, 3, 4).hollow())
    stream.take(_stretch(9, 5))
    whole = _stretch(5, 2, 3)
    assert stream.size == size_of(whole.bodies) + size_of(_stretch(9, 5).bodies)
    stream.passed(stream.runs.popleft().content)
    assert stream.size == size_of(_stretch(9, 5).bodies) > 0
    stream.begin_at((10, 0, 0))
    assert stream.size == 0


def test_residual_packets_are_the_union_of_all_halves_above_the_regular_ones() -> None:
    stream = RingStream(RING)
    stream.take_residual(_stretch(6, 4, 8), HALF)
    stream.take_residual(_stretch(6, 7, 8), OTHER)
    stream.take(_stretch(5, 3, 4))
    assert stream.residual() == _stretch(6, 7)
    assert stream.halves_with(8) == {HALF, OTHER}
    stream.pass_residual(7)
    assert stream.residual() == _stretch(6, 8)
    assert stream.take_residual(_stretch(6, 7), HALF) == _stretch(6, 7)  # carried on, for others may lack it
    assert stream.residual() == _stretch(6, 8)
    stream.pass_residual(8)
    assert stream.residual() is None


def test_a_residual_packet_is_new_once_for_each_half() -> None:
    stream = RingStream(RING)
    assert stream.take_residual(_stretch(6, 4), HALF) is not None
    assert stream.take_residual(_stretch(6, 4), HALF) is None
    assert stream.take_residual(_stretch(6, 4), OTHER) is not None


def test_a_ring_that_comes_back_begins_at_the_merge() -> None:
    stream = RingStream(RING)
    stream.take(_stretch(5, 3))
    stream.take(_stretch(9, 5))
    stream.take_residual(_stretch(6, 4), HALF)
    stream.begin_at((7, 0, 0))
    assert [run.content for run in stream.runs] == [_stretch(9, 5)]
    assert stream.residual() is None
    assert stream.take(_stretch(6, 6)) is None
    assert stream.take(_stretch(9, 7)) == _stretch(9, 7)


def test_a_hollow_packet_tells_how_far_the_ring_is() -> None:
    stream = RingStream(RING)
    hollow = _stretch(5, 2, 3, 4).hollow()
    assert hollow.is_hollow
    assert stream.take(hollow) == hollow
    assert stream.take(_stretch(5, 2, 3, 4)) is None
    assert stream.front == stream.stamp(5, 4)
    assert hollow.seqs == (4,)
    assert replace(_stretch(5, 2, 3), is_safe=True).hollow().seqs == (2, 3)
