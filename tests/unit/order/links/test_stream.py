"""Links over TCP: payloads as bytes of a connection, cut anywhere."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.model.errors import UsageError, WireError
from ordercast.model.ids import SECOND, Duration, Instant
from ordercast.order.links.link import LinkFailure, Tags
from ordercast.order.links.stream import BLANK, StreamLink
from tests.unit.order.links.pair import CLUSTER, ENDS

ROOM = 1 << 30
START = Instant(0)


def make(end: int, theirs: int = 5) -> StreamLink:
    me, peer = ENDS[end], ENDS[1 - end]
    return StreamLink(CLUSTER, me, peer, Tags(5, theirs), START, 1000, Duration(SECOND))


@given(
    st.lists(st.binary(min_size=1, max_size=300), max_size=12),
    st.lists(st.integers(0, 4000), max_size=6),
    st.integers(0, 3000),
)
def test_payloads_come_in_order_however_the_bytes_are_cut(payloads: list[bytes], cuts: list[int], end: int) -> None:
    one, other = make(0), make(1)
    one.send(payloads)
    written = one.flush(START, ROOM) + BLANK
    assert one.is_quiet
    places = sorted({0, len(written), *(cut for cut in cuts if cut < len(written))})
    came = [payload for first, last in pairwise(places) for payload in other.receive(written[first:last], START)]
    assert came == payloads
    cut_short = make(1).receive(written[:end], START)
    assert cut_short == payloads[: len(cut_short)]


@given(st.binary(max_size=200))
def test_any_bytes_are_payloads_or_end_the_link(data: bytes) -> None:
    one, other = make(0), make(1)
    other.receive(one.flush(START, ROOM), START)
    try:
        other.receive(data, START)
    except WireError:
        assert other.failure is LinkFailure.CONTRADICTION


def test_strangers_and_old_epochs_are_refused() -> None:
    opening = make(0).flush(START, ROOM)
    link = make(1, theirs=4)
    with pytest.raises(WireError, match="another epoch"):
        link.receive(opening, START)
    assert link.failure is LinkFailure.CONTRADICTION
    with pytest.raises(WireError, match="failed"):
        link.receive(opening, START)
    with pytest.raises(WireError, match="not an Ordercast packet"):
        make(1).receive(b"GET / HTTP/1.1\r\nHost: somewhere\r\n", START)


def test_what_finds_no_room_waits_and_is_overtaken_or_withdrawn() -> None:
    one, other = make(0), make(1)
    one.send([b"a" * 100, b"b" * 100, b"c" * 100])
    assert other.receive(one.flush(START, 10), START) == [b"a" * 100]
    one.send([b"urgent"], is_urgent=True)
    assert other.receive(one.flush(START, 1), START) == [b"urgent"]
    assert one.waiting == 200
    assert one.withdraw() == [b"b" * 100, b"c" * 100]
    assert one.flush(START, ROOM) == b""


def test_silence_ends_the_link_and_a_blank_is_heard() -> None:
    one, other = make(0), make(1)
    opening = one.flush(START, ROOM)
    assert other.receive(opening + BLANK, Instant(SECOND // 2)) == []
    assert other.next_deadline == SECOND // 2 + SECOND
    assert other.flush(Instant(SECOND), ROOM)
    assert other.failure is None
    one.send([b"in vain"])
    assert one.flush(Instant(SECOND), ROOM) == b""
    assert one.failure is LinkFailure.SILENT
    assert one.next_deadline is None


def test_payloads_of_other_sizes_are_refused_at_both_ends() -> None:
    one, other = make(0), make(1)
    for size in (0, 1001):
        with pytest.raises(UsageError, match=f"not {size}"):
            one.send([bytes(size)])
    with pytest.raises(WireError, match="1001 bytes, more than the limit of 1000"):
        other.receive(one.flush(START, ROOM) + b"\0\0\x03\xe9", START)
