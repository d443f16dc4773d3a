"""Packets that came in one read, recognised as one payload in parts: looked at together, not one by one.

A sender builds the parts of a payload at one moment, so their heads differ in the numbers alone, which follow each
other, and in the length of the last one.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from ordercast.order.links.codec import DATA, PART
from ordercast.order.links.packing import PART_HEAD_SIZE, is_whole
from ordercast.wire.head import KIND_AT

LENGTH_AT, LENGTH_END = 4, 6
NUMBER_AT, NUMBER_END = 32, 40
NUMBER: Final = struct.Struct(">Q")
DATA_PART: Final = bytes((DATA, PART))


class PartRun(NamedTuple):
    packets: int
    payload: bytes


def run_of(data: bytes, size: int, body_at: int) -> PartRun | None:
    """Return the payload, if packets of this size, the last one perhaps shorter, are all its parts in order. What the
    first head says is for the caller to judge; the others say the same."""
    starts = range(0, len(data), size)
    last = starts[-1]
    if not last or data[KIND_AT : KIND_AT + 2] != DATA_PART or len(data) - last <= body_at + PART_HEAD_SIZE:
        return None
    head, tail = data[:NUMBER_AT], data[NUMBER_END:body_at]
    shorter = head[:LENGTH_AT] + (len(data) - last).to_bytes(2, "big") + head[LENGTH_END:]
    count = len(starts)
    heads = [data[at : at + NUMBER_AT] for at in starts]
    if heads.pop() != shorter or heads.count(head) != count - 1:
        return None
    if [data[at + NUMBER_END : at + body_at] for at in starts].count(tail) != count:
        return None
    (first,) = NUMBER.unpack_from(data, NUMBER_AT)
    numbers = b"".join([data[at + NUMBER_AT : at + NUMBER_END] for at in starts])
    if first + count >= 1 << 64 or numbers != struct.pack(f">{count}Q", *range(first, first + count)):
        return None
    part_at = body_at + PART_HEAD_SIZE
    if not is_whole(b"".join([data[at + body_at : at + part_at] for at in starts])):
        return None
    return PartRun(count, b"".join([data[at + part_at : at + size] for at in starts]))
