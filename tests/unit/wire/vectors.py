"""The messages whose bytes are pinned in `tests/vectors`, and the text in which they are pinned.

A vector is written by hand here twice: once as a message, once as a list of field groups with their sizes, so that the
layout is checked against something that is not the code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple

from ordercast.model.configuration import ChangeReason
from ordercast.model.ids import (
    NOBODY,
    ConfigurationId,
    Incarnation,
    NodeId,
    ProcessId,
    Seq,
    TokenSeq,
    process_id_from,
    process_text,
)
from ordercast.model.notes import NetworkState
from ordercast.model.roster import Claim, Place, Roster
from ordercast.model.roster import Entry as RosterEntry
from ordercast.model.service import Service
from ordercast.networks.probe import Probe, decode_probe, encode_probe
from ordercast.wire.codec import decode, encode
from ordercast.wire.head import HEAD_SIZE, cluster_id_from, kind_of, transmitter_of
from ordercast.wire.header import (
    ORIGIN_SIZE,
    PART_SHIFT,
    RECOVERED,
    RETRANSMITTED,
    SAFE,
    Heading,
    MessageKind,
    Part,
    digest_of,
    origin_of,
    recovered,
    retransmitted,
    unwrapped,
)
from ordercast.wire.messages import (
    Announcement,
    CommitEntry,
    CommitToken,
    Join,
    Leave,
    RosterCopy,
    Token,
    Wake,
    WireMessage,
)
from ordercast.wire.pieces import BODY_AT, PIECE, Pieces
from ordercast.wire.run import build_data, parse_packet
from tests.packets import header_of

CLUSTER = cluster_id_from("vectors")
LINE = 16

Group = tuple[int, str]  # how many bytes, and what they are


class Entry(NamedTuple):
    """One message, or part of a message, in a data packet."""

    sender: int
    service: Service
    data: bytes


@dataclass(frozen=True, slots=True)
class DataPacket:
    """What a data packet says, spelled out."""

    ring: ConfigurationId
    flags: int
    transmitter: ProcessId
    originator: ProcessId
    seq: Seq
    round: int
    timestamp: int
    entries: tuple[Entry, ...]
    old_ring: ConfigurationId | None = None  # only with RECOVERED
    old_seq: Seq | None = None


@dataclass(frozen=True, slots=True)
class Piece:
    """What a piece of a larger control message says, spelled out."""

    sender: ProcessId
    number: int
    place: int
    count: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Vector:
    name: str
    title: str
    message: WireMessage | Probe | DataPacket | Piece
    groups: tuple[Group, ...]
    encode: Callable[[], bytes]
    decode: Callable[[bytes], WireMessage | Probe | DataPacket | Piece]


def process(node: int, incarnation: int = 1) -> ProcessId:
    return process_id_from(NodeId(node), Incarnation(incarnation))


def render(vector: Vector) -> str:
    """The whole text of a vector's file."""
    pinned_by = "tests/unit/wire/test_vectors.py; ORDERCAST_REWRITE=1 renews it, and the difference is reviewed"
    described = [*_described(vector.message), ""]
    return page_of(vector.title, pinned_by, vector.encode(), vector.groups, described)


def page_of(title: str, pinned_by: str, data: bytes, groups: Sequence[Group], described: Sequence[str] = ()) -> str:
    """Return the text in which bytes are pinned: a line for each group of fields, or several if it is long."""
    lines = [f"# {title}.", f"# Pinned by {pinned_by}.", "", *described, "bytes", ""]
    at = 0
    for size, what in groups:
        for start in range(at, at + size, LINE):
            piece = data[start : min(start + LINE, at + size)].hex(" ")
            lines.append(f"{start:04x}  {piece:<{3 * LINE}} # {what if start == at else '...'}")
        at += size
    return "\n".join(lines) + "\n"


def bytes_in(text: str) -> bytes:
    """The bytes that a vector's file pins."""
    _, _, table = text.partition("\nbytes\n")
    rows = [line.partition("#")[0].split()[1:] for line in table.splitlines()]
    return bytes.fromhex("".join("".join(row) for row in rows))


def _described(message: WireMessage | Probe | DataPacket | Piece) -> list[str]:
    lines = [f"message = {type(message).__name__}", "cluster = vectors"]
    for field in fields(message):
        value = getattr(message, field.name)
        if isinstance(value, tuple) and value and isinstance(value[0], CommitEntry | Entry):
            lines += [f"{field.name} =", *(f"  {_entry_text(item)}" for item in value)]
        elif value is not None:
            lines.append(f"{field.name} = {_text(field.name, value)}")
    return lines


