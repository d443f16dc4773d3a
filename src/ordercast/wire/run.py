"""Packets in a row: the unit in which data packets are read, kept, delivered and sent.

A run is one or more data packets with consecutive seqs, of one originator and of one shape: each carries as many
messages as the others, with the same senders, sizes and services. A loaded ring's traffic is made of long runs, which
cost as much per packet as C code takes to cut them; a packet that is like no other is a run of one.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache
from itertools import count, groupby, repeat

from ordercast.model.effects import Burst, Parcel
from ordercast.model.errors import WireError
from ordercast.model.ids import ProcessId, Seq
from ordercast.wire.head import OPENING
from ordercast.wire.header import (
    ARRIVAL,
    BELOW_PART,
    DESCRIPTOR_SIZE,
    DESCRIPTORS,
    EXTENDED,
    FIXED,
    FIXED_SIZE,
    FLAGS_AT,
    HEADER_SIZE,
    NUMBERS,
    ORIGIN_SIZE,
    PART_SHIFT,
    RECOVERED,
    SAFE,
    SERVICES,
    SHORT_BLOCK,
    TIMESTAMP,
    Heading,
    PacketEntry,
    Part,
    payloads_from,
)

# Of the packets of a run: flags, and of each message in one packet sender, length and service.
Shape = tuple[int, tuple[int, ...], tuple[int, ...], tuple[int, ...]]

# What is to be put into packets of one shape: the shape, the payloads of each packet, and which part of its message
# each is (nothing, if they are whole messages). The last part of a message may be shorter than the shape says.
Load = tuple[int, tuple[int, ...], tuple[int, ...], tuple[int, ...], Sequence[Sequence[bytes]], Sequence[Part]]


# A packet whose content is known as bytes: flags, how many messages, and all behind the header.
RawPacket = tuple[int, int, bytes]


class PacketRun:
    __slots__ = ("at", "count", "data", "is_safe", "originator", "parcel", "parts", "seq", "size")

    def __init__(
        self,
        data: bytes,
        at: int,
        size: int,
        seq: Seq,
        originator: ProcessId,
        count: int = 1,
        is_safe: int = 0,
        parts: Sequence[int] = (),
        parcel: Parcel | None = None,
    ) -> None:
        self.data = data  # somewhere in it, from `at` on, the packets, of `size` bytes each
        self.at = at
        self.size = size
        self.seq = seq  # of the first packet
        self.originator = originator  # of a recovered packet: as the new ring has it
        self.count = count  # of packets
        self.is_safe = is_safe  # safe delivery is asked for
        self.parts = parts  # which part of a message each packet has; nothing: whole messages
        self.parcel = parcel  # the messages; None once delivered, and of a recovered packet, which is not delivered

    @property
    def last(self) -> Seq:
        return Seq(self.seq + self.count - 1)

    @property
    def part(self) -> int:
        """Which part of a message the first packet has."""
        return self.parts[0] if self.parts else Part.WHOLE

    def packet(self, seq: Seq) -> bytes:
        """One packet as it travels."""
        at = self.at + (seq - self.seq) * self.size
        return self.data[at : at + self.size]

    def timestamp(self, seq: int) -> int:
        """Return the Lamport timestamp of one packet."""
        return int(TIMESTAMP.unpack_from(self.data, self.at + (seq - self.seq) * self.size)[0])

    @property
    def flags(self) -> int:
        """The flags of the first packet; all others have the same, apart from the part."""
        return self.data[self.at + FLAGS_AT]

    def block(self, seq: int) -> bytes:
        """Return what an enclosing engine has put before the descriptors of one packet, its size first."""
        at = self.at + (seq - self.seq) * self.size + HEADER_SIZE
        return self.data[at : at + self.data[at]] if self.flags & EXTENDED else b""

    def piece(self, first: int, last: int) -> PacketRun:
        """Return some of the packets."""
        if first == self.seq and last == self.seq + self.count - 1:
            return self
        at, skipped, number = self.at + (first - self.seq) * self.size, first - self.seq, last + 1 - first
        parts = self.parts[skipped : skipped + number]
        parcel = self.parcel and self.parcel_of(first, last)
        return PacketRun(self.data, at, self.size, Seq(first), self.originator, number, self.is_safe, parts, parcel)

    def burst(self) -> Burst:
        """All packets, as they travel."""
        end = self.at + self.count * self.size
        return (self.data if end - self.at == len(self.data) else self.data[self.at : end]), self.size

    def parcel_of(self, first: int, last: int) -> Parcel:
        """The messages of some of the packets."""
        assert self.parcel is not None
        if first == self.seq and last == self.seq + self.count - 1:
            return self.parcel
        _, originator, senders, services, payloads, each, base = self.parcel
        cut = slice((first - self.seq) * each, (last + 1 - self.seq) * each)
        return first, originator, senders[cut], services[cut], payloads[cut], each, base


# Reading


def parse_run(data: bytes, start: int, size: int, heading: Heading, expected: Seq) -> PacketRun | None:
    """Data packets from `start` on, one every `size` bytes, as long as they are of this ring, sound, next in order and
    alike. None when the first is not: it is left to whoever takes more time."""
    try:
        opening, length, cluster, ring, flags, count, place, seq = ARRIVAL.unpack_from(data, start)
        if ring != heading.ring or seq != expected or length > size or start + length > len(data):
            return None
        if opening != OPENING or cluster != heading.cluster:
            return None
        run = parse_data(data, flags, count, heading.members[place], seq, start, start + length)
    except (struct.error, IndexError, WireError):
        return None
    if length == size and run.parcel is not None:
        alike = (len(data) - start) // size
        if alike > 1:
            head = data[start + HEADER_SIZE] if flags & EXTENDED else 0
            _extend_parts(run, alike, head) if run.parts else _extend(run, alike, head)
    return run


def parse_data(
    data: bytes,
    flags: int,
    count: int,
    originator: ProcessId,
    seq: Seq,
    at: int = 0,
    end: int | None = None,
) -> PacketRun:
    """The data packet from `at` to `end`, whose header fields were read with ARRIVAL, as a run of one. Raises WireError
    and nothing else."""
    end = len(data) if end is None else end
    begin = at + HEADER_SIZE
    if flags & (RECOVERED | EXTENDED):
        if flags & RECOVERED:
            if end - at < HEADER_SIZE + ORIGIN_SIZE:
                raise WireError("a recovered packet without its origin")
            return PacketRun(data, at, end - at, seq, originator, is_safe=flags & SAFE)
        begin += _block_size(data, begin, end)
    start = begin + DESCRIPTOR_SIZE * count
    if not count or end < start:
        raise WireError(f"{count} descriptors do not fit in {end - at} bytes")
    columns = DESCRIPTORS[count].unpack_from(data, begin)
    services = data[start - count : start]
    if services.translate(None, SERVICES):
        raise WireError("a service that does not exist")
    part = flags >> PART_SHIFT
    if part > Part.LAST or (part and count != 1):
        raise WireError("parts that do not exist")
    filled = min(end, start + columns[1]) if part == Part.LAST else end  # the last part may be padded
    payloads = payloads_from(data, start, filled, columns[count:])
    parcel = seq, originator, columns[:count], services, payloads, count, 0
    return PacketRun(data, at, end - at, seq, originator, 1, flags & SAFE, (part,) if part else (), parcel)


def _block_size(data: bytes, at: int, end: int) -> int:
    if at >= end or not data[at]:
        raise WireError("a packet without the block that it should have")
    return data[at]


def parse_packet(packet: bytes, heading: Heading) -> PacketRun:
    """One data packet of this ring as a run of one. Raises WireError and nothing else."""
    if len(packet) < HEADER_SIZE:
        raise WireError("shorter than a header")
    *_, flags, count, place, seq = ARRIVAL.unpack_from(packet)
    return parse_data(packet, flags, count, heading.originator(place), seq)


@lru_cache(maxsize=256)
def _shape(count: int, length: int, head: int) -> struct.Struct:
    """A packet with so many messages of one length: what is the same in packets that are alike, the seq, and the
    payloads."""
    block = _same_block(head) if head else ""
    return struct.Struct(f">{FIXED_SIZE}sQ16x{block}{DESCRIPTOR_SIZE * count}s" + f"{length}s" * count)


def _same_block(head: int) -> str:
    """What is the same in the blocks of packets that are alike, and what is not."""
    return f"{head}s" if head <= SHORT_BLOCK else f"{head - 8}s8x"


def _extend(run: PacketRun, alike: int, head: int) -> None:
    """Take the packets behind the run's only one into it, as long as they differ in nothing but numbers and bytes."""
    assert run.parcel is not None
    seq, originator, senders, services, payloads, each, _ = run.parcel
    length = len(payloads[0])
    data, at, size = run.data, run.at, run.size
    shape = _shape(each, length, head)
    if shape.size != size or any(len(payload) != length for payload in payloads):  # padded, or of several lengths
        return
    gathered = list(payloads)
    first, expected = data[at : at + FIXED_SIZE], seq + 1
    descriptors = data[at + HEADER_SIZE + head : at + HEADER_SIZE + head + DESCRIPTOR_SIZE * each]
    with memoryview(data) as view, view[at + size : at + alike * size] as rest:
        if head:
            _, _, block, *_ = shape.unpack_from(data, at)
            for fixed, its_seq, its_block, descriptor, *its_payloads in shape.iter_unpack(rest):
                if its_seq != expected or fixed != first or its_block != block or descriptor != descriptors:
                    break
                gathered += its_payloads
                expected += 1
        elif each == 1:
            for fixed, its_seq, descriptor, payload in shape.iter_unpack(rest):
                if its_seq != expected or fixed != first or descriptor != descriptors:
                    break
                gathered.append(payload)
                expected += 1
        else:
            for fields in shape.iter_unpack(rest):
                if fields[1] != expected or fields[0] != first or fields[2] != descriptors:
                    break
                gathered += fields[3:]
                expected += 1
    run.count = count = expected - seq
    run.parcel = seq, originator, tuple(senders) * count, bytes(services) * count, gathered, each, 0


