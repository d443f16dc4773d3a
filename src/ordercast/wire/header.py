"""The one header of every packet. `run.py` reads and builds data packets; both are the data path: plain buffers, few
objects, kept apart so that compiled modules can replace them. A packet is header, descriptors (in columns), payloads:

    prefix 28   magic 2, version 1, kind 1, cluster 8, ring seq 8, ring representative 8
    length 2    of the whole packet: several packets may come in one read
    flags 1     count 1 (messages or parts of messages in a data packet)
    transmitter 8, originator 8 (process ids with their incarnation; they differ when a packet is retransmitted)
    seq 8, token round 8, Lamport timestamp 8 (taken when the packet was numbered)

One comparison of the prefix tells a data packet of our cluster and ring from everything else.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from enum import IntEnum
from functools import lru_cache
from itertools import accumulate, pairwise

from ordercast.model.errors import WireError
from ordercast.model.ids import ConfigurationId, ProcessId, Seq
from ordercast.model.service import SERVICE_MAX

MAGIC = b"oC"
VERSION = 2
KIND_AT = 3  # where the prefix says what the packet is
FLAGS_AT = 30  # where its flags are
COUNT_AT = 31  # where it says how many messages it has
ORIGINATOR_AT = 40  # where its originator is, behind its transmitter
LENGTH_AT = 28  # where the header says how long the packet is
CLUSTER_SIZE = 8
CLUSTER_IN_HEADER = slice(4, 4 + CLUSTER_SIZE)
PACKET_SIZE_MAX = 65507  # what one UDP datagram can carry


class MessageKind(IntEnum):
    """Append only."""

    DATA = 1
    TOKEN = 2
    COMMIT = 3
    JOIN = 4
    ANNOUNCEMENT = 5
    WAKE = 6
    LEAVE = 7
    PROBE = 8
    ROSTER = 9


SAFE = 1  # this packet's messages ask for safe delivery
RECOVERED = 2  # this packet carries one of an old ring, sent again on the new one
RETRANSMITTED = 4  # sent again on request
PART_SHIFT = 4  # the two bits above this say what part of its message the packet's only payload is
BELOW_PART = (1 << PART_SHIFT) - 1  # the flags that all parts of a message share

PREFIX = struct.Struct(">2sBB8sQQ")
HEADER = struct.Struct(">28sHBBQQQQQ")
FIXED = struct.Struct(">28sHBBQQ")  # the header up to the seq: equal in the packets of one visit that are alike
NUMBERS = struct.Struct(">QQQ")  # and the rest of it: seq, token round, timestamp
ORIGIN = struct.Struct(">QQQ")  # only with RECOVERED: old ring seq, old ring representative, old seq
HEADER_SIZE = HEADER.size
ORIGIN_SIZE = ORIGIN.size
DESCRIPTOR_SIZE = 7  # of each message: sender 4, length 2, service 1; all senders first, then lengths, then services
FIXED_SIZE = FIXED.size
COUNT_MAX = 255
assert (PREFIX.size, HEADER_SIZE, ORIGIN_SIZE) == (28, 72, 24)

# What the receiver of a data packet needs: the header without transmitter, round and timestamp.
ARRIVAL = struct.Struct(">28sHBB8xQQ16x")
TRANSMITTER = struct.Struct(">32xQ")
ORIGINATOR = struct.Struct(">40xQ")
ROUND = struct.Struct(">56xQ")
TIMESTAMP = struct.Struct(">64xQ")
TIMESTAMP_AT = 64


class Part(IntEnum):
    """What a packet's payload is of its message. At most one message of a sender is in parts at a time."""

    WHOLE = 0
    FIRST = 1
    MIDDLE = 2
    LAST = 3


# Senders and lengths of a packet with so many messages; their services follow as bytes.
DESCRIPTORS = tuple(struct.Struct(f">{count}I{count}H") for count in range(COUNT_MAX + 1))
SERVICES = bytes(range(SERVICE_MAX + 1))


def prefix_of(kind: MessageKind, cluster: bytes, ring: ConfigurationId) -> bytes:
    return PREFIX.pack(MAGIC, VERSION, kind, cluster, ring.seq, ring.representative)


@lru_cache(maxsize=256)
def _equal_payloads(length: int, count: int) -> struct.Struct:
    return struct.Struct(f"{length}s" * count)


def payloads_from(data: bytes, start: int, end: int, lengths: tuple[int, ...]) -> Sequence[bytes]:
    """The payloads of a packet, which must fill it. Equal ones are cut by C code alone."""
    length, count = lengths[0], len(lengths)
    if lengths.count(length) == count and start + count * length == end:
        return _equal_payloads(length, count).unpack_from(data, start)
    cuts = list(accumulate(lengths, initial=start))
    if cuts[-1] != end:
        raise WireError(f"descriptors speak of {cuts[-1] - start} bytes of payload, there are {end - start}")
    return [data[cut:stop] for cut, stop in pairwise(cuts)]


# A message on its way out: (sender, length, service, data).
PacketEntry = tuple[int, int, int, bytes]


def retransmitted(packet: bytes, me: ProcessId) -> bytes:
    """The same packet, with this process as its transmitter."""
    prefix, length, flags, count, _, originator, seq, token_round, timestamp = HEADER.unpack_from(packet)
    header = HEADER.pack(prefix, length, flags | RETRANSMITTED, count, me, originator, seq, token_round, timestamp)
    return header + packet[HEADER_SIZE:]


def is_same(one: bytes, other: bytes) -> bool:
    """The same packet, whoever transmitted it."""
    return (
        one[:FLAGS_AT] == other[:FLAGS_AT]
        and (one[FLAGS_AT] ^ other[FLAGS_AT]) & ~RETRANSMITTED == 0
        and one[COUNT_AT] == other[COUNT_AT]
        and one[ORIGINATOR_AT:] == other[ORIGINATOR_AT:]
    )


def recovered(packet: bytes, prefix: bytes, me: ProcessId, seq: Seq, token_round: int) -> bytes:
    """An old-ring packet wrapped for the new ring: new ring and seq outside, old ring and seq inside."""
    old_prefix, length, flags, count, _, originator, old_seq, _, timestamp = HEADER.unpack_from(packet)
    ring_seq, representative = PREFIX.unpack(old_prefix)[4:]
    flags = flags & ~RETRANSMITTED | RECOVERED
    header = HEADER.pack(prefix, length + ORIGIN_SIZE, flags, count, me, originator, seq, token_round, timestamp)
    return b"".join((header, ORIGIN.pack(ring_seq, representative, old_seq), packet[HEADER_SIZE:]))


def origin_of(packet: bytes) -> tuple[ConfigurationId, Seq]:
    """Old ring and seq of a recovered packet."""
    ring_seq, representative, seq = ORIGIN.unpack_from(packet, HEADER_SIZE)
    return ConfigurationId(ring_seq, representative), seq


def unwrapped(packet: bytes, old_prefix: bytes) -> bytes:
    """The old-ring packet inside a recovered one."""
    _, length, flags, count, transmitter, originator, _, token_round, timestamp = HEADER.unpack_from(packet)
    _, old_seq = origin_of(packet)
    header = HEADER.pack(
        old_prefix,
        length - ORIGIN_SIZE,
        flags & ~RECOVERED,
        count,
        transmitter,
        originator,
        old_seq,
        token_round,
        timestamp,
    )
    return header + packet[HEADER_SIZE + ORIGIN_SIZE :]