def _entry_text(item: CommitEntry | Entry) -> str:
    if isinstance(item, Entry):
        return f"sender {item.sender}, {item.service.name}, {item.data!r}"
    filled = "filled" if item.filled else "not filled"
    received = "received" if item.received else "not received"
    old = f"old_ring {item.old_ring}, old_aru {item.old_aru}, high_delivered {item.high_delivered}"
    return f"{_process_text(item.process)}, {filled}, {old}, {received}"


PROCESSES = ("sender", "transmitter", "originator", "aru_id", "blamed", "candidates", "failed", "members", "heard")


def _process_text(number: int) -> str:
    return "nobody" if number == NOBODY else process_text(ProcessId(number))


def _text(name: str, value: object) -> str:
    if isinstance(value, ConfigurationId | ChangeReason):
        return value.name if isinstance(value, ChangeReason) else str(value)
    if name in PROCESSES:
        return " ".join(map(_process_text, value)) if isinstance(value, tuple) else _process_text(int(str(value)))
    if isinstance(value, tuple):
        return " ".join(map(str, value))
    if name == "flags":
        names = ((SAFE, "SAFE"), (RECOVERED, "RECOVERED"), (RETRANSMITTED, "RETRANSMITTED"))
        flags = int(str(value))
        part = [f"{Part(flags >> PART_SHIFT).name} PART"] if flags >> PART_SHIFT else []
        return ", ".join([*(text for bit, text in names if flags & bit), *part]) or "none"
    return repr(value) if isinstance(value, bytes) else str(value)


HEAD_GROUPS: tuple[Group, ...] = (
    (2, "magic"),
    (1, "version"),
    (1, "key"),
    (2, "length of the packet"),
    (8, "cluster"),
    (8, "transmitter"),
)
CONTROL_GROUPS: tuple[Group, ...] = (*HEAD_GROUPS, (1, "kind"), (16, "ring: seq, representative"))
HEADER_GROUPS: tuple[Group, ...] = (
    *HEAD_GROUPS,
    (1, "kind"),
    (8, "ring: digest"),
    (1, "flags"),
    (1, "count"),
    (2, "originator: its place"),
    (8, "seq"),
    (8, "token round"),
    (8, "timestamp"),
)


def _data_groups(packet: DataPacket) -> tuple[Group, ...]:
    groups = list(HEADER_GROUPS)
    if packet.flags & RECOVERED:
        groups += [(8, "old ring: digest"), (8, "old seq"), (2, "originator: its old place")]
    count = len(packet.entries)
    groups += [(4 * count, "senders"), (2 * count, "lengths"), (count, "services")]
    groups += [(len(entry.data), f"payload {slot}") for slot, entry in enumerate(packet.entries)]
    return tuple(groups)


def _built(packet: DataPacket) -> bytes:
    """As its originator numbers it."""
    entries = [(entry.sender, len(entry.data), int(entry.service), entry.data) for entry in packet.entries]
    flags = packet.flags & ~RETRANSMITTED
    me = packet.originator
    return build_data(HEADINGS[packet.ring], flags, entries, me, packet.seq, packet.round, packet.timestamp).packet(
        packet.seq
    )


def read_data(packet: bytes) -> DataPacket:
    """By the functions that a receiver uses."""
    assert kind_of(packet, CLUSTER) == MessageKind.DATA
    header = header_of(packet)
    flags, seq = header.flags, header.seq
    ring = _ring_of(header.digest)
    old_ring = old_seq = None
    run = parse_packet(packet, HEADINGS[ring])
    if flags & RECOVERED:
        assert (run.packet(seq), run.is_safe, run.parcel, run.part) == (packet, flags & SAFE, None, Part.WHOLE)
        digest, old_seq = origin_of(packet)
        old_ring = _ring_of(digest)
        body = unwrapped(packet, HEADINGS[old_ring])
        assert len(body) == len(packet) - ORIGIN_SIZE
        run = parse_packet(body, HEADINGS[old_ring])
    parcel, originator = run.parcel, run.originator
    assert (bool(run.is_safe), run.part) == (bool(flags & SAFE), flags >> PART_SHIFT)
    assert parcel is not None and (*parcel[:2], parcel[5]) == (old_seq or seq, originator, header.messages)
    entries = tuple(Entry(sender, Service(service), data) for sender, service, data in zip(*parcel[2:5], strict=True))
    stamps = seq, header.round, header.timestamp
    return DataPacket(ring, flags, header.transmitter, originator, *stamps, entries, old_ring, old_seq)