@lru_cache(maxsize=256)
def _part_shape(length: int, head: int) -> struct.Struct:
    """A packet with a part of so many bytes: all that must be equal, apart from flags, seq, length and payload."""
    return struct.Struct(f">{FLAGS_AT}sB{FIXED_SIZE - FLAGS_AT - 1}sQ16x{_same_block(head)}IHB{length}s")


def _extend_parts(run: PacketRun, alike: int, head: int) -> None:
    """The same for parts of messages of one sender: they differ in which part they are, too, and the last of each
    message may be padded."""
    assert run.parcel is not None
    seq, originator, (sender,), (service,), payloads, *_ = run.parcel
    data, at, size = run.data, run.at, run.size
    shape = _part_shape(size - HEADER_SIZE - head - DESCRIPTOR_SIZE, head)
    parts, gathered, expected = list(run.parts), list(payloads), seq + 1
    before, flags, behind, _, block, *_ = shape.unpack_from(data, at)
    kept = flags & BELOW_PART
    with memoryview(data) as view, view[at + size : at + alike * size] as rest:
        for fields in shape.iter_unpack(rest):
            its_before, its_flags, its_behind, its_seq, its_block, its_sender, length, its_service, payload = fields
            part = its_flags >> PART_SHIFT
            is_sound = length == len(payload) if part in (Part.FIRST, Part.MIDDLE) else part == Part.LAST
            if its_seq != expected or its_before != before or its_behind != behind or not is_sound:
                break
            if (its_sender, its_service, its_flags & BELOW_PART, its_block) != (sender, service, kept, block):
                break
            if length > len(payload):
                break
            gathered.append(payload if length == len(payload) else payload[:length])
            parts.append(part)
            expected += 1
    run.count = count = expected - seq
    run.parts = parts
    run.parcel = seq, originator, (sender,) * count, bytes((service,)) * count, gathered, 1, 0


