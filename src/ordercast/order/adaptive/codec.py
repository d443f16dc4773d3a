"""The packets of the adaptive engine, as bytes and back. Each has the header of a ring's data packets, with a kind of
its own, so that whoever reads headers, sends again or wraps for another ring reads them too:

    DIRECT  place, the lowest 44 bits of the sender's aru and how far below it lies what it knows to be safe (20 bits),
            number in its stream; then descriptors and payloads as in a data packet
            with CONTROL: number 4, base 8, block 2, ahead 2, next book-keeper 2, count 2, weights 2 each
    MARK    next, aru, last; then tick 8, stable 8, waiting 4, bits 1
            with bit 2 an echo: member 2, tick 8, delay 8, spread 4
    ASK     0, aru, 0; then count 1, and for each wish originator 2, first 8, last 8 (last 0: a mark after tick `first`)

Decoders raise WireError and nothing else.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

from ordercast.model.errors import WireError
from ordercast.model.ids import ProcessId, Seq
from ordercast.order.adaptive.slots import Distribution, Place
from ordercast.wire import kernel
from ordercast.wire.head import OPENING
from ordercast.wire.header import FIXED, HEADER, HEADER_SIZE, NUMBERS, Heading
from ordercast.wire.reader import ByteReader
from ordercast.wire.run import PacketRun, parse_data

CONTROL = 64  # flag of a packet that carries a distribution: nobody delivers it
RESTS = 128  # flag: its sender gives up places behind it, as many as its rank says
ASKS_MAX = 64  # wishes of an Ask
NUMBER_MAX = (1 << 62) - 1  # no counter gets there

MARK_BODY = struct.Struct(">QQIB")  # tick, stable, waiting, bits
MARK = struct.Struct(HEADER.format + MARK_BODY.format[1:])  # a mark without an echo
ASK_WISH = struct.Struct(">HQQ")  # originator's place among the members, first, last
ECHO = struct.Struct(">HQQI")  # member, tick, delay, spread
DISTRIBUTION = struct.Struct(">IQHHHH")  # number, base, block, ahead, next book-keeper, count
KNOWN_AT = struct.Struct(">43xQ")
BELOW_BITS = 20  # of what a packet says its sender knows: how far the safe place lies below the aru,
BELOW_MAX = (1 << BELOW_BITS) - 1  # or so far, or farther: nothing is said of it
ARU_BITS = (1 << 64 - BELOW_BITS) - 1  # of the aru its lowest: it is not half as far from the packet's place
BEHIND = 1  # bit of a mark: the sender's application cannot take more
ECHOES = 2  # and: it says which mark of another was heard last
SPREAD_MAX = 0xFFFFFFFF  # a spread that is not known


class AdaptiveKind(IntEnum):
    """Kinds of its own, behind those of the membership. Append only."""

    DIRECT = 9
    MARK = 10
    ASK = 11


class Echo(NamedTuple):
    """What a mark says of another's mark, and of its sender's round trips."""

    member: int  # whose mark was heard
    tick: int  # which
    delay: int  # nanoseconds since
    spread: int  # deviation of the sender's own round trips, in microseconds


class Mark(NamedTuple):
    """A statement of one member; only its newest matters, and anybody may pass it on."""

    originator: int  # place among the members
    tick: int  # rises with each mark
    last: int  # number of its last packet
    next: Place  # it uses no place below this but for those packets
    aru: Place  # it knows everything up to here
    stable: Place  # and that all members do up to here
    waiting: int  # packets that it would send
    is_behind: bool  # its application cannot take more deliveries
    echo: Echo | None = None


class Wish(NamedTuple):
    """One wish of an Ask: packets `first` to `last` of a stream, or, if last is 0, a mark later than tick `first`."""

    originator: int
    first: int
    last: int


class Ask(NamedTuple):
    transmitter: ProcessId
    aru: Place
    wishes: tuple[Wish, ...]


# What a sender knows: everything up to the first place, and that all members do up to the second.
KnownPlaces = tuple[Place, Place]
# Packets in a row: the number of the first in its stream, what their sender knew (garbage in what came through an
# exchange), the flags, and who transmitted them.
Arrived = tuple[PacketRun, int, KnownPlaces, int, ProcessId]


def parse_direct(data: bytes, start: int, size: int, heading: Heading) -> Arrived:
    """Read packets from `start` on, as many as are alike. `heading` is that of direct packets."""
    try:
        _, length, _, transmitter, _, flags, count, place, seq, packed, number = HEADER.unpack_from(data, start)
    except struct.error:
        raise WireError("shorter than a header") from None
    if not 1 <= number <= NUMBER_MAX or not 1 <= seq <= NUMBER_MAX:
        raise WireError("a place or a number that cannot be true")
    run = kernel.read_run(data, start, size, heading, seq) if flags < CONTROL else None
    if run is None:
        if not heading.is_of(data, start):
            raise WireError("another cluster's packet")
        run = _parse_one(data, start, start + length, min(len(data), start + size), flags, count, place, seq, heading)
    elif run.count > 1:
        if run.timestamp(run.last) != number + run.count - 1:
            raise WireError("packets in a row whose numbers are not")
        return run, number, known_in(run), flags, transmitter
    return run, number, _known_from(packed, run.last), flags, transmitter


def _parse_one(
    data: bytes, at: int, end: int, limit: int, flags: int, count: int, place: int, seq: int, heading: Heading
) -> PacketRun:
    if end > limit or end - at < HEADER_SIZE:
        raise WireError("a direct packet is cut short")
    originator = heading.originator(place)
    if flags & CONTROL:
        distribution_fields(data[at:end])
        return PacketRun(data, at, end - at, Seq(seq), originator)
    return parse_data(data, flags & ~RESTS, count, originator, Seq(seq), at, end)


def known_in(run: PacketRun) -> KnownPlaces:
    """Return what the sender of packets knew at the last of them: packets in a row may have been sent one by one. The
    aru may cover the packet itself. Garbage in one that came through an exchange."""
    return _known_from(KNOWN_AT.unpack_from(run.data, run.at + (run.count - 1) * run.size)[0], run.last)


def _known_from(packed: int, place: Place) -> KnownPlaces:
    low, below, half = packed >> BELOW_BITS, packed & BELOW_MAX, ARU_BITS // 2
    aru = max(0, place - half + (low - place + half & ARU_BITS))
    return aru, aru - below if below < min(aru, BELOW_MAX) else 0


def packed_known(aru: Place, safe: Place) -> int:
    """Return what a packet says its sender knows, as one number."""
    return (aru & ARU_BITS) << BELOW_BITS | min(aru - safe, BELOW_MAX)


def _header(heading: Heading, me: ProcessId, size: int, flags: int, place: int, numbers: tuple[int, int, int]) -> bytes:
    fixed = FIXED.pack(OPENING, size, heading.cluster, me, heading.ring, flags, 0, place)
    return fixed + NUMBERS.pack(*numbers)


def build_distribution(
    heading: Heading, me: ProcessId, distribution: Distribution, place: Place, known: KnownPlaces, number: int
) -> PacketRun:
    """Return the packet that announces a distribution, at a place of its sender."""
    weights = distribution.weights
    fixed = DISTRIBUTION.pack(
        *(distribution.number, distribution.base, distribution.block, distribution.ahead),
        *(distribution.keeper, len(weights)),
    )
    body = fixed + struct.pack(f">{len(weights)}H", *weights)
    size = HEADER_SIZE + len(body)
    header = _header(heading, me, size, CONTROL, heading.places[me], (place, packed_known(*known), number))
    return PacketRun(header + body, 0, size, Seq(place), me)


DistributionFields = tuple[int, Place, int, int, tuple[int, ...], int]  # as `Distribution` takes them


def distribution_fields(packet: bytes) -> DistributionFields:
    """Return what a packet with CONTROL announces, without working out whose slots are whose: that costs time."""
    body = ByteReader(packet, HEADER_SIZE, "a distribution")
    number, base, block, ahead, keeper, count = body.unpack(DISTRIBUTION)
    weights = tuple(body.numbers(count, "H"))
    body.end()
    if not weights or min(weights) < 1 or sum(weights) > 0xFFFF or block < 1 or base > NUMBER_MAX:
        raise WireError("a distribution that cannot be")
    if keeper >= count:
        raise WireError("a distribution whose next book-keeper is no member")
    return number, base, block, ahead, weights, keeper


def encode_mark(heading: Heading, me: ProcessId, mark: Mark) -> bytes:
    """Return the mark as this process transmits it; `heading` is that of marks."""
    originator, tick, last, following, aru, stable, waiting, is_behind, echo = mark
    bits = BEHIND * is_behind | ECHOES * (echo is not None)
    size = MARK.size if echo is None else MARK.size + ECHO.size
    head = OPENING, size, heading.cluster, me, heading.ring, 0, 0, originator, following, aru, last
    packet = MARK.pack(*head, tick, stable, waiting, bits)
    return packet if echo is None else packet + ECHO.pack(*echo)


def decode_mark(packet: bytes, heading: Heading) -> Mark:
    """Return the mark in a packet of this ring."""
    echo: Echo | None = None
    if len(packet) == MARK.size:
        _, length, _, _, _, _, _, place, seq, aru, last, tick, stable, waiting, bits = MARK.unpack(packet)
        if length != MARK.size or bits & ECHOES or place >= len(heading.members):
            raise WireError("a mark that is cut short, or of nobody")
    else:
        place, seq, aru, last = _fields(packet, heading)
        body = ByteReader(packet, HEADER_SIZE, "a mark")
        tick, stable, waiting, bits = body.unpack(MARK_BODY)
        echo = Echo(*body.unpack(ECHO)) if bits & ECHOES else None
        body.end()
    if max(seq, aru, last, tick, stable) > NUMBER_MAX or bits > BEHIND | ECHOES or not tick or stable > aru:
        raise WireError("a mark that contradicts itself")
    if echo is not None:
        heading.originator(echo.member)
    return Mark(place, tick, last, seq, aru, stable, waiting, bool(bits & BEHIND), echo)


def encode_ask(heading: Heading, me: ProcessId, aru: Place, wishes: Sequence[Wish]) -> bytes:
    """Return the request of this process; `heading` is that of asks."""
    body = bytes((len(wishes),)) + b"".join(ASK_WISH.pack(*wish) for wish in wishes)
    return _header(heading, me, HEADER_SIZE + len(body), 0, heading.places[me], (0, aru, 0)) + body


def decode_ask(packet: bytes, heading: Heading) -> Ask:
    """Return the request in a packet of this ring."""
    place, _, aru, _ = _fields(packet, heading)
    body = ByteReader(packet, HEADER_SIZE, "an Ask")
    count = body.byte()
    if count > ASKS_MAX:
        raise WireError(f"{count} wishes, more than the limit of {ASKS_MAX}")
    wishes = tuple(Wish(*body.unpack(ASK_WISH)) for _ in range(count))
    body.end()
    for wish in wishes:
        heading.originator(wish.originator)
        if max(wish.first, wish.last) > NUMBER_MAX or (wish.last and wish.last < wish.first):
            raise WireError("a wish that cannot be")
    return Ask(heading.members[place], aru, wishes)


def _fields(packet: bytes, heading: Heading) -> tuple[int, int, int, int]:
    """Return place, seq, round and timestamp of a whole packet."""
    if len(packet) < HEADER_SIZE:
        raise WireError("shorter than a header")
    _, length, _, _, _, _, _, place, seq, second, third = HEADER.unpack_from(packet)
    if length != len(packet):
        raise WireError(f"the head says {length} bytes, {len(packet)} came")
    heading.originator(place)
    return place, seq, second, third
