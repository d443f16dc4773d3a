"""Bodies of packets that are alike: what a ring has read of a whole run serves the network too.

A *body* is a packet without what belongs to the ring that it is on: which part of its message it is, how many messages
it has, descriptors and payloads. Packets of one visit are mostly alike: their messages have the same senders, lengths
and services. Then nothing is done per packet or message on the way from ring to ring and to the layer above.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import Final, NamedTuple, overload

from ordercast.model.effects import Parcel
from ordercast.model.errors import WireError
from ordercast.model.ids import ProcessId
from ordercast.wire.header import DESCRIPTOR_SIZE, DESCRIPTORS, SERVICES, Part

BODY_HEAD: Final = 2  # part, messages


class BodiesAt(NamedTuple):
    """Where payloads of packets are: in the data, from `at` on, every `stride` bytes those of one packet begin. If they
    have been cut out, `payloads` has them."""

    data: bytes
    at: int
    stride: int
    packets: int
    payloads: Sequence[bytes] = ()  # of all packets in a row

    def pieces(self, lengths: tuple[int, ...]) -> Sequence[bytes]:
        """Return the payloads, of these lengths in each packet."""
        if len(self.payloads) == len(lengths) * self.packets:
            return self.payloads
        return _payloads(lengths, self.stride, self.packets).unpack_from(self.data, self.at)

    def between(self, start: int, stop: int) -> BodiesAt:
        """Return some of the packets."""
        each = len(self.payloads) // self.packets
        cut = self.payloads[start * each : stop * each]
        return BodiesAt(self.data, self.at + start * self.stride, self.stride, stop - start, cut)


class AlikeBodies(Sequence[bytes]):
    """Bodies with the same descriptors, of whole messages. Their payloads stay in the bytes that brought them: in one
    place for each read."""

    __slots__ = ("_count", "_places", "head", "size", "total")

    def __init__(self, head: bytes, size: int, places: Sequence[BodiesAt], count: int) -> None:
        """`head` begins every body, `size` is that of a body, `count` how many there are in all places."""
        self.head = head
        self.size = size
        self._places = places
        self._count = count
        self.total = size * count  # bytes of all

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, place: int) -> bytes: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[bytes]: ...

    def __getitem__(self, place: int | slice) -> bytes | Sequence[bytes]:
        places = range(self._count)[place]
        if isinstance(places, int):
            (found,) = self._between(places, places + 1)
            return self.head + self._payloads_at(found)[0]
        if not places:
            return ()
        return AlikeBodies(self.head, self.size, list(self._between(places[0], places[-1] + 1)), len(places))

    def _between(self, start: int, stop: int) -> Iterator[BodiesAt]:
        for place in self._places:
            if start < place.packets and stop > 0:
                yield place.between(max(start, 0), min(stop, place.packets))
            start, stop = start - place.packets, stop - place.packets

    def _payloads_at(self, place: BodiesAt) -> Sequence[bytes]:
        return place.pieces((self.size - len(self.head),))

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
        each, count, places = self.each, self._count, self._places
        columns = DESCRIPTORS[each].unpack_from(self.head, BODY_HEAD)
        services, lengths = self.head[len(self.head) - each :], columns[each:]
        payloads: Sequence[bytes] = places[0].pieces(lengths)
        if len(places) > 1:
            payloads = [*payloads, *chain.from_iterable(place.pieces(lengths) for place in places[1:])]
        return seq, originator, columns[:each] * count, services * count, payloads, each, 0

    def behind_heads(self) -> Sequence[bytes]:
        """Return the payloads of each packet, in one piece."""
        return list(chain.from_iterable(map(self._payloads_at, self._places)))

    def joined(self) -> bytes:
        """Return all payloads, in one piece."""
        if len(self._places) == 1:
            data, at, stride, count, _ = self._places[0]
            if self.size - len(self.head) == stride:
                return data[at : at + stride * count]
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
    return AlikeBodies(head, start + size, (BodiesAt(data, at, size, count),), count)


@lru_cache(maxsize=128)
def _payloads(lengths: tuple[int, ...], stride: int, count: int) -> struct.Struct:
    """So many packets with payloads of these lengths, so far apart."""
    packet = "".join(f"{length}s" for length in lengths)
    return struct.Struct(">" + f"{packet}{stride - sum(lengths)}x" * (count - 1) + packet)


def size_of(bodies: Sequence[bytes]) -> int:
    """Return the bytes of all bodies."""
    return bodies.total if isinstance(bodies, AlikeBodies) else sum(map(len, bodies))
