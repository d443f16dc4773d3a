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
from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import IntEnum
from itertools import pairwise
from typing import Final, NamedTuple, assert_never

from ordercast.model.configuration import ChangeReason
from ordercast.model.errors import WireError
from ordercast.model.ids import ConfigurationId, ProcessId
from ordercast.order.gateways.bodies import AlikeBodies, bodies_from
from ordercast.order.gateways.items import (
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
from ordercast.order.gateways.pieces import (
    COUNT,
    FLAG,
    PROCESS,
    RING,
    STAMP,
    counted,
    read_flag,
    read_interest,
    read_list,
    read_mask,
    read_process,
    read_ring,
    read_set,
    read_stamp,
    sane,
    write_interest,
    write_set,
)
from ordercast.order.stamped.lanes import NO_STAMP, Stamp
from ordercast.wire.codec import NUMBER_MAX
from ordercast.wire.header import DESCRIPTOR_SIZE
from ordercast.wire.reader import ByteReader

# What nobody has more of. A network has 256 domains, and few rings in each that have not been forgotten.
RINGS_MAX: Final = 2048  # parts of a topology, halves of a merge, sides that a merge brings together
ENTRIES_MAX: Final = 16384  # of every other list
PACKETS_MAX: Final = 4096  # in one stretch
REASON_SIZE_MAX: Final = 255
DOMAINS_MAX: Final = 256

Item = Flooded | Local | InterestItem


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
    condition = (STAMP.pack(*since) if flags & SINCE else b"") + (write_set(half) if half is not None else b"")
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
    since = read_stamp(body) if flags & SINCE else NO_STAMP
    half = read_set(body) if flags & HALF else None
    item = _READERS[kind](body)
    body.end()
    return ReadItem(item, since, half)


def _encoded(item: Item) -> tuple[ItemKind, bytes]:
    match item:
        case HelloItem():
            return ItemKind.HELLO, RING.pack(*item.ring)
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
            return ItemKind.INTEREST, write_interest(item)
        case Stretch():
            return ItemKind.STRETCH, _stretch(item)
        case _:
            assert_never(item)


# Rings and their ends


def _logical(ring: LogicalRing) -> bytes:
    """A ring without what was said at its birth, which stands at the end of the one item that has it."""
    halves = counted([RING.pack(*half.ring) + write_set(half.members) for half in ring.halves])
    return b"".join(
        (RING.pack(*ring.id), PROCESS.pack(ring.tick), write_set(ring.members), write_set(ring.gateways), halves)
    )


def _read_logical(body: ByteReader) -> LogicalRing:
    ring, (tick,) = read_ring(body), body.unpack(PROCESS)
    members, gateways = read_set(body), read_set(body)
    halves = read_list(body, lambda at: Half(read_ring(at), read_set(at)), RINGS_MAX, "halves")
    if not members or not gateways <= members or any(not half.members <= members for half in halves):
        raise WireError("a ring whose members contradict each other")
    return LogicalRing(ring, members, gateways, sane(tick), halves)


def _end(end: EndItem) -> bytes:
    why = FLAG.pack(end.reason)
    return b"".join((RING.pack(*end.ring), write_set(end.half), write_set(end.sure), why, _logical(end.successor)))


def _read_bare_end(body: ByteReader) -> EndItem:
    ring, half, sure = read_ring(body), read_set(body), read_set(body)
    reason, successor = ChangeReason(read_flag(body, max(ChangeReason))), _read_logical(body)
    if not half or not half <= successor.members or not sure <= successor.members:
        raise WireError("an END whose sets contradict each other")
    return EndItem(ring, half, successor, sure, reason)


def _topologies(ring: LogicalRing) -> bytes:
    return counted([_topology(one) for one in ring.topologies])


def _read_end(body: ByteReader) -> EndItem:
    bare = _read_bare_end(body)
    topologies = read_list(body, _read_topology, RINGS_MAX, "topologies")
    ring = bare.successor
    whole = LogicalRing(ring.id, ring.members, ring.gateways, ring.tick, ring.halves, topologies)
    return replace(bare, successor=whole)


# What is said of rings


def _notice(notice: NoticeItem) -> bytes:
    fixed = RING.pack(*notice.ring), PROCESS.pack(notice.by), STAMP.pack(*notice.front), STAMP.pack(*notice.stable)
    half = write_set(notice.half) if notice.half is not None else b""
    return b"".join(
        (FLAG.pack(notice.half is not None), *fixed, half, counted([_statement(entry) for entry in notice.entries]))
    )


def _read_notice(body: ByteReader) -> NoticeItem:
    has_half = read_flag(body)
    ring, by, front, stable = read_ring(body), read_process(body), read_stamp(body), read_stamp(body)
    half = read_set(body) if has_half else None
    entries = read_list(body, _read_statement, ENTRIES_MAX, "statements")
    return NoticeItem(ring, by, front, entries, half, stable)


def _statement(statement: Statement) -> bytes:
    (source, half), stamp = statement
    named = FLAG.pack(half is not None) + (write_set(half) if half is not None else b"")
    return RING.pack(*source) + named + STAMP.pack(*stamp)


def _read_statement(body: ByteReader) -> Statement:
    source = read_ring(body)
    half = read_set(body) if read_flag(body) else None
    return Statement(Column(source, half), read_stamp(body))


def _mark(mark: MarkItem) -> bytes:
    fixed = struct.pack(">QQQQQQ", *mark.ring, *mark.logical, mark.by, mark.clock)
    return fixed + counted([FLAG.pack(domain) for domain in mark.domains])


def _read_mark(body: ByteReader) -> MarkItem:
    ring, logical, by, (clock,) = read_ring(body), read_ring(body), read_process(body), body.unpack(PROCESS)
    domains = read_list(body, lambda at: read_flag(at, DOMAINS_MAX - 1), DOMAINS_MAX, "domains")
    if not domains or sorted(set(domains)) != list(domains):
        raise WireError("domains that do not ascend")
    return MarkItem(ring, logical, by, sane(clock), domains)


def _hold(hold: HoldItem) -> bytes:
    reason = hold.reason.encode()[:REASON_SIZE_MAX].decode(errors="ignore").encode()
    return struct.pack(">QQB", hold.process, hold.number, len(reason)) + reason


def _read_hold(body: ByteReader) -> HoldItem:
    process, number = read_process(body), sane(body.unpack(PROCESS)[0])
    try:
        return HoldItem(process, number, body.take(read_flag(body, REASON_SIZE_MAX)).decode())
    except UnicodeDecodeError:
        raise WireError("a reason that is no text") from None


def _begun(message: BegunMessage) -> bytes:
    fixed = _BEGUN.pack(message.originator, message.sender, *message.stamp, len(message.data))
    return fixed + message.data


def _read_begun(body: ByteReader) -> BegunMessage:
    originator, sender, tick, tag, seq, size = body.unpack(_BEGUN)
    sane(max(tick, seq))
    return BegunMessage(ProcessId(originator), sender, (tick, tag, seq), body.take(size))


def _topology(topology: TopologyItem) -> bytes:
    ids = RING.pack(*topology.physical), RING.pack(*topology.ring), PROCESS.pack(topology.by)
    return b"".join(
        (
            *ids,
            RING.pack(*topology.view),
            write_set(topology.reachable),
            counted([_logical(part.ring) + write_set(part.members) + write_set(part.lost) for part in topology.parts]),
            counted([struct.pack(">QBQQ", base.process, base.domain, *base.ring) for base in topology.bases]),
            counted([_end(end) for end in topology.ends]),
            counted([struct.pack(">QQQQQ", one.gateway, *one.ring, *one.successor) for one in topology.words]),
            counted([struct.pack(">QQ", *mask) for mask in topology.masks]),
            counted([_hold(hold) for hold in topology.holds]),
            counted([_begun(message) for message in topology.begun]),
        )
    )


def _read_topology(body: ByteReader) -> TopologyItem:
    physical, ring, by = read_ring(body), read_ring(body), read_process(body)
    view = ConfigurationId(*body.unpack(RING))
    reachable = read_set(body)
    return TopologyItem(
        physical,
        ring,
        by,
        view,
        reachable,
        read_list(body, _read_part, RINGS_MAX, "rings"),
        read_list(body, _read_base, ENTRIES_MAX, "bases"),
        read_list(body, _read_bare_end, RINGS_MAX, "ENDs"),
        read_list(body, _read_word, ENTRIES_MAX, "words"),
        read_list(body, read_mask, ENTRIES_MAX, "masks"),
        read_list(body, _read_hold, ENTRIES_MAX, "holds"),
        read_list(body, _read_begun, ENTRIES_MAX, "messages in parts"),
    )


def _read_part(body: ByteReader) -> TopologyPart:
    part = TopologyPart(_read_logical(body), read_set(body), read_set(body))
    if not part.members | part.lost <= part.ring.members:
        raise WireError("a part with others than the members of its ring")
    return part


def _read_base(body: ByteReader) -> Base:
    return Base(read_process(body), read_flag(body, DOMAINS_MAX - 1), read_ring(body))


def _read_word(body: ByteReader) -> OwnWord:
    return OwnWord(read_process(body), read_ring(body), read_ring(body))


# Packets that are carried as items


def _stretch(stretch: Stretch) -> bytes:
    flags = _SAFE * stretch.is_safe | _HOLLOW * stretch.is_hollow | _INTEREST * (stretch.interest is not None)
    bodies = stretch.bodies
    if isinstance(bodies, AlikeBodies):
        flags |= _ALIKE
    fixed = struct.pack(">QQQQQB", *stretch.ring, stretch.tick, stretch.originator, stretch.mask, flags)
    interest = stretch.interest
    wanted = write_interest(interest) if interest is not None else b""
    if isinstance(bodies, AlikeBodies):
        count = len(stretch.seqs)
        seqs = COUNT.pack(count) + struct.pack(f">{count}Q", *stretch.seqs)
        return b"".join((fixed, wanted, seqs, bodies.head[1:], bodies.joined()))
    packets = zip(stretch.seqs, bodies or (b"",) * len(stretch.seqs), strict=True)
    return fixed + wanted + counted([_PACKET.pack(seq, len(body)) + body for seq, body in packets])


def _read_stretch(body: ByteReader) -> Stretch:
    ring, (tick,), originator = read_ring(body), body.unpack(PROCESS), read_process(body)
    (mask,) = body.unpack(PROCESS)
    flags = read_flag(body, _SAFE | _HOLLOW | _INTEREST | _ALIKE)
    interest = read_interest(body) if flags & _INTEREST else None
    seqs, bodies = _read_alike(body) if flags & _ALIKE else _read_packets(body)
    if not seqs or seqs[-1] > NUMBER_MAX or not _ascend(seqs):
        raise WireError("packets that do not ascend")
    if (flags & _HOLLOW and any(bodies)) or (interest is not None and len(bodies) != 1):
        raise WireError("a stretch that contradicts itself")
    bodies = () if flags & _HOLLOW else bodies
    return Stretch(ring, sane(tick), originator, seqs, bodies, bool(flags & _SAFE), mask, interest)


def _ascend(seqs: tuple[int, ...]) -> bool:
    is_row = seqs == tuple(range(seqs[0], seqs[0] + len(seqs)))
    return is_row or all(one < other for one, other in pairwise(seqs))


def _read_alike(body: ByteReader) -> tuple[tuple[int, ...], Sequence[bytes]]:
    (count,) = body.unpack(COUNT)
    if count > PACKETS_MAX:
        raise WireError(f"{count} packets, more than {PACKETS_MAX}")
    seqs = body.numbers(count, "Q")
    each = body.byte()
    head = bytes((0, each)) + body.take(DESCRIPTOR_SIZE * each)
    bodies = bodies_from(head, body.data, body.at, count)
    body.at = len(body.data)
    return seqs, bodies


def _read_packets(body: ByteReader) -> tuple[tuple[int, ...], Sequence[bytes]]:
    packets = read_list(body, _read_packet, PACKETS_MAX, "packets")
    return tuple(seq for seq, _ in packets), tuple(data for _, data in packets)


def _read_packet(body: ByteReader) -> tuple[int, bytes]:
    seq, size = body.unpack(_PACKET)
    return sane(seq), body.take(size)


_KINDS: Final = {int(kind): kind for kind in ItemKind}
_READERS: Final[dict[ItemKind, Callable[[ByteReader], Item]]] = {
    ItemKind.HELLO: lambda body: HelloItem(read_ring(body)),
    ItemKind.END: _read_end,
    ItemKind.NOTICE: _read_notice,
    ItemKind.MARK: _read_mark,
    ItemKind.TOPOLOGY: _read_topology,
    ItemKind.HOLD: _read_hold,
    ItemKind.INTEREST: read_interest,
    ItemKind.STRETCH: _read_stretch,
}
