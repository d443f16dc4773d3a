"""A run of packets as this process holds it, and what a run is built from.

A run is one or more data packets with consecutive seqs, of one originator and of one shape: each carries as many
messages as the others, with the same senders, sizes and services. A loaded ring's traffic is made of long runs, which
cost as much per packet as C code takes to cut them; a packet that is like no other is a run of one.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from ordercast.model.effects import Burst, Parcel
from ordercast.model.ids import ProcessId, Seq
from ordercast.wire.header import BLOCK_SIZES, EXTENDED, FLAGS_AT, HEADER_SIZE, LENGTH_AT, TIMESTAMP, TIMESTAMP_AT, Part

# What is to be put into packets of one shape: the shape, the payloads of all packets in a row, which part of its
# message each is (nothing, if they are whole messages), and the block before the descriptors, if an enclosing engine
# wants one. The last part of a message may be shorter than the shape says.
Load = tuple[int, tuple[int, ...], tuple[int, ...], tuple[int, ...], Sequence[bytes], bytes, bytes]


class RawRun(NamedTuple):
    """Packets that are alike, whose content is known as bytes."""

    flags: int
    each: int  # messages in a packet
    block: bytes  # before the descriptors, without the number that ends it, if it ends with one
    numbers: Sequence[int]  # that end the blocks; none: they end with none
    descriptors: bytes
    payloads: Sequence[bytes | memoryview]  # of each packet in one piece, all of one length; a last part may be shorter
    parts: bytes = b""  # which part of its message each is; nothing: whole messages

    @property
    def length(self) -> int:
        """Bytes of payloads in a packet."""
        return int.from_bytes(self.descriptors[LENGTH_AT:-1], "big") if self.parts else len(self.payloads[0])

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
        parts: bytes = b"",
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

    def latest(self) -> int:
        """Return the highest timestamp; packets with a block that are one run were sent in one visit, and have one."""
        if self.data[self.at + FLAGS_AT] & EXTENDED:
            return int(TIMESTAMP.unpack_from(self.data, self.at)[0])
        return max(self.timestamps(self.seq, self.last))

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


@lru_cache(maxsize=512)
def _stamps_shape(size: int, count: int) -> struct.Struct:
    """So many packets of one size, of which only the timestamps count."""
    return struct.Struct(">" + f"{TIMESTAMP_AT}xQ{size - HEADER_SIZE}x" * count)
