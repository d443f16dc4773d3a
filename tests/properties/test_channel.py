"""The sending end of a link: never faster than its rate, never more in its queue than it holds, first in first out."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from ordercast.model.ids import SECOND
from ordercast.sim.channel import Channel

Offers = list[tuple[int, int]]  # when, and how many bytes

offers = st.lists(st.tuples(st.integers(0, 5_000_000), st.integers(1, 1500)), max_size=60).map(
    lambda gaps: [(sum(gap for gap, _ in gaps[: at + 1]), size) for at, (_, size) in enumerate(gaps)]
)
rates = st.integers(1000, 2_000_000_000)
queues = st.one_of(st.none(), st.integers(1500, 20_000))


def _sent(channel: Channel, offered: Offers) -> list[tuple[int, int, int]]:
    """When each packet was offered that found room, when it left, and its size."""
    departures = [(at, channel.departure(size, at), size) for at, size in offered]
    return [(at, left, size) for at, left, size in departures if left is not None]


@given(offers, rates, queues)
def test_packets_leave_in_order_and_never_faster_than_the_rate(offered: Offers, rate: int, queue: int | None) -> None:
    sent = _sent(Channel(rate, queue), offered)
    lefts = [left for _, left, _ in sent]
    assert lefts == sorted(lefts)
    for first in range(len(sent)):
        # From the moment when a packet can begin, all bits up to the last of any later packet take their time.
        begins = max(sent[first][0], sent[first - 1][1] if first else 0)
        bits = 0
        for _, left, size in sent[first:]:
            bits += 8 * size
            assert (left - begins) * rate >= bits * SECOND


@given(offers, rates, queues)
def test_a_channel_is_never_idle_while_packets_wait(offered: Offers, rate: int, queue: int | None) -> None:
    before = 0
    for at, left, size in _sent(Channel(rate, queue), offered):
        taken = left - max(at, before)
        assert (taken - 1) * rate < 8 * size * SECOND <= taken * rate
        before = left


@given(offers, rates, queues)
@example([(0, 1500), (1500, 1500)], 8 * SECOND, 1500)  # the first leaves at the moment when the second comes
def test_the_queue_holds_what_it_may_and_loses_only_what_has_no_room(
    offered: Offers, rate: int, queue: int | None
) -> None:
    channel = Channel(rate, queue)
    waiting: list[tuple[int, int]] = []  # when each leaves, and its size
    lost = 0
    for at, size in offered:
        held = sum(size for left, size in waiting if left > at)
        left = channel.departure(size, at)
        if left is None:
            assert queue is not None and held + size > queue
            lost += 1
        else:
            assert queue is None or held + size <= queue
            waiting.append((left, size))
    assert channel.lost == lost


@given(st.lists(st.tuples(st.integers(0, 5_000_000), st.integers(1, 1500)), max_size=40), rates)
def test_packets_leave_in_the_order_of_the_offers_whatever_their_times(offered: Offers, rate: int) -> None:
    channel = Channel(rate)
    lefts = [channel.departure(size, at) for at, size in offered]
    assert lefts == sorted(left for left in lefts if left is not None)
