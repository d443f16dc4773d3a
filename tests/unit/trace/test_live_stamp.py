"""The stamp of live messages: what it says, and that it is short enough."""

from __future__ import annotations

import pytest

from ordercast.model.ids import Incarnation, NodeId, process_id_from
from ordercast.order.ring.config import RingConfig
from ordercast.trace.columns import signed
from ordercast.trace.live_stamp import LIVE_STAMP_SIZE, live_stamp_of, live_stamped

ME = process_id_from(NodeId(0x7FFF), Incarnation(5))


def test_a_stamp_says_who_the_message_is() -> None:
    payloads = live_stamped(ME, 0x7FFF_FFFF, (1 << 32) - 1, [b"", b"a", b"bc"])
    assert [live_stamp_of(data) for data in payloads] == [
        (signed(ME), 0x7FFF_FFFF, counter) for counter in range((1 << 32) - 1, (1 << 32) + 2)
    ]
    assert [data[LIVE_STAMP_SIZE:] for data in payloads] == [b"", b"a", b"bc"]


@pytest.mark.parametrize("data", [b"", bytes(LIVE_STAMP_SIZE - 1), bytes(40)])
def test_bytes_that_are_too_few_or_have_no_counter_are_no_stamp(data: bytes) -> None:
    assert live_stamp_of(data) is None


def test_a_message_that_fills_a_packet_well_still_does_with_its_stamp() -> None:
    """A byte more than fits would double the packets of the usual large message."""
    assert RingConfig().whole_size_max >= 1350 + LIVE_STAMP_SIZE
