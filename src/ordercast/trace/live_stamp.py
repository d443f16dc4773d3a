"""The stamp of a live node that records every message: who the message is, before its bytes.

It is as short as it can be, 18 bytes, so that a message of 1,350 bytes still travels in one packet of an Ethernet with
its stamp: one byte more than fits would double the packets. Simulated messages have a longer one (`records.py`), which
is a part of their size.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from ordercast.model.ids import ProcessId
from ordercast.trace.records import UNSTAMPED

_OWNER = struct.Struct(">QI")  # process, sender
_COUNTER_SIZE = 6
_SIGNED = struct.Struct(">qIHI")  # process, sender, counter in two pieces
LIVE_STAMP_SIZE = _OWNER.size + _COUNTER_SIZE
assert LIVE_STAMP_SIZE == _SIGNED.size == 18


def live_stamped(process: ProcessId, sender: int, first: int, payloads: Sequence[bytes]) -> list[bytes]:
    """Return the payloads of one sender, each with its stamp; counters go on from `first`."""
    owner = _OWNER.pack(process, sender)
    return [
        b"".join((owner, counter.to_bytes(_COUNTER_SIZE, "big"), data)) for counter, data in enumerate(payloads, first)
    ]


def live_stamp_of(data: bytes) -> tuple[int, int, int] | None:
    """Return process, sender and counter as a file keeps them, the process signed; None when the bytes carry none."""
    if len(data) < LIVE_STAMP_SIZE:
        return None
    process, sender, high, low = _SIGNED.unpack_from(data)
    counter = high << 32 | low
    return None if counter == UNSTAMPED else (process, sender, counter)
