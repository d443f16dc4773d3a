"""What one system call carries: the kernel cuts or joins every so many bytes, and nothing else tells packets apart."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import cast

from hypothesis import given
from hypothesis import strategies as st

from ordercast.daemon.sockets.lanes import LaneSocket
from ordercast.daemon.sockets.sends import SEGMENTS_MAX, SEND_SIZE_MAX, segmented, singles
from ordercast.model.effects import Broadcast, Burst
from ordercast.model.ids import ConfigurationId, ProcessId, Seq
from ordercast.model.inputs import Lane
from ordercast.wire.header import DESCRIPTOR_SIZE, HEADER_SIZE, Heading
from ordercast.wire.run import build_data

Send = tuple[list[bytes], int]


def _sent(bursts: list[Burst], segments_max: int = SEGMENTS_MAX) -> list[Send]:
    """The bytes of each send as the kernel cuts them, and the size that it is told."""
    sends: list[Send] = []
    for pieces, size in segmented(bursts, segments_max):
        data = b"".join(pieces)
        sends.append((Broadcast([(data, size)]).packets, size))
    return sends


def _burst(size: int, count: int, last: int = 0, first: int = 0) -> Burst:
    """Neighbours differ; the last one is perhaps shorter."""
    packets = [bytes([number % 251]) * size for number in range(first, first + count)]
    return b"".join(packets) + bytes([(first + count) % 251]) * last, size


sizes = st.one_of(st.integers(1, 12), st.sampled_from((72, 79, 1000, 1472, 9000, 32753, 32754, 65507)))


@st.composite
def burst_lists(draw: st.DrawFn) -> list[Burst]:
    """Of a few sizes, so that neighbours are often of one size, or the next one is a little shorter."""
    pool = draw(st.lists(sizes, min_size=1, max_size=3))
    bursts: list[Burst] = []
    for number in range(draw(st.integers(1, 8))):
        size = draw(st.sampled_from(pool))
        most = min(150, 200_000 // size)
        count = draw(st.one_of(st.integers(1, 4), st.integers(1, max(1, most)), st.just(min(most, SEGMENTS_MAX))))
        last = draw(st.one_of(st.just(0), st.integers(0, size - 1)))
        bursts.append(_burst(size, count, last, first=37 * number))
    return bursts


@given(burst_lists(), st.sampled_from((1, 2, 7, SEGMENTS_MAX)))
def test_nothing_is_lost_joined_or_reordered_and_every_send_is_within_its_limits(
    bursts: list[Burst], segments_max: int
) -> None:
    sends = _sent(bursts, segments_max)
    assert [packet for packets, _ in sends for packet in packets] == Broadcast(bursts).packets
    for packets, size in sends:
        assert 1 <= len(packets) <= segments_max
        assert sum(map(len, packets)) <= SEND_SIZE_MAX
        assert {len(packet) for packet in packets[:-1]} <= {size}
        assert 1 <= len(packets[-1]) <= size


@given(sizes, st.integers(1, 200))
def test_packets_of_one_size_take_as_few_sends_as_the_limits_allow(size: int, count: int) -> None:
    together = min(SEGMENTS_MAX, SEND_SIZE_MAX // size)
    for bursts in ([_burst(size, count)], [_burst(size, 1)] * min(count, 2 * together)):
        total = len(Broadcast(bursts).packets)
        assert len(_sent(bursts)) == -(-total // together)


def test_a_shorter_packet_goes_along_as_the_last() -> None:
    assert [len(packets) for packets, _ in _sent([_burst(100, 3), _burst(60, 1), _burst(100, 2)])] == [4, 2]


def test_several_shorter_packets_do_not_go_along() -> None:
    """Together they are no longer than one of the others, and would be taken for one."""
    sends = _sent([_burst(1000, 2), _burst(100, 3)])
    assert [([len(packet) for packet in packets], size) for packets, size in sends] == [
        ([1000, 1000], 1000),
        ([100, 100, 100], 100),
    ]


def test_nothing_follows_a_shorter_packet_in_its_send() -> None:
    sends = _sent([_burst(100, 2, last=50), _burst(100, 1), _burst(50, 1), _burst(50, 1)])
    assert [[len(packet) for packet in packets] for packets, _ in sends] == [[100, 100, 50], [100, 50], [50]]


def test_no_packets_are_no_send() -> None:
    assert _sent([]) == []


@given(burst_lists())
def test_without_segmentation_each_send_is_one_packet(bursts: list[Burst]) -> None:
    sends = [bytes(piece) for (piece,), _ in singles(bursts)]
    assert sends == Broadcast(bursts).packets


# And what one look at a socket brings


class Arrived:
    """A socket in which these reads wait."""

    def __init__(self, reads: list[bytes]) -> None:
        self.reads: Iterator[bytes] = iter(reads)

    def recv(self, size: int) -> bytes:
        try:
            return next(self.reads)
        except StopIteration:
            raise BlockingIOError(11, "nothing more") from None


def _packet(size: int, seq: int) -> bytes:
    """Of so many bytes."""
    data = bytes([seq % 251]) * (size - HEADER_SIZE - DESCRIPTOR_SIZE)
    heading = Heading(bytes(8), ConfigurationId(8, ProcessId(1)), (ProcessId(1),))
    entry = 0, len(data), 4, data
    return build_data(heading, 0, [entry], ProcessId(1), Seq(seq), 1, 1).packet(Seq(seq))


def _drained(reads: list[bytes]) -> list[bytes]:
    """Packet by packet, as a reader cuts them."""
    lane = LaneSocket(Lane.DATA, cast(socket.socket, Arrived(reads)), "here")
    bursts = [(bytes(packet.data), packet.segment_size) for packet in lane.drain()]
    packets = Broadcast(bursts).packets
    counters = lane.counters
    assert lane.is_drained and counters.reads == len(reads)
    assert (counters.packets_received, counters.bytes_received) == (len(packets), sum(map(len, packets)))
    return packets


packet_sizes = st.sampled_from((80, 100, 120, 160, 200, 240, 400, 480))  # many are multiples of others


@given(st.lists(st.tuples(packet_sizes, st.integers(1, 6), st.integers(0, 79)), max_size=12))
def test_reads_are_cut_into_the_packets_that_were_sent(drawn: list[tuple[int, int, int]]) -> None:
    """Each read has one packet, or several of one size, as the kernel joined them."""
    seq = 0
    packets: list[bytes] = []
    reads: list[bytes] = []
    for size, count, shorter in drawn:
        joined = [_packet(size, seq + at) for at in range(count)]
        if count > 1 and size - shorter >= 80:
            joined[-1] = _packet(size - shorter, seq + count - 1)
        seq += count
        packets += joined
        reads.append(b"".join(joined))
    assert _drained(reads) == packets


def test_reads_of_one_size_with_packets_of_several_sizes_are_told_apart() -> None:
    several, one = [_packet(100, seq) for seq in (1, 2, 3)], _packet(300, 4)
    assert _drained([b"".join(several), one]) == [*several, one]
    assert _drained([one, b"".join(several)]) == [one, *several]


def test_single_packets_of_one_size_become_one_read() -> None:
    packets = [_packet(100, seq) for seq in (1, 2, 3)]
    lane = LaneSocket(Lane.DATA, cast(socket.socket, Arrived([*packets, _packet(90, 4)])), "here")
    assert [(len(packet.data), packet.segment_size) for packet in lane.drain()] == [(300, 100), (90, 90)]
