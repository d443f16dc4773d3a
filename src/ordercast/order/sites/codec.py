"""Frames as bytes: a type, then what it says. One decoder, one kind of error: whatever is wrong is a WireError.

Counts are checked against what is there before anything is made.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

from ordercast.model.configuration import ChangeReason
from ordercast.model.errors import WireError
from ordercast.model.ids import ConfigurationId, ProcessId
from ordercast.order.sites.config import FRAGMENTS_MAX
from ordercast.order.sites.frames import (
    BehindFrame,
    Contradiction,
    DataEntry,
    Had,
    ProposeFrame,
    QueueFrame,
    ReachRecord,
    ReadyFrame,
    RecordLink,
    RecoveredFrame,
    RoutesFrame,
    SpreadFrame,
    StateFrame,
    UnitFrame,
    UpdateFrame,
    VectorFrame,
    WideFrame,
)
from ordercast.order.sites.interest import DESTINATIONS_MAX
from ordercast.order.sites.units import decode_body, encode_body
from ordercast.order.sites.views import Fragment, SiteEdge, WideProposal
from ordercast.wire.codec import NUMBER_MAX
from ordercast.wire.reader import ByteReader

StampRange = tuple[int, int, int, int]  # first, how far apart, how many; the fragments that they are for

STAMP_MAX = (1 << 62) - 1
APART_MAX = COUNT_MAX = 0xFFFF  # of a range of stamps
STAMPS_MAX = 1 << 20  # in a STATE: windows hold less by far
_REASONS = frozenset(ChangeReason)
_ID = struct.Struct(">QQ")
_UNIT = struct.Struct(">8sBHQQQQ")
_UPDATE = struct.Struct(">8sBQQQBH")
_QUEUE = struct.Struct(">H")
_FRAGMENT = struct.Struct(">QQHBH")
_RECORD = struct.Struct(">QQQQB")
_LINK = struct.Struct(">QLQQ")
_EDGE = struct.Struct(">BBLLQQ")
_PROPOSAL = struct.Struct(">QQBBH")
_SPREAD = struct.Struct(">QQBQ")
_STATE = struct.Struct(">QQQQQQBQQBHB")
_STREAM = struct.Struct(">QLL")  # line, ranges of stamps, ranges of hollow ones
_HELD = struct.Struct(">QHH")  # a range: the first stamp, how far apart they are, how many
_HOLLOW = struct.Struct(">QHHQ")  # likewise, and the fragments that they are for
_READY = struct.Struct(">QQQ")
_RECOVERED = struct.Struct(">QQ8sBQQQ")
_ROUTES = struct.Struct(">8sQH")
_VECTOR = struct.Struct(">8sQB")
_HAD = struct.Struct(">BQL")
_VIEW = struct.Struct(">8s")
UNIT_HEAD_SIZE = 1 + _UNIT.size
UNITS_REMEMBERED = 1024


def encode(frame: WideFrame) -> bytes:
    """Return the bytes of a frame."""
    number = _NUMBERS[type(frame)]
    return bytes((number,)) + _ENCODERS[number](frame)


def decode(data: bytes) -> WideFrame:
    """Return the frame that these bytes are."""
    return _unit_from(data) if data[:1] == _UNIT_TYPE else _decode(data)


@lru_cache(maxsize=UNITS_REMEMBERED)
def _unit_from(data: bytes) -> WideFrame:
    """Decode a unit. A representative meets each twice: when a link brings it, and on its tape."""
    return _decode(data)


def _decode(data: bytes) -> WideFrame:
    reader = ByteReader(data, 0, "the frame")
    decoder = _DECODERS.get(reader.byte())
    if decoder is None:
        raise WireError(f"there is no frame of type {data[0]}")
    frame = decoder(reader)
    reader.end()
    return frame


def _stamp(value: int) -> int:
    if value > STAMP_MAX:
        raise WireError("a stamp beyond all bounds")
    return value


def _configuration(seq: int, representative: int) -> ConfigurationId:
    if seq > NUMBER_MAX:
        raise WireError("a view beyond all bounds")
    return ConfigurationId(seq, ProcessId(representative))


def _rank(rank: int) -> int:
    if rank >= FRAGMENTS_MAX:
        raise WireError(f"rank {rank}, more than the limit of {FRAGMENTS_MAX}")
    return rank


# Data


def _encode_data(frame: DataEntry) -> bytes:
    count = len(frame.destinations)
    return b"".join((frame.view, struct.pack(f">B{count}L", count, *frame.destinations), encode_body(frame.body)))


def _decode_data(reader: ByteReader) -> DataEntry:
    view, count = reader.take(8), reader.byte()
    if count > DESTINATIONS_MAX:
        raise WireError(f"{count} destinations, the limit is {DESTINATIONS_MAX}")
    return DataEntry(view, reader.numbers(count, "L"), decode_body(reader.rest()))


def _encode_unit(frame: UnitFrame) -> bytes:
    return _UNIT.pack(*frame[:7]) + encode_body(frame.body)


def _decode_unit(reader: ByteReader) -> UnitFrame:
    view, rank, place, stamp, previous, aru, needs = reader.unpack(_UNIT)
    if previous >= _stamp(stamp):
        raise Contradiction("a unit that follows a later one")
    return UnitFrame(view, _rank(rank), place, stamp, previous, _stamp(aru), needs, decode_body(reader.rest()))


def _encode_update(frame: UpdateFrame) -> bytes:
    return _UPDATE.pack(*frame)


def _decode_update(reader: ByteReader) -> UpdateFrame:
    view, rank, through, line, aru, behind, queue = reader.unpack(_UPDATE)
    if through >= _stamp(line) or behind > 1:
        raise WireError("a promise below its last unit")
    return UpdateFrame(view, _rank(rank), through, line, _stamp(aru), bool(behind), queue)


# Who is there


def _encode_fragment(fragment: Fragment) -> bytes:
    members = struct.pack(f">{len(fragment.members)}Q", *fragment.members)
    return _FRAGMENT.pack(*fragment.ring, fragment.site, fragment.reason, len(fragment.members)) + members


def _decode_fragment(reader: ByteReader) -> Fragment:
    seq, representative, site, reason, count = reader.unpack(_FRAGMENT)
    members = tuple(ProcessId(member) for member in reader.numbers(count, "Q"))
    ring = _configuration(seq, representative)
    if not members or members[0] != ring.representative or list(members) != sorted(set(members)) or not members[0]:
        raise WireError("a fragment whose members are none")
    if reason not in _REASONS:
        raise WireError(f"a fragment for reason {reason}")
    return Fragment(ring, site, members, ChangeReason(reason))


def _encode_record(record: ReachRecord) -> bytes:
    head = _RECORD.pack(record.number, *record.view, record.seq, len(record.links))
    links = b"".join(_LINK.pack(link.peer, link.cost, *link.tags) for link in record.links)
    return head + links + _encode_fragment(record.fragment)


def _decode_record(reader: ByteReader) -> ReachRecord:
    number, seq, representative, highest, count = reader.unpack(_RECORD)
    links = []
    for _ in range(count):
        peer, cost, mine, theirs = reader.unpack(_LINK)
        links.append(RecordLink(ProcessId(peer), cost, (mine, theirs)))
    if highest > NUMBER_MAX:
        raise WireError("a view beyond all bounds")
    return ReachRecord(number, _decode_fragment(reader), tuple(links), _configuration(seq, representative), highest)


def _encode_propose(frame: ProposeFrame) -> bytes:
    proposal = frame.proposal
    counts = len(proposal.fragments), proposal.reason, len(proposal.edges)
    edges = _encode_edges(proposal.edges)
    return _PROPOSAL.pack(*proposal.id, *counts) + b"".join(map(_encode_fragment, proposal.fragments)) + edges


def _decode_propose(reader: ByteReader) -> ProposeFrame:
    seq, coordinator, fragments, reason, edges = reader.unpack(_PROPOSAL)
    if reason not in _REASONS:
        raise WireError(f"a proposal for reason {reason}")
    if not 0 < fragments <= FRAGMENTS_MAX:
        raise WireError(f"{fragments} fragments, the limit is {FRAGMENTS_MAX}")
    listed = tuple(_decode_fragment(reader) for _ in range(fragments))
    members = [member for fragment in listed for member in fragment.members]
    if len(set(members)) < len(members) or list(listed) != sorted(listed, key=lambda one: one.representative):
        raise WireError("fragments that share members, or are not in order")
    joined = _decode_edges(reader, edges, fragments)
    return ProposeFrame(WideProposal(_configuration(seq, coordinator), listed, joined, reason))


def _encode_edges(edges: Sequence[SiteEdge]) -> bytes:
    return b"".join(_EDGE.pack(*edge[:4], *edge.tags) for edge in edges)


def _decode_edges(reader: ByteReader, count: int, fragments: int) -> tuple[SiteEdge, ...]:
    edges = []
    for _ in range(count):
        low, high, forth, back, mine, theirs = reader.unpack(_EDGE)
        if not low < high < fragments:
            raise WireError("an edge between fragments that are not listed")
        edges.append(SiteEdge(low, high, forth, back, (mine, theirs)))
    return tuple(edges)


# Routes anew


def _encode_routes(frame: RoutesFrame) -> bytes:
    return _ROUTES.pack(frame.view, frame.epoch, len(frame.edges)) + _encode_edges(frame.edges)


def _decode_routes(reader: ByteReader) -> RoutesFrame:
    view, epoch, count = reader.unpack(_ROUTES)
    if not 0 < epoch <= NUMBER_MAX:
        raise WireError("an epoch of routes beyond all bounds")
    return RoutesFrame(view, epoch, _decode_edges(reader, count, FRAGMENTS_MAX))


def _encode_vector(frame: VectorFrame) -> bytes:
    parts = [_VECTOR.pack(frame.view, frame.epoch, len(frame.had))]
    for had in frame.had:
        parts += (_HAD.pack(had.rank, had.through, len(had.beyond)), struct.pack(f">{len(had.beyond)}Q", *had.beyond))
    return b"".join(parts)


def _decode_vector(reader: ByteReader) -> VectorFrame:
    view, epoch, count = reader.unpack(_VECTOR)
    if epoch > NUMBER_MAX or count > FRAGMENTS_MAX:
        raise WireError("an epoch of routes beyond all bounds, or too many streams")
    had = []
    for _ in range(count):
        rank, through, beyond = reader.unpack(_HAD)
        had.append(Had(_rank(rank), _stamp(through), tuple(reader.numbers(beyond, "Q"))))
    return VectorFrame(view, epoch, tuple(had))


# An attempt


def _encode_spread(frame: SpreadFrame) -> bytes:
    return _SPREAD.pack(*frame.attempt, frame.source, frame.needs) + frame.frame


def _decode_spread(reader: ByteReader) -> SpreadFrame:
    seq, coordinator, source, needs = reader.unpack(_SPREAD)
    return SpreadFrame(_configuration(seq, coordinator), _rank(source), needs, reader.rest())


def _encode_state(frame: StateFrame) -> bytes:
    numbers = frame.process, *frame.view, frame.place[0], frame.place[1], frame.clock, frame.seq, frame.rank
    head = _STATE.pack(*frame.attempt, *numbers, len(frame.commits), len(frame.lines))
    parts = [head, struct.pack(f">{len(frame.commits)}Q", *frame.commits)]
    hollow = frame.hollow or ((),) * len(frame.lines)
    for line, held, hollows in zip(frame.lines, frame.held, hollow, strict=True):
        ranges, hollow_ranges = _ranges_of((stamp, 0) for stamp in held), _ranges_of(hollows)
        parts.append(_STREAM.pack(line, len(ranges), len(hollow_ranges)))
        parts += (_HELD.pack(*each[:3]) for each in ranges)
        parts += (_HOLLOW.pack(*each) for each in hollow_ranges)
    return b"".join(parts)


def _ranges_of(stamps: Iterable[tuple[int, int]]) -> list[StampRange]:
    """Return stamps, with what they are for, as ranges: those in a row that are as far apart, and for the same."""
    found: list[StampRange] = []
    for stamp, needs in stamps:
        if found:
            first, apart, count, same = found[-1]
            gap = stamp - first - apart * (count - 1)
            if same == needs and 0 < gap <= APART_MAX and count < COUNT_MAX and (count == 1 or gap == apart):
                found[-1] = first, gap, count + 1, needs
                continue
        found.append((stamp, 1, 1, needs))
    return found


def _decode_state(reader: ByteReader) -> StateFrame:
    fields = reader.unpack(_STATE)
    process, seq, representative, stamp, rank, clock, highest, own_rank, commits, streams = fields[2:]
    if streams > FRAGMENTS_MAX or highest > NUMBER_MAX:
        raise WireError(f"{streams} streams, or a view beyond all bounds")
    said = tuple(ProcessId(one) for one in reader.numbers(commits, "Q"))
    lines, held, hollow = [], [], []
    room = STAMPS_MAX
    for _ in range(streams):
        line, ranges, hollow_ranges = reader.unpack(_STREAM)
        whole = _stamps_from(((*reader.unpack(_HELD), 0) for _ in range(ranges)), room)
        without = _stamps_from((reader.unpack(_HOLLOW) for _ in range(hollow_ranges)), room - len(whole))
        room -= len(whole) + len(without)
        lines.append(_stamp(line))
        held.append(tuple(stamp for stamp, _ in whole))
        hollow.append(tuple(without))
    view, place = _configuration(seq, representative), (_stamp(stamp), _rank(rank))
    attempt = _configuration(*fields[:2])
    said_of = tuple(lines), tuple(held), place, said, _stamp(clock), highest, _rank(own_rank)
    return StateFrame(attempt, ProcessId(process), view, *said_of, tuple(hollow) if any(hollow) else ())


def _stamps_from(ranges: Iterable[StampRange], room: int) -> list[tuple[int, int]]:
    """Return the stamps of ranges, with what they are for; there is room for so many."""
    found: list[tuple[int, int]] = []
    for first, apart, count, needs in ranges:
        if not apart or not count or (found and first <= found[-1][0]):
            raise WireError("stamps that do not rise")
        if len(found) + count > room:
            raise WireError("more stamps than any window has")
        last = _stamp(first + apart * (count - 1))
        found += [(stamp, needs) for stamp in range(first, last + 1, apart)]
    return found


def _encode_ready(frame: ReadyFrame) -> bytes:
    return _READY.pack(*frame.attempt, frame.process)


def _decode_ready(reader: ByteReader) -> ReadyFrame:
    seq, coordinator, process = reader.unpack(_READY)
    return ReadyFrame(_configuration(seq, coordinator), ProcessId(process))


def _encode_recovered(frame: RecoveredFrame) -> bytes:
    return _RECOVERED.pack(*frame.attempt, *frame[1:6]) + encode_body(frame.body)


def _decode_recovered(reader: ByteReader) -> RecoveredFrame:
    seq, coordinator, view, rank, originator, stamp, needs = reader.unpack(_RECOVERED)
    attempt = _configuration(seq, coordinator)
    body = decode_body(reader.rest())
    return RecoveredFrame(attempt, view, _rank(rank), ProcessId(originator), _stamp(stamp), needs, body)


def _encode_behind(frame: BehindFrame) -> bytes:
    return bytes((frame.is_behind,))


def _decode_behind(reader: ByteReader) -> BehindFrame:
    return BehindFrame(bool(reader.byte()))


def _encode_queue(frame: QueueFrame) -> bytes:
    return _QUEUE.pack(frame.queue_ms)


def _decode_queue(reader: ByteReader) -> QueueFrame:
    return QueueFrame(*reader.unpack(_QUEUE))


_CODECS: tuple[tuple[type, Callable[[Any], bytes], Callable[[ByteReader], WideFrame]], ...] = (
    (DataEntry, _encode_data, _decode_data),
    (UnitFrame, _encode_unit, _decode_unit),
    (UpdateFrame, _encode_update, _decode_update),
    (ReachRecord, _encode_record, _decode_record),
    (ProposeFrame, _encode_propose, _decode_propose),
    (SpreadFrame, _encode_spread, _decode_spread),
    (StateFrame, _encode_state, _decode_state),
    (ReadyFrame, _encode_ready, _decode_ready),
    (RecoveredFrame, _encode_recovered, _decode_recovered),
    (BehindFrame, _encode_behind, _decode_behind),
    (RoutesFrame, _encode_routes, _decode_routes),
    (VectorFrame, _encode_vector, _decode_vector),
    (QueueFrame, _encode_queue, _decode_queue),
)
_NUMBERS = {kind: number for number, (kind, _, _) in enumerate(_CODECS, 1)}
_ENCODERS = {number: encoder for number, (_, encoder, _) in enumerate(_CODECS, 1)}
_DECODERS = {number: decoder for number, (_, _, decoder) in enumerate(_CODECS, 1)}
_UNIT_TYPE = bytes((_NUMBERS[UnitFrame],))
