"""Packets in a row: the unit in which data packets are read, kept, delivered and sent.

A run is one or more data packets with consecutive seqs, of one originator and of one shape: each carries as many
messages as the others, with the same senders, sizes and services. A loaded ring's traffic is made of long runs, which
cost as much per packet as C code takes to cut them; a packet that is like no other is a run of one.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain, groupby, repeat
from typing import NamedTuple

from ordercast.model.effects import Burst, Parcel
from ordercast.model.errors import WireError
from ordercast.model.ids import ProcessId, Seq
from ordercast.wire.head import OPENING
from ordercast.wire.header import (
    ARRIVAL,
    BELOW_PART,
    BLOCK_SIZES,
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
    TIMESTAMP_AT,
    Heading,
    PacketEntry,
    Part,
    payloads_from,
)

BLOCK_NUMBER = struct.Struct(">Q")  # ends a long block
STAMPS_AT = FIXED_SIZE + 8  # token round and timestamp stand here, behind the seq
STAMPS_SIZE = HEADER_SIZE - STAMPS_AT

# What is to be put into packets of one shape: the shape, the payloads of all packets in a row, which part of its
# message each is (nothing, if they are whole messages), and the block before the descriptors, if an enclosing engine
# wants one. The last part of a message may be shorter than the shape says.
Load = tuple[int, tuple[int, ...], tuple[int, ...], tuple[int, ...], Sequence[bytes], Sequence[Part], bytes]


class RawRun(NamedTuple):
    """Packets that are alike, whose content is known as bytes."""

    flags: int
    each: int  # messages in a packet
    block: bytes  # before the descriptors, without the number that ends it, if it ends with one
    numbers: Sequence[int]  # that end the blocks; none: they end with none
    descriptors: bytes
    payloads: Sequence[bytes | memoryview]  # of each packet in one piece, all of one length; a last part may be shorter
    parts: Sequence[Part] = ()  # which part of its message each is; nothing: whole messages

    @property
    def length(self) -> int:
        """Bytes of payloads in a packet."""
        return int.from_bytes(self.descriptors[4:6], "big") if self.parts else len(self.payloads[0])

    @property
    def size(self) -> int:
        """Bytes behind the headers."""
        each = len(self.block) + 8 * bool(self.numbers) + len(self.descriptors) + self.length
        return each * len(self.payloads)

    @property
    def shape(self) -> tuple[int, int, bytes, bool, bytes, int, bool]:
        """What is the same in runs that can be one."""
        is_numbered, is_cut = bool(self.numbers), bool(self.parts)
        return self.flags, self.each, self.block, is_numbered, self.descriptors, self.length, is_cut

    def between(self, start: int, stop: int) -> RawRun:
        """Return some of the packets."""
        cut = slice(start, stop)
        return self._replace(numbers=self.numbers[cut], payloads=self.payloads[cut], parts=self.parts[cut])


class PacketRun:
    __slots__ = ("at", "count", "data", "is_safe", "last", "originator", "parcel", "parts", "seq", "size")

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
        self.last = Seq(seq + count - 1)  # of the last packet
        self.is_safe = is_safe  # safe delivery is asked for
        self.parts = parts  # which part of a message each packet has; nothing: whole messages
        # The messages; None once delivered, and of a recovered packet, which is not delivered. Of packets with a block
        # in a row, or of a part, they stay in the bytes until an enclosing engine wants them.
        self.parcel = parcel

    def grow(self, count: int) -> None:
        """Take the packets behind the first into the run, so that it has so many."""
        self.count = count
        self.last = Seq(self.seq + count - 1)

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

    def timestamps(self, first: int, last: int) -> tuple[int, ...]:
        """Return those of some of the packets."""
        at, count = self.at + (first - self.seq) * self.size, last + 1 - first
        stamps: tuple[int, ...] = _stamps_shape(self.size, count).unpack_from(self.data, at)
        return stamps

    @property
    def flags(self) -> int:
        """The flags of the first packet; all others have the same, apart from the part."""
        return self.data[self.at + FLAGS_AT]

    def block(self, seq: int) -> bytes:
        """Return what an enclosing engine has put before the descriptors of one packet, its size first."""
        at = self.at + (seq - self.seq) * self.size + HEADER_SIZE
        return self.data[at : at + BLOCK_SIZES[self.data[at]]] if self.flags & EXTENDED else b""

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
    if length == size and not flags & RECOVERED:
        alike = (len(data) - start) // size
        if alike > 1:
            head = BLOCK_SIZES[data[start + HEADER_SIZE]] if flags & EXTENDED else 0
            if run.parts:
                _extend_parts(run, alike, head)
            elif head:
                _extend_bare(run, alike, head)
            else:
                _extend(run, alike)
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
    is_bare = part and flags & EXTENDED
    parcel = None if is_bare else (seq, originator, columns[:count], services, payloads, count, 0)
    return PacketRun(data, at, end - at, seq, originator, 1, flags & SAFE, (part,) if part else (), parcel)


def _block_size(data: bytes, at: int, end: int) -> int:
    if at >= end or not data[at]:
        raise WireError("a packet without the block that it should have")
    return BLOCK_SIZES[data[at]]


def parse_packet(packet: bytes, heading: Heading) -> PacketRun:
    """One data packet of this ring as a run of one. Raises WireError and nothing else."""
    if len(packet) < HEADER_SIZE:
        raise WireError("shorter than a header")
    *_, flags, count, place, seq = ARRIVAL.unpack_from(packet)
    return parse_data(packet, flags, count, heading.originator(place), seq)


@lru_cache(maxsize=512)
def _stamps_shape(size: int, count: int) -> struct.Struct:
    """So many packets of one size, of which only the timestamps count."""
    return struct.Struct(">" + f"{TIMESTAMP_AT}xQ{size - HEADER_SIZE}x" * count)


@lru_cache(maxsize=512)
def _shape(each: int, length: int, count: int) -> struct.Struct:
    """So many packets with so many messages of one length. Each has what is the same in packets that are alike, the
    seq, the descriptors, which are the same too, and the payloads."""
    packet = f"{FIXED_SIZE}sQ{STAMPS_SIZE}x{DESCRIPTOR_SIZE * each}s" + f"{length}s" * each
    return struct.Struct(">" + packet * count)


@lru_cache(maxsize=512)
def _bare_shape(each: int, size: int, count: int, head: int) -> struct.Struct:
    """So many packets of one size with a block, without their payloads. What is the same in those that are alike stands
    in one piece behind the seq, in two around the number that ends a long block: they were sent in one visit."""
    descriptors = DESCRIPTOR_SIZE * each
    same = f"{STAMPS_SIZE + head + descriptors}s"
    if head > SHORT_BLOCK:
        same = f"{_same_in_block(head)}s{BLOCK_NUMBER.size}x{descriptors}s"
    rest = size - HEADER_SIZE - head - descriptors
    return struct.Struct(">" + f"{FIXED_SIZE}sQ{same}{rest}x" * count)


def _block_shape(head: int) -> str:
    """What is the same behind the seqs of packets that are alike, up to the descriptors, and what is not."""
    if not head:
        return f"{STAMPS_SIZE}x"
    same = _same_in_block(head)
    return f"{same}s{head + STAMPS_SIZE - same}x"


def _same_in_block(head: int) -> int:
    """Return the bytes from the token round on that are the same in packets with a block that are alike."""
    return STAMPS_SIZE + (head if head <= SHORT_BLOCK else head - BLOCK_NUMBER.size)


def _extend(run: PacketRun, alike: int) -> None:
    """Take the packets behind the run's only one into it, as long as they differ in nothing but numbers and bytes."""
    assert run.parcel is not None
    seq, originator, senders, services, payloads, each, _ = run.parcel
    lengths = set(map(len, payloads))
    if len(lengths) > 1:
        return
    fields = _shape(each, lengths.pop(), alike - 1).unpack_from(run.data, run.at + run.size)
    begin, stride = run.at + HEADER_SIZE, 3 + each
    descriptors = run.data[begin : begin + DESCRIPTOR_SIZE * each]
    count = 1 + _alike(run, fields, stride, [descriptors], alike)
    run.grow(count)
    gathered = [*payloads, *fields[stride - 1 : (count - 1) * stride : stride]] if each == 1 else [*payloads]
    if each > 1:
        found = list(fields[: (count - 1) * stride])
        for width in range(stride, each, -1):  # of each packet only the payloads stay
            del found[::width]
        gathered += found
    run.parcel = seq, originator, tuple(senders) * count, bytes(services) * count, gathered, each, 0


