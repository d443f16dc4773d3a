"""Items as packets of a ring: what stands in the block before the descriptors, and how control takes packets.

A native packet has a block of 1 byte, which may name the one bucket of the groups that want it, or of 9 with a mask of
several buckets. A packet that a gateway
carries has a block of 27 or 35: the tag of its logical ring, its tick, the place of its originator and its seq, as they
were at first, and the rest of it unchanged. Natives leave room for that, but for those with a single large message.
These, packets that count under a condition (`since`, `half`), and all while a merge brings members who may not know
every ring, travel as items of control, whole stretches in one, which take as many packets as needed.

A *body* is a packet without what belongs to the ring that it is on: which part of its message it is, how many messages
it has, and all behind the block.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain, pairwise
from typing import Final, NamedTuple, cast

from ordercast.model.effects import Parcel
from ordercast.model.errors import WireError
from ordercast.model.ids import ConfigurationId, Seq
from ordercast.model.service import Service
from ordercast.order.gateways.bodies import BODY_HEAD, AlikeBodies, BodiesAt
from ordercast.order.gateways.codec import Item, decode_item, encode_item
from ordercast.order.gateways.items import EVERYTHING, Carried, InterestItem, Local, Processes, Stretch
from ordercast.order.gateways.names import RingNames, ShortName
from ordercast.order.ring.two_queues import BLOCK_SIZE_MAX, CONTROL_SENDER, NATIVE_BLOCK, Freight
from ordercast.order.stamped.lanes import NO_STAMP, Stamp
from ordercast.wire.codec import NUMBER_MAX
from ordercast.wire.header import (
    BLOCK_SIZES,
    DESCRIPTOR_SIZE,
    DESCRIPTORS,
    EXTENDED,
    FLAGS_AT,
    HEADER_SIZE,
    LONE_BYTE,
    PART_SHIFT,
    SAFE,
    SERVICES,
    SHORT_BLOCK,
    TIMESTAMP_AT,
    Part,
    parts_in_a_row,
    payloads_from,
)
from ordercast.wire.run import PacketRun, RawRun

_MASK = struct.Struct(">Q")
_ORIGIN = struct.Struct(">QQHQ")  # tag of the ring, tick, place of the originator, seq
_SIZE = struct.Struct(">B")
_NUMBER = struct.Struct(">Q")
MASKED: Final = _SIZE.size + _MASK.size
CARRIED: Final = _SIZE.size + _ORIGIN.size
CARRIED_MASKED: Final = CARRIED + _MASK.size
assert (len(NATIVE_BLOCK), MASKED, CARRIED, CARRIED_MASKED) == (1, SHORT_BLOCK, 27, BLOCK_SIZE_MAX)


class PacketOrigin(NamedTuple):
    """Where a packet that a gateway carries was numbered first."""

    tag: int  # of its logical ring
    tick: int
    place: int  # of its originator among the members of that ring
    seq: Seq


class Block(NamedTuple):
    """What stands before the descriptors."""

    origin: PacketOrigin | None  # None: the packet is a native of the ring that it is on
    mask: int


def block_from(data: bytes) -> Block:
    """Return what a block says; WireError if there is no such block."""
    size = len(data)
    if size == len(NATIVE_BLOCK):
        return Block(None, _mask_in(data[0]))
    if size not in (MASKED, CARRIED, CARRIED_MASKED):
        raise WireError(f"a block of {size} bytes does not exist")
    mask = _MASK.unpack_from(data, 1)[0] if size in (MASKED, CARRIED_MASKED) else EVERYTHING
    if size == MASKED:
        return Block(None, mask)
    tag, tick, place, seq = _ORIGIN.unpack_from(data, size - _ORIGIN.size)
    if tick > NUMBER_MAX:
        raise WireError("a number beyond all bounds")
    return Block(PacketOrigin(tag, tick, place, Seq(seq)), mask)


@lru_cache(maxsize=512)
def _native_mask(data: bytes) -> int:
    """Return the mask in the block of a native packet."""
    origin, mask = block_from(data)
    assert origin is None, "who carries a packet is not its source"
    return mask


def _mask_in(lone: int) -> int:
    """Return the mask of a native packet whose block is one byte."""
    bucket = lone - LONE_BYTE
    if bucket >= _MASK.size * 8:
        raise WireError(f"bucket {bucket} does not exist")
    return EVERYTHING if bucket < 0 else 1 << bucket


def block_of(origin: PacketOrigin | None, mask: int = EVERYTHING) -> bytes:
    """Return the bytes of a block."""
    if origin is None and mask.bit_count() == 1:
        return _SIZE.pack(LONE_BYTE + mask.bit_length() - 1)
    asked = b"" if mask == EVERYTHING else _MASK.pack(mask)
    first = b"" if origin is None else _ORIGIN.pack(*origin)
    return _SIZE.pack(_SIZE.size + len(asked) + len(first)) + asked + first


# What a ring hands up


def body_of(run: PacketRun, seq: int) -> bytes:
    """Return one packet of a run without what belongs to its ring."""
    at = run.at + (seq - run.seq) * run.size
    flags, count = run.data[at + FLAGS_AT], run.data[at + FLAGS_AT + 1]
    begin = at + HEADER_SIZE + BLOCK_SIZES[run.data[at + HEADER_SIZE]]
    return bytes((flags >> PART_SHIFT, count)) + run.data[begin : at + run.size]


def bodies_of(runs: Sequence[PacketRun]) -> Sequence[bytes]:
    """Return the packets of runs that are alike without what belongs to their ring."""
    run, last = runs[0], runs[-1]
    data, at = run.data, run.at
    if is_in_parts(run):
        return tuple(body_of(run, seq) for seq in range(run.seq, run.seq + run.count))
    each, begin = data[at + FLAGS_AT + 1], at + HEADER_SIZE + BLOCK_SIZES[data[at + HEADER_SIZE]]
    start = begin + DESCRIPTOR_SIZE * each
    head, skipped = bytes((Part.WHOLE, each)) + data[begin:start], start - at
    places = [
        BodiesAt(one.data, one.at + skipped, one.size, one.count, one.parcel[4] if one.parcel is not None else ())
        for one in runs
    ]
    return AlikeBodies(head, BODY_HEAD + at + run.size - begin, places, last.seq + last.count - run.seq)


def together(runs: Iterable[PacketRun]) -> Iterator[list[PacketRun]]:
    """Return runs in order; in one list those in a row that were sent in one visit and are alike, which reads alone
    have cut apart. A run with parts of messages or items of control is a list of its own."""
    alike: list[PacketRun] = []
    before: tuple[object, ...] = ()
    for run in runs:
        shape = _shape_of(run)
        if alike and shape == before and run.seq == alike[-1].seq + alike[-1].count:
            alike.append(run)
            continue
        if alike:
            yield alike
        alike, before = [run], shape or (run.seq,)
    if alike:
        yield alike


def _shape_of(run: PacketRun) -> tuple[object, ...]:
    """Return what is the same in runs of one visit that are alike; nothing, if each counts for itself."""
    data, at = run.data, run.at
    begin = at + HEADER_SIZE + BLOCK_SIZES[data[at + HEADER_SIZE]]
    if data[at + FLAGS_AT] >> PART_SHIFT or data[begin : begin + 4] == _CONTROL:
        return ()
    end = begin + DESCRIPTOR_SIZE * data[at + FLAGS_AT + 1]
    if BLOCK_SIZES[data[at + HEADER_SIZE]] <= MASKED:
        return run.originator, data[at + TIMESTAMP_AT : end]
    return run.originator, data[at + TIMESTAMP_AT : begin - _NUMBER.size], data[begin:end]


@lru_cache(maxsize=512)
def _numbers(size: int, count: int) -> struct.Struct:
    """Numbers that stand so far apart."""
    return struct.Struct(">Q" + f"{size - _NUMBER.size}xQ" * (count - 1))


def _numbers_in(run: PacketRun) -> tuple[int, ...]:
    """Return the numbers that end the blocks of a run."""
    first = run.at + HEADER_SIZE + BLOCK_SIZES[run.data[run.at + HEADER_SIZE]] - _NUMBER.size
    return _numbers(run.size, run.count).unpack_from(run.data, first)


def is_control(run: PacketRun) -> bool:
    """Whether a run has items of control: they have packets of their own."""
    at = run.at + HEADER_SIZE
    begin = at + BLOCK_SIZES[run.data[at]]
    return run.data[begin : begin + 4] == _CONTROL


_CONTROL = CONTROL_SENDER.to_bytes(4, "big")


def is_carried(run: PacketRun) -> bool:
    """Whether a gateway carries the packets of a run: they have been numbered elsewhere first."""
    return BLOCK_SIZES[run.data[run.at + HEADER_SIZE]] > MASKED


def is_in_parts(run: PacketRun) -> bool:
    """Whether each packet of a run has a part of a message or an item."""
    return run.flags >> PART_SHIFT != Part.WHOLE


def control_in(run: PacketRun) -> bytes:
    """Return the item in a packet of control that has a whole one."""
    data, at = run.data, run.at
    begin = at + HEADER_SIZE + BLOCK_SIZES[data[at + HEADER_SIZE]]
    if data[at + FLAGS_AT + 1] != 1:
        raise WireError("several items in one packet")
    length = int.from_bytes(data[begin + 4 : begin + 6], "big")
    begin += DESCRIPTOR_SIZE
    return data[begin : begin + length]


def parts_in(run: PacketRun) -> tuple[bytes, Sequence[bytes]]:
    """Return which parts of items the packets of a run have, and their bytes: views of them, to be joined."""
    data, at = memoryview(run.data), run.at
    begin = at + HEADER_SIZE + BLOCK_SIZES[data[at + HEADER_SIZE]] + DESCRIPTOR_SIZE
    room, end = at + run.size - begin, begin + run.count * run.size
    payloads = [data[place : place + room] for place in range(begin, end, run.size)]
    parts, index = run.parts, -1
    while (index := parts.find(Part.LAST, index + 1)) >= 0:  # it may be padded
        place = begin + index * run.size - DESCRIPTOR_SIZE
        payloads[index] = payloads[index][: int.from_bytes(data[place + 4 : place + 6], "big")]
    return parts, cast("list[bytes]", payloads)


def native_stretch(runs: Sequence[PacketRun], logical: ConfigurationId) -> Stretch:
    """Return the packets of runs that are alike, natives of this logical ring."""
    run, last = runs[0], runs[-1]
    mask = _native_mask(run.block(run.seq))
    seqs = range(run.seq, last.seq + last.count)
    return Stretch(logical, run.timestamp(run.seq), run.originator, seqs, bodies_of(runs), _asks_for_safe(run), mask)


def interest_stretch(run: PacketRun, seq: int, logical: ConfigurationId, interest: InterestItem) -> Stretch:
    """Return the native packet that tells what its originator wants; `seq` has been read from it."""
    seqs, bodies, is_safe = range(seq, seq + 1), (body_of(run, seq),), _asks_for_safe(run)
    return Stretch(logical, run.timestamp(seq), run.originator, seqs, bodies, is_safe, interest=interest)


def carried_stretches(runs: Sequence[PacketRun], names: RingNames) -> list[Stretch]:
    """Return the packets of runs that are alike and that a gateway carries, in stretches whose seqs rise; none, if
    their ring is not known. They do not depend on how packets came together in runs: members must not differ in them.
    A run of control has one packet."""
    run = runs[0]
    origin, mask = block_from(run.block(run.seq))
    assert origin is not None, "a native has no other origin"
    named = names.full(ShortName(origin.tag, origin.place))
    if named is None:
        return []
    ring, originator = named
    seqs = _numbers_in(run)
    if len(runs) > 1:
        seqs = tuple(chain(seqs, *map(_numbers_in, runs[1:])))
    is_safe, bodies = _asks_for_safe(run), bodies_of(runs)
    row = range(seqs[0], seqs[0] + len(seqs))
    if seqs == tuple(row) and seqs[-1] <= NUMBER_MAX:
        found = [Stretch(ring, origin.tick, originator, row, bodies, is_safe, mask)]
    else:
        cuts = [at for at in range(1, len(seqs)) if seqs[at] <= seqs[at - 1] or seqs[at] > NUMBER_MAX]
        found = [
            Stretch(ring, origin.tick, originator, seqs[start:end], bodies[start:end], is_safe, mask)
            for start, end in pairwise([0, *cuts, len(seqs)])
            if seqs[start] <= NUMBER_MAX
        ]
    return [_told(one) for one in found] if is_control(run) else found


def _told(stretch: Stretch) -> Stretch:
    """Return what a packet of control says that is carried as it is: an interest, or nothing at all."""
    (body,) = stretch.bodies
    data = body[BODY_HEAD + DESCRIPTOR_SIZE :]
    item = decode_item(data).item if data else None
    if body[:BODY_HEAD] != bytes((Part.WHOLE, 1)) or not isinstance(item, InterestItem | None):
        raise WireError("control that should not have been carried as it is")
    return stretch.hollow() if item is None else replace(stretch, interest=item)


def _asks_for_safe(run: PacketRun) -> bool:
    """Whether the messages of a run ask for safe delivery: all do, or none."""
    at = run.at + HEADER_SIZE
    return (
        run.data[at + BLOCK_SIZES[run.data[at]] + DESCRIPTOR_SIZE * run.data[run.at + FLAGS_AT + 1] - 1] == Service.SAFE
    )


def parcels_of(stretch: Stretch) -> Iterator[tuple[Parcel, bytes]]:
    """Return the messages of a stretch, with which parts of a message its packets have, if they have parts; of bodies
    that are unsound, a parcel without messages."""
    seqs, bodies = stretch.seqs, stretch.bodies
    if isinstance(bodies, AlikeBodies) and seqs[-1] - seqs[0] == len(seqs) - 1:
        yield bodies.parcel(seqs[0], stretch.originator), b""
        return
    for index in range(len(seqs)):
        try:
            parcel, part = _parcel_of(stretch, index)
        except WireError:
            yield (seqs[index], stretch.originator, (), b"", (), 1, 0), b""
            continue
        yield parcel, b"" if part is Part.WHOLE else bytes((part,))


def _parcel_of(stretch: Stretch, index: int) -> tuple[Parcel, Part]:
    """Return the messages of one packet of a stretch, and which part of its message the packet has. WireError when the
    body is unsound: the ring looked at it only if it was a packet."""
    body, seq = stretch.bodies[index], stretch.seqs[index]
    if len(body) < BODY_HEAD or body[0] > Part.LAST or not body[1] or (body[0] and body[1] != 1):
        raise WireError("a body that cannot be")
    part, count = Part(body[0]), body[1]
    start = BODY_HEAD + DESCRIPTOR_SIZE * count
    if len(body) < start:
        raise WireError(f"{count} descriptors do not fit in {len(body)} bytes")
    columns = DESCRIPTORS[count].unpack_from(body, BODY_HEAD)
    services = body[start - count : start]
    if services.translate(None, SERVICES):
        raise WireError("a service that does not exist")
    filled = min(len(body), start + columns[1]) if part is Part.LAST else len(body)
    payloads = payloads_from(body, start, filled, columns[count:])
    return (seq, stretch.originator, columns[:count], services, payloads, count, 0), part


# What is put on a ring


def freight_from(carried: Carried, body_size_max: int, names: RingNames | None) -> list[Freight]:
    """Return an item as it goes out on a ring; `names`: all members of that ring know the rings that have them."""
    item, since, half = carried
    if isinstance(item, Stretch):
        return freight_of(item, since, half, body_size_max, names)
    return [control_freight(item, body_size_max, since)]


def freight_of(
    stretch: Stretch, since: Stamp, half: Processes | None, body_size_max: int, names: RingNames | None
) -> list[Freight]:
    """Return the packets of a stretch as they are carried, one freight each; as one item, if they count under a
    condition, one has no room for a block, or members may not know their ring."""
    name = names.short(stretch.ring, stretch.originator) if names is not None else None
    block_size = CARRIED if stretch.mask == EVERYTHING else CARRIED_MASKED
    room = body_size_max + len(NATIVE_BLOCK) + BODY_HEAD - block_size
    bodies = stretch.bodies
    largest = bodies.size if isinstance(bodies, AlikeBodies) else max(map(len, bodies), default=0)
    if name is None or since != NO_STAMP or half is not None or largest > room:
        return [control_freight(stretch, body_size_max, since, half)]
    return [Freight(_carried(stretch, name), is_divisible=True)]


def _hollow_body(*, is_safe: bool) -> bytes:
    """A packet of control that says nothing: only how far its ring has come."""
    service = Service.SAFE if is_safe else Service.AGREED
    return bytes((Part.WHOLE, 1)) + DESCRIPTORS[1].pack(CONTROL_SENDER, 0) + bytes((service,))


def _carried(stretch: Stretch, name: ShortName) -> list[RawRun]:
    """Return the packets of a stretch; their blocks differ in the seq alone, which ends them."""
    origin = PacketOrigin(name.tag, stretch.tick, name.place, Seq(0))
    block, seqs, bodies = block_of(origin, stretch.mask)[: -_NUMBER.size], stretch.seqs, stretch.bodies
    if isinstance(bodies, AlikeBodies):
        descriptors = bodies.head[BODY_HEAD:]
        return [RawRun(SAFE | EXTENDED, bodies.each, block, seqs, descriptors, bodies.behind_heads())]
    if stretch.is_hollow:
        bodies = (_hollow_body(is_safe=stretch.is_safe),) * len(seqs)
    runs = []
    for seq, body in zip(seqs, bodies, strict=True):
        flags, start = SAFE | EXTENDED | body[0] << PART_SHIFT, BODY_HEAD + DESCRIPTOR_SIZE * body[1]
        runs.append(RawRun(flags, body[1], block, (seq,), body[BODY_HEAD:start], (body[start:],)))
    return runs


def control_freight(item: Item, body_size_max: int, since: Stamp = NO_STAMP, half: Processes | None = None) -> Freight:
    """Return an item of control in as many packets as it takes."""
    data, room = memoryview(encode_item(item, since, half)), body_size_max - DESCRIPTOR_SIZE
    count = -(-len(data) // room)
    size = -(-len(data) // count)  # all are equally long but the last: so they travel well together
    chunks = [data[at : at + size] for at in range(0, len(data), size)]
    parts = parts_in_a_row(len(chunks)) if len(chunks) > 1 else b""
    descriptor = DESCRIPTORS[1].pack(CONTROL_SENDER, size) + bytes((Service.SAFE,))
    run = RawRun(SAFE | EXTENDED, 1, NATIVE_BLOCK, (), descriptor, chunks, parts)
    return Freight([run], isinstance(item, Local))