def read_piece(packet: bytes) -> Piece:
    assert kind_of(packet, CLUSTER) == MessageKind.PIECE
    _, number, place, count = PIECE.unpack_from(packet, HEAD_SIZE)
    return Piece(transmitter_of(packet), number, place, count, packet[BODY_AT:])


def _ring_of(digest: bytes) -> ConfigurationId:
    return next(ring for ring in HEADINGS if digest_of(ring) == digest)


def _control(name: str, title: str, message: WireMessage, *groups: Group) -> Vector:
    return Vector(
        name,
        title,
        message,
        CONTROL_GROUPS + groups,
        lambda: encode(CLUSTER, message),
        lambda packet: decode(packet, CLUSTER),
    )


def _data(name: str, title: str, packet: DataPacket, build: Callable[[], bytes] | None = None) -> Vector:
    return Vector(name, title, packet, _data_groups(packet), build or (lambda: _built(packet)), read_data)


RING = ConfigurationId(8, process(1))
NEW_RING = ConfigurationId(12, process(1))
HEADINGS = {
    RING: Heading(CLUSTER, RING, (process(1), process(2), process(3, 2))),
    NEW_RING: Heading(CLUSTER, NEW_RING, (process(1), process(3, 2))),
}
PROBE = Probe(RING, process(2), 17, 1, NetworkState.FAULTY, True)

SEVERAL = DataPacket(
    RING,
    0,
    process(2),
    process(2),
    Seq(41),
    17,
    1041,
    (
        Entry(7, Service.AGREED, b"to be"),
        Entry(7, Service.CAUSAL, b""),
        Entry(0xFFFFFFFF, Service.FIFO, b"or not to be, that is the question"),
    ),
)
IN_PARTS = DataPacket(
    RING,
    SAFE | Part.FIRST << PART_SHIFT,
    process(2),
    process(2),
    Seq(42),
    17,
    1042,
    (Entry(9, Service.SAFE, b"the beginning of something larger"),),
)
AGAIN = DataPacket(
    RING,
    RETRANSMITTED,
    process(3, 2),
    process(2),
    Seq(41),
    17,
    1041,
    SEVERAL.entries,
)
WRAPPED = DataPacket(
    NEW_RING,
    SAFE | RECOVERED | Part.FIRST << PART_SHIFT,
    process(3, 2),
    process(2),
    Seq(1),
    1,
    1042,
    IN_PARTS.entries,
    RING,
    Seq(42),
)

TOKEN = Token(
    RING,
    process(3, 2),
    TokenSeq(52),
    17,
    Seq(41),
    Seq(30),
    process(1),
    tuple(map(Seq, (31, 32, 33, 34, 37, 40, 41))),
    5,
    64,
    23,
    1,
    True,
    1041,
    b"room",
    (3, 12, 0),
)
COMMIT = CommitToken(
    NEW_RING,
    process(2),
    TokenSeq(2),
    ChangeReason.TOKEN_LOST,
    (
        CommitEntry(process(1), True, RING, Seq(30), Seq(29), False),
        CommitEntry(process(2), True, RING, Seq(41), Seq(40), True),
        CommitEntry(process(3, 2)),
    ),
    1041,
    b"",
)
JOIN = Join(
    RING,
    process(2),
    6,
    8,
    (process(1), process(2), process(3), process(3, 2)),
    (process(3),),
    4,
    ChangeReason.FAILED_TO_RECEIVE,
    process(3),
    (0xDEADBEEF, 1),
    Claim(3, 0x1122334455667788),
)
ANNOUNCEMENT = Announcement(
    RING, process(2), (process(1), process(2)), (process(1), process(3, 2), process(4)), Claim(3, 0x1122334455667788)
)
ROSTER = Roster(
    3,
    (
        RosterEntry(NodeId(1), "alpha", (Place("10.0.0.1", 4701, 4700), Place("10.1.0.1", 4701, 4700))),
        RosterEntry(NodeId(2), "beta", (Place("fd00::2", 4711, 4710),)),
    ),
    is_ordered=True,
)