def _extend_bare(run: PacketRun, alike: int, head: int) -> None:
    """The same for packets with a block. Their messages stay where they are until they are passed up, which is two
    rotations later: cut out now, they would take as much memory again for as long."""
    data, at, each = run.data, run.at, run.data[run.at + FLAGS_AT + 1]
    begin, end = at + HEADER_SIZE + head, at + HEADER_SIZE + head + DESCRIPTOR_SIZE * each
    behind = [data[at + STAMPS_AT : end]]
    if head > SHORT_BLOCK:
        behind = [data[at + STAMPS_AT : begin - BLOCK_NUMBER.size], data[begin:end]]
    fields = _bare_shape(each, run.size, alike - 1, head).unpack_from(data, at + run.size)
    run.grow(1 + _alike(run, fields, 2 + len(behind), behind, alike))
    run.parcel = None


def _alike(run: PacketRun, fields: tuple[object, ...], stride: int, behind: list[bytes], alike: int) -> int:
    """Return how many of the packets behind the run's only one are like it."""
    more, seq = alike - 1, run.seq
    count = min(
        _matching(fields[1::stride], tuple(range(seq + 1, seq + alike))),
        _matching(fields[::stride], (run.data[run.at : run.at + FIXED_SIZE],) * more),
        _matching(fields[2::stride], (behind[0],) * more),
    )
    return count if len(behind) == 1 else min(count, _matching(fields[3::stride], (behind[1],) * more))


