"""What processes of a tree tell each other on links, as values and as bytes. A link carries blocks in order.

    DATA      kind 1, birth 4, entry 8, channel number 4, rank: count 1, 4 each; then the cargo;
              earlier ones: count 1, each: source number 8, rank: as many numbers as that of the block, 4 each
    SOURCE    kind 1, birth 4, entry 8; then the cargo
    cargo     originator 8, source number 8, epoch 4 (first bit: sent again), sender 4, service 1, part 1,
              groups: count 1, 4 each; messages: count 2, length 4 each; payloads
    CLOSE     kind 1, birth 4
    DONE      kind 1, birth 4, count 8       all blocks up to this one are held by the child and those below it
    SAFE      kind 1, birth 4, count 8       all blocks up to this one are stable
    ORDERED   kind 1, birth 4, entries: count 2; each: source number 8, channel number 4, rank: count 1, 4 each
    REFUSED, KNOWN, STABLE   kind 1, birth 4, source numbers: count 2, 8 each

A group is a place among the sorted names of the groups of its tree. One decoder, one kind of error: WireError.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from enum import IntEnum
from itertools import pairwise
from typing import Final, NamedTuple

from ordercast.model.errors import WireError
from ordercast.model.ids import AGAIN_SLOT, ProcessId
from ordercast.model.service import Service
from ordercast.wire.header import Part
from ordercast.wire.reader import ByteReader

RANK_MAX: Final = 255  # processes between a root and a leaf
GROUPS_MAX: Final = 255  # of one message
EARLIER_MAX: Final = 32  # cargoes of a source that have entered somewhere before the source knows their places
PAYLOADS_MAX: Final = AGAIN_SLOT - 1
SOURCE_BITS: Final = 35  # of the number in a position: source numbers are below, the epoch is above
BIRTH_MAX: Final = (1 << 28) - 1
AGAIN: Final = 1 << 31  # beside the epoch of what is sent again

Rank = tuple[int, ...]
GroupPlaces = tuple[int, ...]  # places among the sorted groups of the tree, ascending
Channel = tuple[ProcessId, GroupPlaces]  # of one birth: the entry, and where its messages go

_HEAD: Final = struct.Struct(">BI")
_ENTRY: Final = struct.Struct(">Q")
_CARGO: Final = struct.Struct(">QQIIBBB")
_COUNT: Final = struct.Struct(">H")
_NUMBER: Final = struct.Struct(">Q")
_CHANNEL: Final = struct.Struct(">I")
_ORDERED: Final = struct.Struct(">QI")


class BlockKind(IntEnum):
    """Numbers travel on the wire: append only."""

    DATA = 1
    SOURCE = 2
    CLOSE = 3
    DONE = 4
    SAFE = 5
    ORDERED = 6
    REFUSED = 7
    KNOWN = 8
    STABLE = 9


NUMBERS: Final = (BlockKind.REFUSED, BlockKind.KNOWN, BlockKind.STABLE)
OF_STABILITY: Final = frozenset({BlockKind.DONE, BlockKind.SAFE, BlockKind.KNOWN, BlockKind.STABLE})


class Cargo(NamedTuple):
    """Messages in a row of one sender, as their source sends them. The same all the way, and when they are sent
    again."""

    originator: ProcessId
    source: int  # rises with every cargo of a process's life
    epoch: int  # the opening that was in effect at the source: by it the receivers are chosen
    sender: int
    service: int
    part: int  # what its payload is of a large message
    groups: GroupPlaces
    payloads: tuple[bytes, ...]
    is_again: bool = False  # it may have been ordered in a configuration that has ended, where its source was cut off

    @property
    def size(self) -> int:
        return sum(map(len, self.payloads))


class Ordered(NamedTuple):
    """A cargo with its place."""

    birth: int
    entry: ProcessId
    number: int  # in its channel
    rank: Rank
    cargo: Cargo
    earlier: bytes = b""  # those of its source that entered before it here, as far as the source may not know

    @property
    def channel(self) -> Channel:
        return self.entry, self.cargo.groups

    @property
    def key(self) -> tuple[int, ProcessId, GroupPlaces, int]:
        """Names it within a configuration."""
        return self.birth, self.entry, self.cargo.groups, self.number


class Offer(NamedTuple):
    """A cargo on its way to the entry."""

    birth: int
    entry: ProcessId
    cargo: Cargo


class GivenPlace(NamedTuple):
    """Where an entry has put a cargo of a source."""

    source: int
    number: int
    rank: Rank


class Close(NamedTuple):
    """Nothing of this birth follows."""

    birth: int


class Count(NamedTuple):
    """How far an edge is, in one of two ways."""

    kind: BlockKind
    birth: int
    through: int


class GivenPlaces(NamedTuple):
    birth: int
    places: tuple[GivenPlace, ...]


class Numbers(NamedTuple):
    """Cargoes of one source that are refused, known or stable."""

    kind: BlockKind
    birth: int
    sources: tuple[int, ...]


TreeBlock = Ordered | Offer | Close | Count | GivenPlaces | Numbers


def encode_cargo(cargo: Cargo) -> bytes:
    originator, source, epoch, sender, service, part, groups, payloads, is_again = cargo
    head = _CARGO.pack(originator, source, epoch | is_again * AGAIN, sender, service, part, len(groups))
    lengths = struct.pack(f">{len(groups)}IH{len(payloads)}I", *groups, len(payloads), *map(len, payloads))
    return head + lengths + b"".join(payloads)


def read_cargo(reader: ByteReader) -> Cargo:
    originator, source, epoch, sender, service, part, count = reader.unpack(_CARGO)
    groups = reader.numbers(count, "I")
    is_again, epoch = bool(epoch & AGAIN), epoch & ~AGAIN
    if service not in _SERVICES or part not in _PARTS or not 0 < source < 1 << SOURCE_BITS or epoch > BIRTH_MAX:
        raise WireError("a cargo that cannot be")
    if any(one >= other for one, other in pairwise(groups)):
        raise WireError("groups that do not ascend")
    (messages,) = reader.unpack(_COUNT)
    if not 0 < messages <= PAYLOADS_MAX or messages * 4 > reader.left:
        raise WireError("a cargo without messages, or with more than it may have")
    lengths = reader.numbers(messages, "I")
    payloads = reader.cut(lengths)
    return Cargo(ProcessId(originator), source, epoch, sender, service, part, groups, payloads, is_again)


_SERVICES = frozenset(map(int, Service))
_PARTS = frozenset(map(int, Part))


def encode_rank(rank: Rank) -> bytes:
    return struct.pack(f">B{len(rank)}I", len(rank), *rank)


def read_rank(reader: ByteReader) -> Rank:
    return reader.numbers(reader.byte(), "I")


def encode_data(ordered: Ordered) -> bytes:
    birth, entry, number, rank, cargo, earlier = ordered
    head = _HEAD.pack(BlockKind.DATA, birth) + _ENTRY.pack(entry) + _CHANNEL.pack(number) + encode_rank(rank)
    return head + encode_cargo(cargo) + encode_earlier(earlier, rank)


def encode_earlier(earlier: bytes, rank: Rank) -> bytes:
    """`rank`: of the one that names them."""
    return bytes((len(earlier) // earlier_size(rank),)) + earlier


def read_earlier(reader: ByteReader, rank: Rank) -> bytes:
    return reader.take(reader.byte() * earlier_size(rank))


def earlier_size(rank: Rank) -> int:
    return _NUMBER.size + 4 * len(rank)


def earlier_of(source: int, rank: Rank) -> bytes:
    return struct.pack(f">Q{len(rank)}I", source, *rank)


def earlier_places(earlier: bytes, rank: Rank) -> dict[int, Rank]:
    """Return source numbers and places that one with this rank names."""
    return {source: tuple(place) for source, *place in struct.iter_unpack(f">Q{len(rank)}I", earlier)}


def encode_offer(offer: Offer) -> bytes:
    return _HEAD.pack(BlockKind.SOURCE, offer.birth) + _ENTRY.pack(offer.entry) + encode_cargo(offer.cargo)


def encode_close(birth: int) -> bytes:
    return _HEAD.pack(BlockKind.CLOSE, birth)


def encode_count(kind: BlockKind, birth: int, count: int) -> bytes:
    return _HEAD.pack(kind, birth) + _NUMBER.pack(count)


def encode_places(birth: int, places: Sequence[GivenPlace]) -> bytes:
    head = _HEAD.pack(BlockKind.ORDERED, birth) + _COUNT.pack(len(places))
    return head + b"".join(_ORDERED.pack(one.source, one.number) + encode_rank(one.rank) for one in places)


def encode_numbers(kind: BlockKind, birth: int, sources: Sequence[int]) -> bytes:
    return _HEAD.pack(kind, birth) + struct.pack(f">H{len(sources)}Q", len(sources), *sources)


def decode_block(data: bytes) -> TreeBlock:
    reader = ByteReader(data, 0, "the block")
    kind, birth = reader.unpack(_HEAD)
    if not 0 < birth <= BIRTH_MAX:
        raise WireError("a birth beyond all bounds")
    block = _read(kind, birth, reader)
    reader.end()
    return block


def _read_place(reader: ByteReader) -> GivenPlace:
    source, number = reader.unpack(_ORDERED)
    return GivenPlace(source, number, read_rank(reader))


def _read(kind: int, birth: int, reader: ByteReader) -> TreeBlock:
    if kind == BlockKind.DATA:
        (entry,), (number,) = reader.unpack(_ENTRY), reader.unpack(_CHANNEL)
        rank, cargo = read_rank(reader), read_cargo(reader)
        return Ordered(birth, ProcessId(entry), number, rank, cargo, read_earlier(reader, rank))
    if kind == BlockKind.SOURCE:
        (entry,) = reader.unpack(_ENTRY)
        return Offer(birth, ProcessId(entry), read_cargo(reader))
    if kind == BlockKind.CLOSE:
        return Close(birth)
    if kind in (BlockKind.DONE, BlockKind.SAFE):
        (count,) = reader.unpack(_NUMBER)
        return Count(BlockKind(kind), birth, count)
    if kind == BlockKind.ORDERED:
        (count,) = reader.unpack(_COUNT)
        return GivenPlaces(birth, tuple(_read_place(reader) for _ in range(count)))
    if kind in NUMBERS:
        (count,) = reader.unpack(_COUNT)
        return Numbers(BlockKind(kind), birth, reader.numbers(count, "Q"))
    raise WireError(f"there are no blocks of kind {kind}")
