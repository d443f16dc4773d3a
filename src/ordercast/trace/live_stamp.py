"""The stamp of a live node that records every message: who the message is, before its bytes.

It is as short as it can be, 18 bytes, so that a message of 1,350 bytes still travels in one packet of an Ethernet with
its stamp: one byte more than fits would double the packets. Simulated messages have a longer one (`records.py`), which
is a part of their size.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from ordercast.model.ids import ProcessId
from ordercast.trace import kernel

_OWNER = struct.Struct(">QI")  # process, sender
LIVE_STAMP_SIZE = _OWNER.size + kernel.COUNTER_SIZE
LIVE_STAMP_ENDS = (8, 12, LIVE_STAMP_SIZE)  # where process, sender and counter end, all big-endian
assert LIVE_STAMP_SIZE == 18


def live_stamped(process: ProcessId, sender: int, first: int, payloads: Sequence[bytes]) -> list[bytes]:
    """Return the payloads of one sender, each with its stamp; counters go on from `first`."""
    return kernel.stamp(_OWNER.pack(process, sender), first, payloads)