def _same_block(run: PacketRun, head: int) -> bytes:
    at = run.at + STAMPS_AT
    return run.data[at : at + _same_in_block(head)]


def _matching(found: tuple[object, ...], expected: tuple[object, ...]) -> int:
    """Return how many of these, from the first on, are the expected ones."""
    if found == expected:
        return len(found)
    return next(index for index, pair in enumerate(zip(found, expected, strict=True)) if pair[0] != pair[1])


@lru_cache(maxsize=512)
def _part_shape(length: int, count: int, head: int) -> struct.Struct:
    """So many packets with a part of so many bytes each: all that must be equal, apart from flags, seq, length and
    payload; behind a block the payload is left out."""
    payload = f"{length}x" if head else f"{length}s"
    packet = f"{FLAGS_AT}sB{FIXED_SIZE - FLAGS_AT - 1}sQ{_block_shape(head)}IHB{payload}"
    return struct.Struct(">" + packet * count)


def _extend_parts(run: PacketRun, alike: int, head: int) -> None:
    """The same for parts of messages of one sender: they differ in which part they are, too, and the last of each
    message may be padded."""
    seq, originator, size = run.seq, run.originator, run.size
    room, more, stride = size - HEADER_SIZE - head - DESCRIPTOR_SIZE, alike - 1, 8
    fields = _part_shape(room, alike, head).unpack_from(run.data, run.at)
    at = 5 if head else 4  # sender, length and service stand here, and the payload if there is no block
    before, flags, behind, sender, service = fields[0], fields[1], fields[2], fields[at], fields[at + 2]
    later = fields[stride:]
    kinds, lengths = later[1::stride], later[at + 1 :: stride]
    sound = {pair: _is_sound_part(*pair, flags & BELOW_PART, room) for pair in set(zip(kinds, lengths, strict=True))}
    count = 1 + min(
        _matching(later[3::stride], tuple(range(seq + 1, seq + alike))),
        _matching(later[::stride], (before,) * more),
        _matching(later[2::stride], (behind,) * more),
        _matching(later[4::stride], (_same_block(run, head),) * more) if head else more,
        _matching(later[at::stride], (sender,) * more),
        _matching(later[at + 2 :: stride], (service,) * more),
        _matching(tuple(map(sound.__getitem__, zip(kinds, lengths, strict=True))), (True,) * more),
    )
    run.grow(count)
    run.parts = [*run.parts, *(kind >> PART_SHIFT for kind in kinds[: count - 1])]
    if head:
        return
    gathered = list(fields[at + 3 : count * stride : stride])
    for index, length in enumerate(fields[at + 1 : count * stride : stride]):
        if length < room:
            gathered[index] = gathered[index][:length]
    run.parcel = seq, originator, (sender,) * count, bytes((service,)) * count, gathered, 1, 0


def _is_sound_part(flags: int, length: int, kept: int, room: int) -> bool:
    """Tell whether a packet with these flags may be one of a run whose packets share the flags `kept`."""
    part = flags >> PART_SHIFT
    if flags & BELOW_PART != kept or length > room:
        return False
    return part == Part.LAST or (part in (Part.FIRST, Part.MIDDLE) and length == room)


# Building


def build_runs(
    heading: Heading,
    loads: Sequence[Load],
    me: ProcessId,
    seq: Seq,
    token_round: int,
    timestamp: int,
) -> list[PacketRun]:
    """New data packets of this process, as others would read them, numbered from `seq` on and stamped from `timestamp`
    on; those with a block all with one stamp."""
    runs: list[PacketRun] = []
    for load in _joined(loads):
        run = _build(heading, load, me, seq, token_round, timestamp)
        runs.append(run)
        seq, timestamp = Seq(seq + run.count), timestamp if load[6] else timestamp + run.count
    return runs


