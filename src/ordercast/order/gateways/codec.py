"""Items of control to bytes and back. `decode_item` raises WireError and nothing else, whatever the bytes.

An item is the payload of a message whose sender is `CONTROL_SENDER`, so that it may be as large as any message:

    0   kind 1
    1   flags 1        SINCE: 24 bytes follow, the merge since which it counts; HALF: and who has these residual packets
    2   the body

Counts are checked before anything is made of them, and a set of processes has one way to be written: ascending. What an
item says of an order that nobody can know from its bytes alone (a ring that does not exist, a process that is no
gateway) is for whoever takes it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum
from itertools import pairwise
from typing import Final, NamedTuple, TypeVar, assert_never

from ordercast.model.errors import WireError
from ordercast.model.ids import ConfigurationId, ProcessId
from ordercast.order.gateways.bodies import AlikeBodies, bodies_from
from ordercast.order.gateways.items import (
    CAP,
    Base,
    BegunMessage,
    Column,
    EndItem,
    Flooded,
    Half,
    HelloItem,
    HoldItem,
    InterestItem,
    Local,
    LogicalRing,
    MarkItem,
    NoticeItem,
    OwnWord,
    Processes,
    Statement,
    Stretch,
    TopologyItem,
    TopologyPart,
)
from ordercast.order.stamped.lanes import NO_STAMP, Stamp
from ordercast.wire.codec import NUMBER_MAX
from ordercast.wire.header import DESCRIPTOR_SIZE
from ordercast.wire.messages import MEMBERS_MAX
from ordercast.wire.reader import ByteReader

# What nobody has more of. A network has 256 domains, and few rings in each that have not been forgotten.
RINGS_MAX: Final = 2048  # parts of a topology, halves of a merge, sides that a merge brings together
ENTRIES_MAX: Final = 16384  # of every other list
PACKETS_MAX: Final = 4096  # in one stretch
REASON_SIZE_MAX: Final = 255
DOMAINS_MAX: Final = 256

Item = Flooded | Local | InterestItem
T = TypeVar("T")


class ItemKind(IntEnum):
    """Append only."""

    HELLO = 1
    END = 2
    NOTICE = 3
    MARK = 4
    TOPOLOGY = 5
    HOLD = 6
    INTEREST = 7
    STRETCH = 8  # packets that count since a merge, or for one half; all others are carried as packets


SINCE: Final = 1
HALF: Final = 2

_KIND = struct.Struct(">BB")
_RING = struct.Struct(">QQ")
_STAMP = struct.Struct(">QQq")  # the seq of a cap is negative
_PROCESS = struct.Struct(">Q")
_COUNT = struct.Struct(">H")
_FLAG = struct.Struct(">B")
_PACKET = struct.Struct(">QH")  # of a stretch: seq, size of the body
_BEGUN = struct.Struct(">QIQQQI")  # of a message in parts: originator, sender, stamp, size
_SAFE, _HOLLOW, _INTEREST, _ALIKE = 1, 2, 4, 8  # what a stretch is


class ReadItem(NamedTuple):
    """An item as it came."""

    item: Item
    since: Stamp
    half: Processes | None


def encode_item(item: Item, since: Stamp = NO_STAMP, half: Processes | None = None) -> bytes:
    """Return the item in bytes; `half` belongs to stretches alone."""
    assert half is None or isinstance(item, Stretch), "only packets of users are residual"
    flags = SINCE * (since != NO_STAMP) | HALF * (half is not None)
    kind, body = _encoded(item)
    condition = (_STAMP.pack(*since) if flags & SINCE else b"") + (_set(half) if half is not None else b"")
    return _KIND.pack(kind, flags) + condition + body


def decode_item(data: bytes) -> ReadItem:
    """Return what the bytes say; WireError if they say nothing that can be."""
    body = ByteReader(data, what="the item")
    number, flags = body.unpack(_KIND)
    kind = _KINDS.get(number)
    if kind is None:
        raise WireError(f"item kind {number} does not exist")
    if flags > SINCE | HALF or (flags & HALF and kind is not ItemKind.STRETCH):
        raise WireError("an item with flags that it cannot have")
    since = _read_stamp(body) if flags & SINCE else NO_STAMP
    half = _read_set(body) if flags & HALF else None
    item = _READERS[kind](body)
    body.end()
    return ReadItem(item, since, half)


def _encoded(item: Item) -> tuple[ItemKind, bytes]:
    match item:
        case HelloItem():
            return ItemKind.HELLO, _RING.pack(*item.ring)
        case EndItem():
            return ItemKind.END, _end(item) + _topologies(item.successor)
        case NoticeItem():
            return ItemKind.NOTICE, _notice(item)
        case MarkItem():
            return ItemKind.MARK, _mark(item)
        case TopologyItem():
            return ItemKind.TOPOLOGY, _topology(item)
        case HoldItem():
            return ItemKind.HOLD, _hold(item)
        case InterestItem():
            return ItemKind.INTEREST, struct.pack(">QQ", item.process, item.mask)
        case Stretch():
            return ItemKind.STRETCH, _stretch(item)
        case _:
            assert_never(item)


# Pieces


def _counted(pieces: Sequence[bytes]) -> bytes:
    return b"".join((_COUNT.pack(len(pieces)), *pieces))


def _read_list(body: ByteReader, read: Callable[[ByteReader], T], limit: int, what: str) -> tuple[T, ...]:
    (count,) = body.unpack(_COUNT)
    if count > limit:
        raise WireError(f"{count} {what}, more than the limit of {limit}")
    return tuple(read(body) for _ in range(count))


def _set(processes: Iterable[ProcessId]) -> bytes:
    listed = sorted(processes)
    return _COUNT.pack(len(listed)) + struct.pack(f">{len(listed)}Q", *listed)


def _read_set(body: ByteReader) -> Processes:
    (count,) = body.unpack(_COUNT)
    if count > MEMBERS_MAX:
        raise WireError(f"{count} processes, more than the limit of {MEMBERS_MAX}")
    listed = body.numbers(count, "Q")
    if any(one >= other for one, other in pairwise(listed)):
        raise WireError("processes that do not ascend")
    return frozenset(map(ProcessId, listed))


def _sane(number: int) -> int:
    if number > NUMBER_MAX:
        raise WireError("a number beyond all bounds")
    return number


def _read_process(body: ByteReader) -> ProcessId:
    (process,) = body.unpack(_PROCESS)
    return ProcessId(process)


def _read_ring(body: ByteReader) -> ConfigurationId:
    seq, representative = body.unpack(_RING)
    return ConfigurationId(_sane(seq), ProcessId(representative))


def _read_stamp(body: ByteReader) -> Stamp:
    tick, tag, seq = body.unpack(_STAMP)
    if seq < CAP:
        raise WireError("a place below all places")
    return _sane(tick), tag, _sane(seq)


def _read_flag(body: ByteReader, limit: int = 1) -> int:
    (flag,) = body.unpack(_FLAG)
    if flag > limit:
        raise WireError("flags that do not exist")
    return int(flag)


# Rings and their ends


def _logical(ring: LogicalRing) -> bytes:
    """A ring without what was said at its birth, which stands at the end of the one item that has it."""
    halves = _counted([_RING.pack(*half.ring) + _set(half.members) for half in ring.halves])
    return b"".join((_RING.pack(*ring.id), _PROCESS.pack(ring.tick), _set(ring.members), _set(ring.gateways), halves))


def _read_logical(body: ByteReader) -> LogicalRing:
    ring, (tick,) = _read_ring(body), body.unpack(_PROCESS)
    members, gateways = _read_set(body), _read_set(body)
    halves = _read_list(body, lambda at: Half(_read_ring(at), _read_set(at)), RINGS_MAX, "halves")
    if not members or not gateways <= members or any(not half.members <= members for half in halves):
        raise WireError("a ring whose members contradict each other")
    return LogicalRing(ring, members, gateways, _sane(tick), halves)


def _end(end: EndItem) -> bytes:
    return b"".join((_RING.pack(*end.ring), _set(end.half), _set(end.sure), _logical(end.successor)))


def _read_bare_end(body: ByteReader) -> EndItem:
    ring, half, sure = _read_ring(body), _read_set(body), _read_set(body)
    successor = _read_logical(body)
    if not half or not half <= successor.members or not sure <= successor.members:
        raise WireError("an END whose sets contradict each other")
    return EndItem(ring, half, successor, sure)


def _topologies(ring: LogicalRing) -> bytes:
    return _counted([_topology(one) for one in ring.topologies])


def _read_end(body: ByteReader) -> EndItem:
    bare = _read_bare_end(body)
    topologies = _read_list(body, _read_topology, RINGS_MAX, "topologies")
    ring = bare.successor
    whole = LogicalRing(ring.id, ring.members, ring.gateways, ring.tick, ring.halves, topologies)
    return EndItem(bare.ring, bare.half, whole, bare.sure)


# What is said of rings


def _notice(notice: NoticeItem) -> bytes:
    fixed = _RING.pack(*notice.ring), _PROCESS.pack(notice.by), _STAMP.pack(*notice.front), _STAMP.pack(*notice.stable)
    half = _set(notice.half) if notice.half is not None else b""
    return b"".join(
        (_FLAG.pack(notice.half is not None), *fixed, half, _counted([_statement(entry) for entry in notice.entries]))
    )


def _read_notice(body: ByteReader) -> NoticeItem:
    has_half = _read_flag(body)
    ring, by, front, stable = _read_ring(body), _read_process(body), _read_stamp(body), _read_stamp(body)
    half = _read_set(body) if has_half else None
    entries = _read_list(body, _read_statement, ENTRIES_MAX, "statements")
    return NoticeItem(ring, by, front, entries, half, stable)


def _statement(statement: Statement) -> bytes:
    (source, half), stamp = statement
    named = _FLAG.pack(half is not None) + (_set(half) if half is not None else b"")
    return _RING.pack(*source) + named + _STAMP.pack(*stamp)


def _read_statement(body: ByteReader) -> Statement:
    source = _read_ring(body)
    half = _read_set(body) if _read_flag(body) else None
    return Statement(Column(source, half), _read_stamp(body))


def _mark(mark: MarkItem) -> bytes:
    fixed = struct.pack(">QQQQQQ", *mark.ring, *mark.logical, mark.by, mark.clock)
    return fixed + _counted([_FLAG.pack(domain) for domain in mark.domains])


def _read_mark(body: ByteReader) -> MarkItem:
    ring, logical, by, (clock,) = _read_ring(body), _read_ring(body), _read_process(body), body.unpack(_PROCESS)
    domains = _read_list(body, lambda at: _read_flag(at, DOMAINS_MAX - 1), DOMAINS_MAX, "domains")
    if not domains or sorted(set(domains)) != list(domains):
        raise WireError("domains that do not ascend")
    return MarkItem(ring, logical, by, _sane(clock), domains)


def _hold(hold: HoldItem) -> bytes:
    reason = hold.reason.encode()[:REASON_SIZE_MAX].decode(errors="ignore").encode()
    return struct.pack(">QQB", hold.process, hold.number, len(reason)) + reason


def _read_hold(body: ByteReader) -> HoldItem:
    process, number = _read_process(body), _sane(body.unpack(_PROCESS)[0])
    try:
        return HoldItem(process, number, body.take(_read_flag(body, REASON_SIZE_MAX)).decode())
    except UnicodeDecodeError:
        raise WireError("a reason that is no text") from None


def _begun(message: BegunMessage) -> bytes:
    fixed = _BEGUN.pack(message.originator, message.sender, *message.stamp, len(message.data))
    return fixed + message.data


def _read_begun(body: ByteReader) -> BegunMessage:
    originator, sender, tick, tag, seq, size = body.unpack(_BEGUN)
    _sane(max(tick, seq))
    return BegunMessage(ProcessId(originator), sender, (tick, tag, seq), body.take(size))


def _topology(topology: TopologyItem) -> bytes:
    ids = _RING.pack(*topology.physical), _RING.pack(*topology.ring), _PROCESS.pack(topology.by)
    return b"".join(
        (
            *ids,
            _RING.pack(*topology.view),
            _set(topology.reachable),
            _counted([_logical(part.ring) + _set(part.members) for part in topology.parts]),
            _counted([struct.pack(">QBQQ", base.process, base.domain, *base.ring) for base in topology.bases]),
            _counted([_end(end) for end in topology.ends]),
            _counted([struct.pack(">QQQQQ", one.gateway, *one.ring, *one.successor) for one in topology.words]),
            _counted([struct.pack(">QQ", *mask) for mask in topology.masks]),
            _counted([_hold(hold) for hold in topology.holds]),
            _counted([_begun(message) for message in topology.begun]),
        )
    )


def _read_topology(body: ByteReader) -> TopologyItem:
    physical, ring, by = _read_ring(body), _read_ring(body), _read_process(body)
    view = ConfigurationId(*body.unpack(_RING))
    reachable = _read_set(body)
    return TopologyItem(
        physical,
        ring,
        by,
        view,
        reachable,
        _read_list(body, _read_part, RINGS_MAX, "rings"),
        _read_list(body, _read_base, ENTRIES_MAX, "bases"),
        _read_list(body, _read_bare_end, RINGS_MAX, "ENDs"),
        _read_list(body, _read_word, ENTRIES_MAX, "words"),
        _read_list(body, _read_mask, ENTRIES_MAX, "masks"),
        _read_list(body, _read_hold, ENTRIES_MAX, "holds"),
        _read_list(body, _read_begun, ENTRIES_MAX, "messages in parts"),
    )


def _read_part(body: ByteReader) -> TopologyPart:
    part = TopologyPart(_read_logical(body), _read_set(body))
    if not part.members <= part.ring.members:
        raise WireError("a part with others than the members of its ring")
    return part


def _read_base(body: ByteReader) -> Base:
    return Base(_read_process(body), _read_flag(body, DOMAINS_MAX - 1), _read_ring(body))


def _read_mask(body: ByteReader) -> tuple[ProcessId, int]:
    process, mask = body.numbers(2, "Q")
    return ProcessId(process), mask


def _read_word(body: ByteReader) -> OwnWord:
    return OwnWord(_read_process(body), _read_ring(body), _read_ring(body))


# Packets that are carried as items


def _stretch(stretch: Stretch) -> bytes:
    flags = _SAFE * stretch.is_safe | _HOLLOW * stretch.is_hollow | _INTEREST * (stretch.interest is not None)
    bodies = stretch.bodies
    if isinstance(bodies, AlikeBodies):
        flags |= _ALIKE
    fixed = struct.pack(">QQQQQB", *stretch.ring, stretch.tick, stretch.originator, stretch.mask, flags)
    interest = stretch.interest
    wanted = struct.pack(">QQ", interest.process, interest.mask) if interest is not None else b""
    if isinstance(bodies, AlikeBodies):
        count = len(stretch.seqs)
        seqs = _COUNT.pack(count) + struct.pack(f">{count}Q", *stretch.seqs)
        return b"".join((fixed, wanted, seqs, bodies.head[1:], bodies.joined()))
    packets = zip(stretch.seqs, bodies or (b"",) * len(stretch.seqs), strict=True)
    return fixed + wanted + _counted([_PACKET.pack(seq, len(body)) + body for seq, body in packets])


def _read_stretch(body: ByteReader) -> Stretch:
    ring, (tick,), originator = _read_ring(body), body.unpack(_PROCESS), _read_process(body)
    (mask,) = body.unpack(_PROCESS)
    flags = _read_flag(body, _SAFE | _HOLLOW | _INTEREST | _ALIKE)
    interest = InterestItem(*_read_mask(body)) if flags & _INTEREST else None
    seqs, bodies = _read_alike(body) if flags & _ALIKE else _read_packets(body)
    if not seqs or seqs[-1] > NUMBER_MAX or not _ascend(seqs):
        raise WireError("packets that do not ascend")
    if (flags & _HOLLOW and any(bodies)) or (interest is not None and len(bodies) != 1):
        raise WireError("a stretch that contradicts itself")
    bodies = () if flags & _HOLLOW else bodies
    return Stretch(ring, _sane(tick), originator, seqs, bodies, bool(flags & _SAFE), mask, interest)


def _ascend(seqs: tuple[int, ...]) -> bool:
    is_row = seqs == tuple(range(seqs[0], seqs[0] + len(seqs)))
    return is_row or all(one < other for one, other in pairwise(seqs))


def _read_alike(body: ByteReader) -> tuple[tuple[int, ...], Sequence[bytes]]:
    (count,) = body.unpack(_COUNT)
    if count > PACKETS_MAX:
        raise WireError(f"{count} packets, more than {PACKETS_MAX}")
    seqs = body.numbers(count, "Q")
    each = body.byte()
    head = bytes((0, each)) + body.take(DESCRIPTOR_SIZE * each)
    bodies = bodies_from(head, body.data, body.at, count)
    body.at = len(body.data)
    return seqs, bodies


def _read_packets(body: ByteReader) -> tuple[tuple[int, ...], Sequence[bytes]]:
    packets = _read_list(body, _read_packet, PACKETS_MAX, "packets")
    return tuple(seq for seq, _ in packets), tuple(data for _, data in packets)


def _read_packet(body: ByteReader) -> tuple[int, bytes]:
    seq, size = body.unpack(_PACKET)
    return _sane(seq), body.take(size)


_KINDS: Final = {int(kind): kind for kind in ItemKind}
_READERS: Final[dict[ItemKind, Callable[[ByteReader], Item]]] = {
    ItemKind.HELLO: lambda body: HelloItem(_read_ring(body)),
    ItemKind.END: _read_end,
    ItemKind.NOTICE: _read_notice,
    ItemKind.MARK: _read_mark,
    ItemKind.TOPOLOGY: _read_topology,
    ItemKind.HOLD: _read_hold,
    ItemKind.INTEREST: lambda body: InterestItem(*_read_mask(body)),
    ItemKind.STRETCH: _read_stretch,
}