# Building


def build_runs(
    heading: Heading,
    loads: Sequence[Load],
    me: ProcessId,
    seq: Seq,
    token_round: int,
    timestamp: int,
    block: bytes = b"",
) -> list[PacketRun]:
    """New data packets of this process, as others would read them, numbered from `seq` on and stamped from `timestamp`
    on; with a block before the descriptors, if an enclosing engine wants one, and then all with one stamp."""
    runs: list[PacketRun] = []
    for (flags, senders, lengths, services, _), group in groupby(loads, _shape_of):
        alike = list(group)
        groups = [payloads for load in alike for payloads in load[4]]
        parts = [part for load in alike for part in load[5]]
        shape = flags, senders, lengths, services
        runs.append(_build(heading, shape, groups, parts, me, seq, token_round, timestamp, block))
        seq, timestamp = Seq(seq + len(groups)), timestamp if block else timestamp + len(groups)
    return runs


def build_raw(
    heading: Heading, packets: Sequence[RawPacket], me: ProcessId, seq: Seq, token_round: int, timestamp: int
) -> list[PacketRun]:
    """New data packets of this process whose content is known as bytes, all with one stamp. Nobody needs their messages
    here."""
    runs: list[PacketRun] = []
    for (flags, each, length), group in groupby(packets, lambda packet: (packet[0], packet[1], len(packet[2]))):
        size = HEADER_SIZE + length
        fixed = FIXED.pack(OPENING, size, heading.cluster, me, heading.ring, flags, each, heading.places[me])
        first, pieces = seq, []
        for seq, (_, _, rest) in enumerate(group, first):
            pieces += (fixed, NUMBERS.pack(seq, token_round, timestamp), rest)
        number = len(pieces) // 3
        runs.append(PacketRun(b"".join(pieces), 0, size, first, me, number, flags & SAFE, ()))
        seq = Seq(first + number)
    return runs


