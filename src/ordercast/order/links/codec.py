"""The packets of a link as bytes. Behind the clear head, whichever engine's link it is:

    22  kind 1      DATA: a numbered packet; STATUS: none, it acknowledges, asks and announces
    23  flags 1     PART: the body is a part of one payload; PROBE: the other side is to acknowledge at once;
                    CALM: it need not soon
    24  tag 8       the epoch of the link, as its transmitter writes it
    32  number 8    DATA: of this packet, from 1; STATUS: the highest that was sent
    40  aru 8       all packets up to this number came from the other side
    48  beyond 2    so many above it came as well; at most 65535 are said
    50  sent 4      when this packet left, in microseconds of the transmitter's clock; wraps
    54  echo 4      `sent` of the packet that came last, and the time since; 0: none has come
    58  rider       bytes of the engine, as many as the two ends have agreed
        body        DATA: see `packing.py`; STATUS: count 1, then missing ranges: distance from aru 4, length 2

One decoder, one kind of error: whatever is wrong with bytes is a WireError.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from enum import IntEnum
from typing import Final, NamedTuple

from ordercast.model.errors import WireError
from ordercast.model.ids import Instant, ProcessId
from ordercast.order.links.packing import NumberedBody
from ordercast.wire.codec import NUMBER_MAX
from ordercast.wire.head import HEAD, HEAD_SIZE, OPENING
from ordercast.wire.reader import ByteReader

HORIZON: Final = 0xFFFF  # numbers above aru that can be true; what lies beyond is damaged
RANGES_MAX: Final = 64  # missing ranges in one packet
BEYOND_MAX: Final = 0xFFFF
STAMP_MASK: Final = 0xFFFF_FFFF
PART: Final = 1
PROBE: Final = 2
CALM: Final = 4

_ALL: Final = struct.Struct(">4sH8sQBBQQQHLL")  # the clear head and the link's
_BEHIND: Final = struct.Struct(">BBQQQHLL")
_RANGE: Final = struct.Struct(">LH")
LINK_HEAD_SIZE: Final = _ALL.size
assert LINK_HEAD_SIZE == HEAD_SIZE + _BEHIND.size == 58
assert _ALL.format.startswith(HEAD.format)

Ranges = tuple[tuple[int, int], ...]  # first and last number of each, ascending


class LinkKind(IntEnum):
    """Kinds of packets between two processes. Rings that the same process is on have lower ones."""

    DATA = 32
    STATUS = 33


DATA: Final = int(LinkKind.DATA)
STATUS: Final = int(LinkKind.STATUS)
_FLAGS: Final = {DATA: PART | CALM, STATUS: PROBE}  # that packets of a kind may have


class LinkHead(NamedTuple):
    """What every packet of a link says, whatever its body is."""

    kind: int
    flags: int
    tag: int
    number: int
    aru: int
    beyond: int
    sent: int
    echo: int


def encode_link(cluster: bytes, transmitter: ProcessId, head: LinkHead, rider: bytes, body: bytes) -> bytes:
    """Return the packet that says this."""
    size = LINK_HEAD_SIZE + len(rider) + len(body)
    return _ALL.pack(OPENING, size, cluster, transmitter, *head) + rider + body


def encode_run(
    cluster: bytes, transmitter: ProcessId, head: LinkHead, rider: bytes, bodies: Sequence[NumberedBody]
) -> list[bytes]:
    """Return packets that differ in their numbers and bodies alone; of the head the kind and number do not count."""
    _, flags, tag, _, *last = head
    pack, start = _ALL.pack, LINK_HEAD_SIZE + len(rider)
    return [
        pack(OPENING, start + len(body), cluster, transmitter, DATA, flags | is_part, tag, number, *last) + rider + body
        for number, (body, is_part) in bodies
    ]


def decode_link(packet: bytes, rider_size: int) -> tuple[LinkHead, bytes, bytes]:
    """Return head, rider and body of a packet whose clear head was found good (`wire.head.kind_of`)."""
    body_at = LINK_HEAD_SIZE + rider_size
    if len(packet) < body_at:
        raise WireError("the link packet is cut short")
    head = LinkHead._make(_BEHIND.unpack_from(packet, HEAD_SIZE))
    kind, flags, _, number, aru, *_ = head
    possible = _FLAGS.get(kind)
    if possible is None:
        raise WireError(f"a link has no packets of kind {kind}")
    if flags & ~possible:
        raise WireError("flags that do not exist")
    if number > NUMBER_MAX or aru > NUMBER_MAX or (not number and kind == DATA):
        raise WireError("a number beyond all bounds")
    return head, packet[LINK_HEAD_SIZE:body_at], packet[body_at:]


def encode_ranges(aru: int, ranges: Sequence[tuple[int, int]]) -> bytes:
    """Return the body of a status; at most RANGES_MAX ranges, all above aru."""
    return bytes((len(ranges),)) + b"".join(_RANGE.pack(first - aru, last - first + 1) for first, last in ranges)


def decode_ranges(aru: int, high: int, body: bytes) -> Ranges:
    """Return the ranges that a status calls missing, all above aru and not above `high`."""
    reader = ByteReader(body, 0, "the status")
    count = reader.byte()
    if count > RANGES_MAX:
        raise WireError(f"{count} missing ranges, more than the limit of {RANGES_MAX}")
    ranges, last = [], aru
    for _ in range(count):
        distance, length = reader.unpack(_RANGE)
        if not length or aru + distance <= last:
            raise WireError("missing ranges that do not ascend")
        last = aru + distance + length - 1
        ranges.append((aru + distance, last))
    reader.end()
    if last > max(high, aru):
        raise WireError("packets are missing that were never sent")
    return tuple(ranges)


def stamp_of(now: Instant) -> int:
    """Return the moment as packets say it: microseconds that wrap, never 0."""
    return (now // 1000) & STAMP_MASK or 1
