"""The kernel in Python: what is done with the bytes of packets where it costs most. No rule of the protocol is here.

The same functions are in C in the distribution `ordercast-fast`; `kernel.py` chooses. Both return the same for the same
arguments, and refuse the same: `tests/properties/test_kernel.py`.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from functools import lru_cache
from itertools import repeat

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
    FIXED_SIZE,
    FLAGS_AT,
    HEADER_SIZE,
    LENGTH_AT,
    NUMBERS,
    ORIGIN_SIZE,
    PART_SHIFT,
    RECOVERED,
    SAFE,
    SERVICES,
    SHORT_BLOCK,
    Heading,
    Part,
    payloads_from,
)
from ordercast.wire.packet_run import PacketRun

_FIRST, _LAST = int(Part.FIRST), int(Part.LAST)
_PARTS_IN_A_ROW = re.compile(b"%c[^%c%c]*%c" % (_FIRST, _FIRST, _LAST, _LAST))  # of one message, from first to last
_PART_OF_FLAGS = bytes(flags >> PART_SHIFT for flags in range(256))
BLOCK_NUMBER = struct.Struct(">Q")  # ends a long block
STAMPS_AT = FIXED_SIZE + 8  # token round and timestamp stand here, behind the seq
STAMPS_SIZE = HEADER_SIZE - STAMPS_AT


# Reading


def read_run(data: bytes, start: int, size: int, heading: Heading, expected: Seq) -> PacketRun | None:
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
    return PacketRun(data, at, end - at, seq, originator, 1, flags & SAFE, bytes((part,)) if part else b"", parcel)


def _block_size(data: bytes, at: int, end: int) -> int:
    if at >= end or not data[at]:
        raise WireError("a packet without the block that it should have")
    return BLOCK_SIZES[data[at]]


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
    """So many packets with a part of so many bytes each: what must be equal, flags, seq, descriptor and payload; behind
    a block the payload is left out."""
    payload = f"{length}x" if head else f"{length}s"
    packet = f"{FLAGS_AT}sB{FIXED_SIZE - FLAGS_AT - 1}sQ{_block_shape(head)}{DESCRIPTOR_SIZE}s{payload}"
    return struct.Struct(">" + packet * count)


def _extend_parts(run: PacketRun, alike: int, head: int) -> None:
    """The same for parts of messages of one sender: they differ in which part they are, too, and the last of each
    message may be padded."""
    seq, originator, size = run.seq, run.originator, run.size
    room, more, stride = size - HEADER_SIZE - head - DESCRIPTOR_SIZE, alike - 1, 6
    fields = _part_shape(room, alike, head).unpack_from(run.data, run.at)
    at = 5 if head else 4  # the descriptor stands here, and the payload behind it if there is no block
    before, flags, behind, descriptor = fields[0], fields[1], fields[2], fields[at]
    later = fields[stride:]
    kept = flags & BELOW_PART, descriptor[:LENGTH_AT], descriptor[-1]
    told = tuple(zip(later[1::stride], later[at::stride], strict=True))
    sound = {pair: _is_sound_part(*pair, kept, room) for pair in set(told)}
    count = 1 + min(
        _matching(later[3::stride], tuple(range(seq + 1, seq + alike))),
        _matching(later[::stride], (before,) * more),
        _matching(later[2::stride], (behind,) * more),
        _matching(later[4::stride], (_same_block(run, head),) * more) if head else more,
        more if all(sound.values()) else [sound[pair] for pair in told].index(False),
    )
    run.grow(count)
    run.parts = bytes(fields[1 : count * stride : stride]).translate(_PART_OF_FLAGS)
    if head:
        return
    gathered = list(fields[5 : count * stride : stride])
    last = run.parts.find(_LAST)
    while last >= 0:  # it alone may be padded
        gathered[last] = gathered[last][: _length_of(fields[last * stride + at])]
        last = run.parts.find(_LAST, last + 1)
    sender, service = int.from_bytes(descriptor[:LENGTH_AT], "big"), descriptor[-1:]
    run.parcel = seq, originator, (sender,) * count, service * count, gathered, 1, 0


def _length_of(descriptor: bytes) -> int:
    """Return how long the payload of a packet's only message is."""
    return int.from_bytes(descriptor[LENGTH_AT:-1], "big")


