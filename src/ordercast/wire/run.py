"""Packets in a row: the unit in which data packets are read, kept, delivered and sent.

What is done with their bytes is in the kernel (`kernel.py`), what a run is in `packet_run.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, groupby, repeat

from ordercast.model.errors import WireError
from ordercast.model.ids import ProcessId, Seq
from ordercast.wire import kernel
from ordercast.wire.head import OPENING
from ordercast.wire.header import (
    ARRIVAL,
    BELOW_PART,
    DESCRIPTOR_SIZE,
    DESCRIPTORS,
    FIXED,
    HEADER_SIZE,
    LENGTH_AT,
    NUMBERS,
    PART_SHIFT,
    SAFE,
    Heading,
    PacketEntry,
)
from ordercast.wire.packet_run import Load, PacketRun, RawRun
from ordercast.wire.pure import BLOCK_NUMBER, parse_data

__all__ = [
    "Load",
    "PacketRun",
    "RawRun",
    "build_data",
    "build_raw",
    "build_runs",
    "parse_data",
    "parse_packet",
    "parse_run",
]

# Reading


def parse_run(data: bytes, start: int, size: int, heading: Heading, expected: Seq) -> PacketRun | None:
    """Data packets from `start` on, one every `size` bytes, as long as they are of this ring, sound, next in order and
    alike. None when the first is not: it is left to whoever takes more time."""
    return kernel.read_run(data, start, size, heading, expected)


def parse_packet(packet: bytes, heading: Heading) -> PacketRun:
    """One data packet of this ring as a run of one. Raises WireError and nothing else."""
    if len(packet) < HEADER_SIZE:
        raise WireError("shorter than a header")
    *_, flags, count, place, seq = ARRIVAL.unpack_from(packet)
    return parse_data(packet, flags, count, heading.originator(place), seq)


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
        joined.append((*shape, payloads, b"".join([load[5] for load in alike]), block))
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
        parts = b"".join([one.parts for one in alike])
        if is_cut:
            told = {part: FIXED.pack(*fixed, flags | part << PART_SHIFT, 1, heading.places[me]) for part in set(parts)}
            pieces[::stride] = [told[part] for part in parts]
            for index, payload in enumerate(payloads):
                if len(payload) < length:  # the last part: padded, so that all are alike
                    descriptor = descriptors[:LENGTH_AT] + len(payload).to_bytes(2, "big") + descriptors[-1:]
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
    load = flags & BELOW_PART, senders, lengths, services, payloads, bytes((part,)) if part else b"", b""
    return _build(heading, load, me, seq, token_round, timestamp)


def _build(heading: Heading, load: Load, me: ProcessId, seq: Seq, token_round: int, timestamp: int) -> PacketRun:
    flags, senders, lengths, services, payloads, parts, block = load
    each = len(senders)
    count = len(payloads) // each
    size = HEADER_SIZE + len(block) + DESCRIPTOR_SIZE * each + sum(lengths)
    served = bytes(services)
    descriptors = block + DESCRIPTORS[each].pack(*senders, *lengths) + served
    fixed = FIXED.pack(OPENING, size, heading.cluster, me, heading.ring, flags, each, heading.places[me])
    numbers = seq, token_round, timestamp, 0 if block else 1
    packets = kernel.lay(fixed, descriptors, payloads, each, parts, numbers)
    parcel = None if block and parts else (seq, me, senders * count, served * count, payloads, each, 0)
    return PacketRun(packets, 0, size, seq, me, count, flags & SAFE, parts, parcel)