def build_data(
    heading: Heading,
    flags: int,
    entries: Sequence[PacketEntry],
    me: ProcessId,
    seq: Seq,
    token_round: int,
    timestamp: int,
) -> PacketRun:
    """One new data packet of this process."""
    senders, lengths, services, payloads = zip(*entries, strict=True)
    part = flags >> PART_SHIFT
    shape = flags & BELOW_PART, senders, lengths, services
    return _build(heading, shape, [payloads], [Part(part)] if part else [], me, seq, token_round, timestamp)


def _shape_of(load: Load) -> tuple[int, tuple[int, ...], tuple[int, ...], tuple[int, ...], bool]:
    return load[0], load[1], load[2], load[3], bool(load[5])


def _build(
    heading: Heading,
    shape: Shape,
    groups: Sequence[Sequence[bytes]],
    parts: Sequence[Part],
    me: ProcessId,
    seq: Seq,
    token_round: int,
    timestamp: int,
    block: bytes = b"",
) -> PacketRun:
    flags, senders, lengths, services = shape
    each, number = len(senders), len(groups)
    size = HEADER_SIZE + len(block) + DESCRIPTOR_SIZE * each + sum(lengths)
    served = bytes(services)
    descriptors = block + DESCRIPTORS[each].pack(*senders, *lengths) + served
    numbered = zip(count(seq), repeat(timestamp) if block else count(timestamp), groups, strict=False)
    cluster, ring, place = heading.cluster, heading.ring, heading.places[me]
    pack = NUMBERS.pack
    pieces: list[bytes] = []
    gathered: list[bytes] = []
    if parts:
        fixed = {
            part: FIXED.pack(OPENING, size, cluster, me, ring, flags | part << PART_SHIFT, 1, place) for part in Part
        }
        for (at, stamp, (chunk,)), part in zip(numbered, parts, strict=True):
            described = descriptors
            if len(chunk) < lengths[0]:  # the last part: padded, so that all are alike
                described = block + DESCRIPTORS[1].pack(senders[0], len(chunk)) + served
            padded = chunk.ljust(lengths[0], b"\0")
            pieces += (fixed[part], pack(at, token_round, stamp), described, padded)
            gathered.append(chunk)
    else:
        whole = FIXED.pack(OPENING, size, cluster, me, ring, flags, each, place)
        for at, stamp, payloads in numbered:
            pieces += (whole, pack(at, token_round, stamp), descriptors, *payloads)
            gathered += payloads
    parcel = seq, me, senders * number, served * number, gathered, each, 0
    return PacketRun(b"".join(pieces), 0, size, seq, me, number, flags & SAFE, parts, parcel)
