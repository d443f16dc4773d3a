"""The one header of every packet, and the reading of data packets in place.

This is the data path: a few functions on plain buffers and tuples, kept apart so that a compiled module can replace
them. A packet is header, descriptors (in columns), payloads:

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

from ordercast.model.effects import Parcel
from ordercast.model.errors import WireError
from ordercast.model.ids import ProcessId, RingId, Seq
from ordercast.model.service import SERVICE_MAX

MAGIC = b"oC"
VERSION = 1
KIND_AT = 3  # where the prefix says what the packet is
LENGTH_AT = 28  # where the header says how long the packet is
CLUSTER_SIZE = 8
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


SAFE = 1  # this packet's messages ask for safe delivery
RECOVERED = 2  # this packet carries one of an old ring, sent again on the new one
RETRANSMITTED = 4  # sent again on request
PART_SHIFT = 4  # the two bits above this say what part of its message the packet's only payload is

PREFIX = struct.Struct(">2sBB8sQQ")
HEADER = struct.Struct(">28sHBBQQQQQ")
SINGLE = struct.Struct(">28sHBBQQQQQIHB")  # header and descriptor of a packet with one message
ORIGIN = struct.Struct(">QQQ")  # only with RECOVERED: old ring seq, old ring representative, old seq
HEADER_SIZE = HEADER.size
ORIGIN_SIZE = ORIGIN.size
DESCRIPTOR_SIZE = 7  # of each message: sender 4, length 2, service 1; all senders first, then lengths, then services
SINGLE_SIZE = HEADER_SIZE + DESCRIPTOR_SIZE  # before the payload of a packet with one message
COUNT_MAX = 255
assert (PREFIX.size, HEADER_SIZE, ORIGIN_SIZE) == (28, 72, 24)

# What the receiver of a data packet needs: the header without transmitter, round and timestamp, and a descriptor.
ARRIVAL = struct.Struct(">28sHBB8xQQ16xIHB")
TRANSMITTER = struct.Struct(">32xQ")
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
ONE_SERVICE = tuple(bytes((service,)) for service in SERVICES)

# A data packet as kept: (head, is safe delivery asked for, messages, part). The head is header and descriptors; with
# the payloads it is the whole packet again, see `whole`. A recovered packet has no messages, since nobody delivers it
# on the new ring: its head is all of it.
Parsed = tuple[bytes, int, Parcel | None, int]


def whole(parsed: Parsed) -> bytes:
    """The packet as it travels."""
    head, _, parcel, _ = parsed
    return head if parcel is None else b"".join((head, *parcel[4]))


def prefix_of(kind: MessageKind, cluster: bytes, ring: RingId) -> bytes:
    return PREFIX.pack(MAGIC, VERSION, kind, cluster, ring.seq, ring.representative)


def parse_run(data: bytes, start: int, size: int, prefix: bytes, expected: Seq) -> tuple[list[Parsed], int]:
    """Data packets from `start` on, one every `size` bytes, as long as they are of this ring, sound, and next in order.
    Returns them and where the first other packet starts: that one is left to whoever takes more time."""
    run: list[Parsed] = []
    end = len(data)
    unpack = ARRIVAL.unpack_from
    try:
        while start < end:
            its_prefix, length, flags, count, originator, seq, sender, first, service = unpack(data, start)
            if its_prefix != prefix or seq != expected:
                break
            if count == 1 and flags <= SAFE:
                body = start + SINGLE_SIZE
                payload = data[body : body + first]
                if service > SERVICE_MAX or not first + SINGLE_SIZE == length <= size or len(payload) != first:
                    break
                parcel = seq, originator, (sender,), ONE_SERVICE[service], (payload,)
                run.append((data[start:body], flags, parcel, 0))
            else:
                if length > size or start + length > end:
                    break
                run.append(parse_data(data, flags, count, originator, seq, start, start + length))
            expected = Seq(expected + 1)
            start += size
    except (struct.error, WireError):
        pass
    return run, start


def parse_data(
    data: bytes,
    flags: int,
    count: int,
    originator: ProcessId,
    seq: Seq,
    at: int = 0,
    end: int | None = None,
) -> Parsed:
    """The data packet from `at` to `end`, whose header fields were read with ARRIVAL. Raises WireError and nothing
    else."""
    end = len(data) if end is None else end
    if flags & RECOVERED:
        if end - at < HEADER_SIZE + ORIGIN_SIZE:
            raise WireError("a recovered packet without its origin")
        return data[at:end], flags & SAFE, None, 0
    start = at + HEADER_SIZE + DESCRIPTOR_SIZE * count
    if not count or end < start:
        raise WireError(f"{count} descriptors do not fit in {end - at} bytes")
    columns = DESCRIPTORS[count].unpack_from(data, at + HEADER_SIZE)
    services = data[start - count : start]
    if services.translate(None, SERVICES):
        raise WireError("a service that does not exist")
    part = flags >> PART_SHIFT
    if part > Part.LAST or (part and count != 1):
        raise WireError("parts that do not exist")
    payloads = _payloads(data, start, end, columns[count:])
    return data[at:start], flags & SAFE, (seq, originator, columns[:count], services, payloads), part


@lru_cache(maxsize=256)
def _equal_payloads(length: int, count: int) -> struct.Struct:
    return struct.Struct(f"{length}s" * count)


def _payloads(data: bytes, start: int, end: int, lengths: tuple[int, ...]) -> Sequence[bytes]:
    """The payloads of a packet, which must fill it. Equal ones are cut by C code alone."""
    length, count = lengths[0], len(lengths)
    if lengths.count(length) == count and start + count * length == end:
        return _equal_payloads(length, count).unpack_from(data, start)
    cuts = list(accumulate(lengths, initial=start))
    if cuts[-1] != end:
        raise WireError(f"descriptors speak of {cuts[-1] - start} bytes of payload, there are {end - start}")
    return [data[cut:stop] for cut, stop in pairwise(cuts)]


# A message on its way out: (sender, length, service, data).
Entry = tuple[int, int, int, bytes]


def build_data(
    prefix: bytes,
    flags: int,
    entries: Sequence[Entry],
    me: ProcessId,
    seq: Seq,
    token_round: int,
    timestamp: int,
) -> Parsed:
    """A new data packet of this process, as it would be read by others."""
    count = len(entries)
    if count == 1:
        sender, size, service, data = entries[0]
        length = SINGLE_SIZE + size
        head = SINGLE.pack(prefix, length, flags, 1, me, me, seq, token_round, timestamp, sender, size, service)
        return head, flags & SAFE, (seq, me, (sender,), ONE_SERVICE[service], (data,)), flags >> PART_SHIFT
    senders, lengths, services, payloads = zip(*entries, strict=True)
    length = HEADER_SIZE + DESCRIPTOR_SIZE * count + sum(lengths)
    header = HEADER.pack(prefix, length, flags, count, me, me, seq, token_round, timestamp)
    descriptors = DESCRIPTORS[count].pack(*senders, *lengths)
    head = b"".join((header, descriptors, bytes(services)))
    return head, flags & SAFE, (seq, me, senders, services, payloads), flags >> PART_SHIFT


def retransmitted(packet: bytes, me: ProcessId) -> bytes:
    """The same packet, with this process as its transmitter."""
    prefix, length, flags, count, _, originator, seq, token_round, timestamp = HEADER.unpack_from(packet)
    header = HEADER.pack(prefix, length, flags | RETRANSMITTED, count, me, originator, seq, token_round, timestamp)
    return header + packet[HEADER_SIZE:]


def recovered(packet: bytes, prefix: bytes, me: ProcessId, seq: Seq, token_round: int) -> bytes:
    """An old-ring packet wrapped for the new ring: new ring and seq outside, old ring and seq inside."""
    old_prefix, length, flags, count, _, originator, old_seq, _, timestamp = HEADER.unpack_from(packet)
    ring_seq, representative = PREFIX.unpack(old_prefix)[4:]
    flags = flags & ~RETRANSMITTED | RECOVERED
    header = HEADER.pack(prefix, length + ORIGIN_SIZE, flags, count, me, originator, seq, token_round, timestamp)
    return b"".join((header, ORIGIN.pack(ring_seq, representative, old_seq), packet[HEADER_SIZE:]))


def origin_of(packet: bytes) -> tuple[RingId, Seq]:
    """Old ring and seq of a recovered packet."""
    ring_seq, representative, seq = ORIGIN.unpack_from(packet, HEADER_SIZE)
    return RingId(ring_seq, representative), seq


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
