"""Bodies of packets that are alike: what a ring has read of a whole run serves the network too.

A *body* is a packet without what belongs to the ring that it is on: which part of its message it is, how many messages
it has, descriptors and payloads. Packets of one visit are mostly alike: their messages have the same senders, lengths
and services. Then nothing is done per packet or message on the way from ring to ring and to the layer above.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, overload

from ordercast.model.effects import Parcel
from ordercast.model.errors import WireError
from ordercast.model.ids import ProcessId
from ordercast.wire.header import DESCRIPTOR_SIZE, DESCRIPTORS, SERVICES, Part

BODY_HEAD: Final = 2  # part, messages


class AlikeBodies(Sequence[bytes]):
    """Bodies with the same descriptors, of whole messages. Their payloads stay in the bytes that brought them."""

    __slots__ = ("_at", "_count", "_data", "_stride", "head", "size")

    def __init__(self, head: bytes, size: int, data: bytes, at: int, stride: int, count: int) -> None:
        """`head` begins every body, `size` is that of a body; in the data, from `at` on, every `stride` bytes the
        payloads of one packet begin."""
        self.head = head
        self.size = size
        self._data = data
        self._at = at
        self._stride = stride
        self._count = count

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, place: int) -> bytes: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[bytes]: ...

    def __getitem__(self, place: int | slice) -> bytes | Sequence[bytes]:
        places = range(self._count)[place]
        if isinstance(places, int):
            at = self._at + places * self._stride
            return self.head + self._data[at : at + self.size - len(self.head)]
        if not places:
            return ()
        at = self._at + places[0] * self._stride
        return AlikeBodies(self.head, self.size, self._data, at, self._stride, len(places))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    @property
    def each(self) -> int:
        """Messages in each packet."""
        return self.head[1]

    def parcel(self, seq: int, originator: ProcessId) -> Parcel:
        """Return the messages, of packets that are numbered in a row from here on."""
        each, count = self.each, self._count
        columns = DESCRIPTORS[each].unpack_from(self.head, BODY_HEAD)
        services = self.head[len(self.head) - each :]
        payloads = _payloads(columns[each:], self._stride, count).unpack_from(self._data, self._at)
        return seq, originator, columns[:each] * count, services * count, payloads, each, 0

    def behind_heads(self) -> tuple[bytes, ...]:
        """Return the payloads of each packet, in one piece."""
        lengths = (self.size - len(self.head),)
        return _payloads(lengths, self._stride, self._count).unpack_from(self._data, self._at)

    def joined(self) -> bytes:
        """Return all payloads, in one piece."""
        length = self.size - len(self.head)
        if length == self._stride:
            return self._data[self._at : self._at + length * self._count]
        return b"".join(self.behind_heads())


def bodies_from(head: bytes, data: bytes, at: int, count: int) -> AlikeBodies:
    """Return so many bodies with one head, whose payloads are all that stands in the data from here on; WireError if
    they cannot be."""
    each = head[1]
    start = BODY_HEAD + DESCRIPTOR_SIZE * each
    if head[0] != Part.WHOLE or not each or len(head) != start:
        raise WireError("a head of bodies that cannot be")
    size = sum(DESCRIPTORS[each].unpack_from(head, BODY_HEAD)[each:])
    if head[start - each :].translate(None, SERVICES) or len(data) - at != size * count:
        raise WireError("bodies that their head does not fit")
    return AlikeBodies(head, start + size, data, at, size, count)


@lru_cache(maxsize=128)
def _payloads(lengths: tuple[int, ...], stride: int, count: int) -> struct.Struct:
    """So many packets with payloads of these lengths, so far apart."""
    packet = "".join(f"{length}s" for length in lengths)
    return struct.Struct(">" + f"{packet}{stride - sum(lengths)}x" * (count - 1) + packet)


def size_of(bodies: Sequence[bytes]) -> int:
    """Return the bytes of all bodies."""
    return bodies.size * len(bodies) if isinstance(bodies, AlikeBodies) else sum(map(len, bodies))