def _joined(loads: Sequence[Load]) -> Sequence[Load]:
    """Return the loads, with those in a row that have one shape as one."""
    if len(loads) < 2:
        return loads
    joined: list[Load] = []
    for (*shape, _, block), group in groupby(loads, lambda load: (*load[:4], bool(load[5]), load[6])):
        alike = list(group)
        payloads = [payload for load in alike for payload in load[4]]
        joined.append((*shape, payloads, [part for load in alike for part in load[5]], block))
    return joined


def build_raw(
    heading: Heading, raw: Sequence[RawRun], me: ProcessId, seq: Seq, token_round: int, timestamp: int
) -> list[PacketRun]:
    """New data packets of this process whose content is known as bytes, all with one stamp. Nobody needs their messages
    here."""
    runs: list[PacketRun] = []
    for (flags, each, block, is_numbered, descriptors, length, is_cut), group in groupby(raw, lambda one: one.shape):
        alike = list(group)
        payloads = list(chain.from_iterable(one.payloads for one in alike))
        count = len(payloads)
        size = HEADER_SIZE + len(block) + 8 * is_numbered + len(descriptors) + length
        fixed = OPENING, size, heading.cluster, me, heading.ring
        head = [block, b"", descriptors] if is_numbered else [block + descriptors]
        pieces = [FIXED.pack(*fixed, flags, each, heading.places[me]), b"", *head, b""] * count
        stride = len(head) + 3
        pieces[1::stride] = map(NUMBERS.pack, range(seq, seq + count), repeat(token_round), repeat(timestamp))
        if is_numbered:
            pieces[3::stride] = map(BLOCK_NUMBER.pack, chain.from_iterable(one.numbers for one in alike))
        pieces[stride - 1 :: stride] = payloads
        parts = list(chain.from_iterable(one.parts for one in alike))
        if is_cut:
            told = {part: FIXED.pack(*fixed, flags | part << PART_SHIFT, 1, heading.places[me]) for part in Part}
            pieces[::stride] = [told[part] for part in parts]
            for index, payload in enumerate(payloads):
                if len(payload) < length:  # the last part: padded, so that all are alike
                    descriptor = descriptors[:4] + len(payload).to_bytes(2, "big") + descriptors[6:]
                    pieces[index * stride + stride - 2] = descriptor if is_numbered else block + descriptor
                    pieces[index * stride + stride - 1] = bytes(payload).ljust(length, b"\0")
        runs.append(PacketRun(b"".join(pieces), 0, size, seq, me, count, flags & SAFE, parts))
        seq = Seq(seq + count)
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
    load = flags & BELOW_PART, senders, lengths, services, payloads, [Part(part)] if part else (), b""
    return _build(heading, load, me, seq, token_round, timestamp)


def _build(heading: Heading, load: Load, me: ProcessId, seq: Seq, token_round: int, timestamp: int) -> PacketRun:
    flags, senders, lengths, services, payloads, parts, block = load
    each = len(senders)
    count = len(payloads) // each
    size = HEADER_SIZE + len(block) + DESCRIPTOR_SIZE * each + sum(lengths)
    served = bytes(services)
    descriptors = block + DESCRIPTORS[each].pack(*senders, *lengths) + served
    fixed = OPENING, size, heading.cluster, me, heading.ring
    place = heading.places[me]
    stride = 3 + each  # pieces of a packet: all are laid by C code
    pieces = [FIXED.pack(*fixed, flags, each, place), b"", descriptors, *payloads[:each]] * count
    stamps = repeat(timestamp) if block else range(timestamp, timestamp + count)
    pieces[1::stride] = map(NUMBERS.pack, range(seq, seq + count), repeat(token_round), stamps)
    if count > 1:
        for index in range(each):
            pieces[3 + index :: stride] = payloads[index::each]
    if parts:
        told = {part: FIXED.pack(*fixed, flags | part << PART_SHIFT, 1, place) for part in Part}
        pieces[::stride] = [told[part] for part in parts]
        for index, payload in enumerate(payloads):
            if len(payload) < lengths[0]:  # the last part: padded, so that all are alike
                pieces[index * stride + 2] = block + DESCRIPTORS[1].pack(senders[0], len(payload)) + served
                pieces[index * stride + 3] = payload.ljust(lengths[0], b"\0")
    parcel = None if block and parts else (seq, me, senders * count, served * count, payloads, each, 0)
    return PacketRun(b"".join(pieces), 0, size, seq, me, count, flags & SAFE, parts, parcel)
