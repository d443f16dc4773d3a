"""What one system call carries: the kernel cuts it every so many bytes, and nothing else tells packets apart."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ordercast.daemon.sockets import SEGMENTS_MAX, SEND_SIZE_MAX, _sends
from ordercast.model.effects import Broadcast, Burst

Send = tuple[list[bytes], int]


def _sent(bursts: list[Burst], segments_max: int = SEGMENTS_MAX) -> list[Send]:
    """The bytes of each send as the kernel cuts them, and the size that it is told."""
    sends: list[Send] = []
    for pieces, size in _sends(bursts, segments_max):
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
