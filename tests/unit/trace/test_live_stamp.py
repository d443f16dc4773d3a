"""The stamp of live messages: what it says, and that it is short enough."""

from __future__ import annotations

from itertools import pairwise

from ordercast.model.ids import Incarnation, NodeId, process_id_from
from ordercast.order.ring.config import RingConfig
from ordercast.trace.live_stamp import LIVE_STAMP_ENDS, LIVE_STAMP_SIZE, live_stamped

ME = process_id_from(NodeId(0x7FFF), Incarnation(5))


def test_a_stamp_says_who_the_message_is() -> None:
    payloads = live_stamped(ME, 0x7FFF_FFFF, (1 << 32) - 1, [b"", b"a", b"bc"])
    for counter, data in enumerate(payloads, (1 << 32) - 1):
        begins = (0, *LIVE_STAMP_ENDS)
        said = [int.from_bytes(data[begin:end], "big") for begin, end in pairwise(begins)]
        assert said == [ME, 0x7FFF_FFFF, counter]
    assert [data[LIVE_STAMP_SIZE:] for data in payloads] == [b"", b"a", b"bc"]


def test_a_message_that_fills_a_packet_well_still_does_with_its_stamp() -> None:
    """A byte more than fits would double the packets of the usual large message."""
    assert RingConfig().whole_size_max >= 1350 + LIVE_STAMP_SIZE