def _is_sound_part(flags: int, descriptor: bytes, kept: tuple[int, bytes, int], room: int) -> bool:
    """Tell whether a packet with these flags and this descriptor may be one of a run whose packets share `kept`: flags,
    sender and service."""
    part, length = flags >> PART_SHIFT, _length_of(descriptor)
    if (flags & BELOW_PART, descriptor[:LENGTH_AT], descriptor[-1]) != kept or length > room:
        return False
    return part == Part.LAST or (part in (Part.FIRST, Part.MIDDLE) and length == room)


def gather(
    kinds: bytes, payloads: Sequence[bytes], begun: list[bytes] | None
) -> tuple[list[int], list[bytes], list[bytes] | None]:
    """Put parts in a row together: what part of its message each is, the parts, and those of a message that has begun
    before, if one has. Return behind which of them messages are complete, these messages, and what has begun now. Parts
    of a message whose first part is not there are left out. What has begun is added to in place."""
    ends: list[int] = []
    whole: list[bytes] = []
    first = kinds.find(_FIRST)
    behind = len(kinds) if first < 0 else first  # what goes on ends before the first part of another message
    if begun is not None and behind:
        end = kinds.find(_LAST, 0, behind) + 1
        begun += payloads[: end or behind]
        if end:
            ends, whole, begun = [end], [b"".join(begun)], None
    if first < 0:
        return ends, whole, begun
    for found in _PARTS_IN_A_ROW.finditer(kinds, first):
        start, end = found.span()
        whole.append(b"".join(payloads[start:end]))
        ends.append(end)
    latest = kinds.rfind(_FIRST)
    return ends, whole, list(payloads[latest:]) if kinds.find(_LAST, latest) < 0 else None


# Building


def lay(
    fixed: bytes,
    descriptors: bytes,
    payloads: Sequence[bytes],
    each: int,
    kinds: Sequence[int],
    numbers: tuple[int, int, int, int],
) -> bytes:
    """Lay packets that are alike one behind the other. All begin with `fixed`, which ends before the seq; `numbers` are
    the first one's seq, the token round, the first timestamp, and by how much it grows; `descriptors` stand before the
    `each` payloads of a packet. `kinds` says which parts they are, if they are parts: `descriptors` then end with that
    of a part, and the last one, which may be shorter, is padded."""
    seq, token_round, timestamp, step = numbers
    count = len(payloads) // each
    stride = 3 + each  # pieces of a packet: all are laid by C code
    pieces = [fixed, b"", descriptors, *payloads[:each]] * count
    stamps = range(timestamp, timestamp + count) if step else repeat(timestamp)
    pieces[1::stride] = map(NUMBERS.pack, range(seq, seq + count), repeat(token_round), stamps)
    if count > 1:
        for index in range(each):
            pieces[3 + index :: stride] = payloads[index::each]
    if kinds:
        flags, behind = fixed[FLAGS_AT], fixed[FLAGS_AT + 1 :]
        told = {kind: fixed[:FLAGS_AT] + bytes((flags | kind << PART_SHIFT,)) + behind for kind in set(kinds)}
        pieces[::stride] = [told[kind] for kind in kinds]
        length = int.from_bytes(descriptors[-3:-1], "big")
        for index, payload in enumerate(payloads):
            if len(payload) < length:  # the last part: padded, so that all are alike
                shorter = len(payload).to_bytes(2, "big")
                pieces[index * stride + 2] = descriptors[:-3] + shorter + descriptors[-1:]
                pieces[index * stride + 3] = payload.ljust(length, b"\0")
    return b"".join(pieces)
