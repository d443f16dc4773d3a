"""The header of a ring's data packets, behind the clear head. `run.py` reads and builds them; both are the data path:
plain buffers, few objects, kept apart so that compiled modules can replace them. A packet is head, header, descriptors
(in columns), payloads:

    22  kind 1, ring 8 (a digest of the ring's id)
    31  flags 1, count 1 (messages or parts of messages in the packet)
    33  originator 2 (its place among the ring's members; the transmitter, in the head, differs when it is sent again)
    35  seq 8, token round 8, Lamport timestamp 8 (taken when the packet was numbered)

All before the seq is equal in packets that are alike.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from copy import copy
from enum import IntEnum

from ordercast.model.errors import WireError
from ordercast.model.ids import ConfigurationId, ProcessId, Seq
from ordercast.model.service import SERVICE_MAX
from ordercast.wire.cuts import cut
from ordercast.wire.head import KIND_AT, OPENING, TRANSMITTER_AT


class MessageKind(IntEnum):
    """What a ring's packets are. Append only."""

    DATA = 1
    TOKEN = 2
    COMMIT = 3
    JOIN = 4
    ANNOUNCEMENT = 5
    WAKE = 6
    LEAVE = 7
    ROSTER = 8
    PIECE = 12  # 9 to 11 are of the adaptive engine


SAFE = 1  # this packet's messages ask for safe delivery
RECOVERED = 2  # this packet carries one of an old ring, sent again on the new one
RETRANSMITTED = 4  # sent again on request
EXTENDED = (
    8  # a block of an enclosing engine stands before the descriptors; its first byte says its size (`BLOCK_SIZES`)
)
PART_SHIFT = 4  # the two bits above this say what part of its message the packet's only payload is
BELOW_PART = (1 << PART_SHIFT) - 1  # the flags that all parts of a message share

RING_SIZE = 9  # the kind of a data packet, and the digest of its ring
FLAGS_AT = KIND_AT + RING_SIZE
HEADER = struct.Struct(f">4sH8sQ{RING_SIZE}sBBHQQQ")  # the clear head as well
FIXED = struct.Struct(f">4sH8sQ{RING_SIZE}sBBH")  # up to the seq: equal in the packets of one visit that are alike
NUMBERS = struct.Struct(">QQQ")  # and the rest: seq, token round, timestamp
ORIGIN = struct.Struct(">8sQH")  # only with RECOVERED: digest of the old ring, old seq, old place of the originator
HEADER_SIZE = HEADER.size
ORIGIN_SIZE = ORIGIN.size
DESCRIPTOR_SIZE = 7  # of each message: sender 4, length 2, service 1; all senders first, then lengths, then services
LENGTH_AT = 4  # in the descriptor of a packet's only message, behind its sender
FIXED_SIZE = FIXED.size
COUNT_MAX = 255
LONE_BYTE = 0x80  # a block that begins with such a byte is that byte alone, and says something with its other bits
BLOCK_SIZES = bytes((*range(LONE_BYTE), *(1,) * (256 - LONE_BYTE)))  # of blocks, by their first bytes
SHORT_BLOCK = 9  # blocks that are longer end with a number of eight bytes, another one in each packet
assert (FLAGS_AT, FIXED_SIZE, HEADER_SIZE, ORIGIN_SIZE) == (31, 35, 59, 18)

# What the receiver of a data packet needs: opening, length, cluster, ring, flags, count, place, seq.
ARRIVAL = struct.Struct(f">4sH8s8x{RING_SIZE}sBBHQ16x")
RING = slice(KIND_AT + 1, FLAGS_AT)  # the digest
ROUND = struct.Struct(">43xQ")
TIMESTAMP_AT = 51
TIMESTAMP = struct.Struct(f">{TIMESTAMP_AT}xQ")


class Part(IntEnum):
    """What a packet's payload is of its message. At most one message of a sender is in parts at a time."""

    WHOLE = 0
    FIRST = 1
    MIDDLE = 2
    LAST = 3


def parts_in_a_row(count: int) -> bytes:
    """Return which parts the packets of one message are, if it takes so many: two at least."""
    return bytes((Part.FIRST, *(Part.MIDDLE,) * (count - 2), Part.LAST))


# Senders and lengths of a packet with so many messages; their services follow as bytes.
DESCRIPTORS = tuple(struct.Struct(f">{count}I{count}H") for count in range(COUNT_MAX + 1))
SERVICES = bytes(range(SERVICE_MAX + 1))