CUT = Pieces(CLUSTER, 120).cut(encode(CLUSTER, COMMIT))

VECTORS = (
    _data("data", "A data packet with several whole messages", SEVERAL),
    _data("data-parts", "A data packet with the first part of a larger message, to be delivered safely", IN_PARTS),
    _data(
        "data-retransmitted",
        "The packet of data.txt, sent again on request by another member",
        AGAIN,
        lambda: retransmitted(_built(SEVERAL), AGAIN.transmitter),
    ),
    _data(
        "data-recovered",
        "The packet of data-parts.txt, sent again on a new ring during recovery",
        WRAPPED,
        lambda: recovered(
            retransmitted(_built(IN_PARTS), process(1)),
            IN_PARTS.originator,
            HEADINGS[NEW_RING],
            WRAPPED.transmitter,
            WRAPPED.seq,
            WRAPPED.round,
        ),
    ),
    _control(
        "token",
        "A token with seven requests in three runs",
        TOKEN,
        (8, "token_seq"),
        (8, "seq"),
        (8, "round"),
        (8, "timestamp"),
        (8, "aru"),
        (8, "aru_id"),
        (4, "retransmitted"),
        (4, "budget"),
        (4, "waiting"),
        (2, "behind"),
        (4, "counted: retransmitted"),
        (4, "counted: waiting"),
        (2, "counted: behind"),
        (1, "exchanging"),
        (2, "runs"),
        (2, "extension size"),
        (10, "run: 31 and 3 more"),
        (10, "run: 37 and 0 more"),
        (10, "run: 40 and 1 more"),
        (4, "extension"),
    ),
    _control(
        "commit",
        "A Commit token on its first rotation, two of three members filled",
        COMMIT,
        (8, "token_seq"),
        (8, "timestamp"),
        (1, "reason"),
        (2, "members"),
        (2, "extension size"),
        *(
            group
            for name in ("n1", "n2", "n3'2")
            for group in (
                (9, f"{name}: process, flags"),
                (16, f"{name}: old ring: seq, representative"),
                (16, f"{name}: old_aru, high_delivered"),
            )
        ),
    ),
    _control(
        "join",
        "A Join of four candidates, one of them failed",
        JOIN,
        (8, "number"),
        (8, "ring_seq"),
        (4, "forwards"),
        (1, "reason"),
        (8, "blamed"),
        (2, "candidates"),
        (2, "failed"),
        (1, "digests"),
        (32, "four candidates"),
        (8, "one failed"),
        (8, "two digests"),
        (12, "claim: version and digest of the roster"),
    ),
    _control(
        "announcement",
        "An announcement of a ring of two that hears three",
        ANNOUNCEMENT,
        (2, "members"),
        (2, "heard"),
        (16, "two members"),
        (24, "three heard"),
        (12, "claim: version and digest of the roster"),
    ),
    _control("wake", "A Wake", Wake(RING, process(2))),
    _control("leave", "A Leave", Leave(RING, process(3, 2))),
    _control(
        "roster",
        "A roster that was ordered, of two nodes, the first on two networks",
        RosterCopy(RING, process(2), ROSTER),
        (4, "version"),
        (1, "flags"),
        (2, "entries"),
        (2, "alpha: node"),
        (6, "alpha: length and bytes of its name"),
        (1, "alpha: places"),
        (9, "alpha: 10.0.0.1 with its length, token port, data port"),
        (9, "alpha: 10.1.0.1 likewise"),
        (2, "beta: node"),
        (5, "beta: length and bytes of its name"),
        (1, "beta: places"),
        (21, "beta: fd00::2 with its length, token port, data port"),
    ),
    Vector(
        "probe",
        "A probe of a network that its sender has marked",
        PROBE,
        (*CONTROL_GROUPS, (8, "number"), (1, "network"), (1, "state"), (1, "flags")),
        lambda: encode_probe(CLUSTER, PROBE),
        lambda packet: decode_probe(packet, CLUSTER),
    ),
    Vector(
        "piece",
        "The second of the two pieces in which the Commit token of commit.txt travels where packets have 120 bytes",
        Piece(COMMIT.sender, 1, 1, 2, encode(CLUSTER, COMMIT)[22 + 89 :]),
        (*HEAD_GROUPS, (1, "kind"), (4, "number"), (2, "place"), (2, "count"), (72, "bytes of the message")),
        lambda: CUT[1],
        read_piece,
    ),
)