def digest_of(ring: ConfigurationId) -> bytes:
    """Eight bytes that name a ring in its data packets."""
    return hashlib.blake2b(struct.pack(">QQ", *ring), digest_size=8).digest()


class Heading:
    """What the data packets of one ring share: the bytes that tell them from all others, and the members, whose places
    name the originators."""

    __slots__ = ("cluster", "digest", "members", "places", "ring")

    def __init__(self, cluster: bytes, ring: ConfigurationId, members: Sequence[ProcessId]) -> None:
        self.cluster = cluster
        self.digest = digest_of(ring)
        self.ring = bytes((MessageKind.DATA,)) + self.digest
        self.members = tuple(members)
        self.places = {process: place for place, process in enumerate(self.members)}

    def of_kind(self, kind: int) -> Heading:
        """Return the same for packets of another kind, which an engine numbers for itself."""
        other = copy(self)
        other.ring = bytes((kind,)) + self.digest
        return other

    def originator(self, place: int) -> ProcessId:
        if place >= len(self.members):
            raise WireError(f"an originator in place {place} of a ring of {len(self.members)}")
        return self.members[place]

    def is_of(self, data: bytes, at: int) -> bool:
        """Whether a data packet of this ring begins here."""
        return (
            data[at + KIND_AT : at + FLAGS_AT] == self.ring
            and data[at : at + 4] == OPENING
            and data[at + 6 : at + TRANSMITTER_AT] == self.cluster
        )


def payloads_from(data: bytes, start: int, end: int, lengths: tuple[int, ...]) -> Sequence[bytes]:
    """The payloads of a packet, which must fill it."""
    size = sum(lengths)
    if start + size != end:
        raise WireError(f"descriptors speak of {size} bytes of payload, there are {end - start}")
    return cut(data, start, lengths)


# A message on its way out: (sender, length, service, data).
PacketEntry = tuple[int, int, int, bytes]


def retransmitted(packet: bytes, me: ProcessId) -> bytes:
    """The same packet, with this process as its transmitter."""
    flags = bytes((packet[FLAGS_AT] | RETRANSMITTED,))
    pieces = packet[:TRANSMITTER_AT], me.to_bytes(8, "big"), packet[KIND_AT:FLAGS_AT], flags, packet[FLAGS_AT + 1 :]
    return b"".join(pieces)


def is_same(one: bytes, other: bytes) -> bool:
    """The same packet, whoever transmitted it."""
    return (
        one[:TRANSMITTER_AT] == other[:TRANSMITTER_AT]
        and one[KIND_AT:FLAGS_AT] == other[KIND_AT:FLAGS_AT]
        and (one[FLAGS_AT] ^ other[FLAGS_AT]) & ~RETRANSMITTED == 0
        and one[FLAGS_AT + 1 :] == other[FLAGS_AT + 1 :]
    )


def recovered(
    packet: bytes, originator: ProcessId, heading: Heading, me: ProcessId, seq: Seq, token_round: int
) -> bytes:
    """An old-ring packet wrapped for the new ring: new ring, seq and place outside, the old ones inside. An originator
    that is not on the new ring is replaced by the representative outside."""
    _, length, cluster, _, old_ring, flags, count, old_place, old_seq, _, timestamp = HEADER.unpack_from(packet)
    header = HEADER.pack(
        OPENING,
        length + ORIGIN_SIZE,
        cluster,
        me,
        heading.ring,
        flags & ~RETRANSMITTED | RECOVERED,
        count,
        heading.places.get(originator, 0),
        seq,
        token_round,
        timestamp,
    )
    return b"".join((header, ORIGIN.pack(old_ring[1:], old_seq, old_place), packet[HEADER_SIZE:]))


def origin_of(packet: bytes) -> tuple[bytes, Seq]:
    """The digest of the old ring, and the old seq, of a recovered packet."""
    digest, seq, _ = ORIGIN.unpack_from(packet, HEADER_SIZE)
    return digest, seq


def unwrapped(packet: bytes, old: Heading) -> bytes:
    """The old-ring packet inside a recovered one."""
    _, length, cluster, transmitter, _, flags, count, _, _, token_round, timestamp = HEADER.unpack_from(packet)
    _, old_seq, old_place = ORIGIN.unpack_from(packet, HEADER_SIZE)
    header = HEADER.pack(
        OPENING,
        length - ORIGIN_SIZE,
        cluster,
        transmitter,
        old.ring,
        flags & ~RECOVERED,
        count,
        old_place,
        old_seq,
        token_round,
        timestamp,
    )
    return header + packet[HEADER_SIZE + ORIGIN_SIZE :]
