"""Units: what a daemon puts on its ring as one entry, messages of one class or a part of a large one. What does not fit
in a packet the ring takes apart and puts together.

    body    part 2, parts 2, runs 1, kind 1, then for each run sender 4, first number 8, count 1, service 1;
            then the length of each message 2, and the messages

A *hollow* body has no lengths and no messages: it tells a site that wants none of them what there was (`interest.py`).
A body that tells what its daemon wants has no runs, and three messages: a flag, digests gained, digests lost.

Messages are numbered per session (originator and sender) within a view. All messages of a unit have one class, so that
a unit is delivered as a whole: reliable ones at once, FIFO ones when everything before them in their sessions was, the
others in the order of all.

Units of one session that follow each other on their own ring, alike, are kept, ordered and passed up as one `UnitRun`:
on the data path of a site nothing is done per unit. Whoever needs single ones asks for them.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import NamedTuple

from ordercast.model.effects import Parcel
from ordercast.model.errors import WireError
from ordercast.model.ids import ProcessId
from ordercast.model.service import SERVICE_MAX, Service
from ordercast.order.sites.views import EVERYBODY, RANK_SLOTS
from ordercast.order.stamped.lanes import Stamp
from ordercast.wire.codec import NUMBER_MAX
from ordercast.wire.header import payloads_from
from ordercast.wire.reader import ByteReader

MESSAGES_MAX = 255  # of a unit: slot 255 of a rank is the transitional view's
_HEAD = struct.Struct(">HHBB")
_RUN = struct.Struct(">LQBB")
_LENGTH = struct.Struct(">H")
BODY_HEAD_SIZE = _HEAD.size
RUN_SIZE = _RUN.size
LENGTH_SIZE = _LENGTH.size
INTEREST_PARTS = 3  # flag, gained, lost
DIGEST_SIZE = 4


class BodyKind(IntEnum):
    """What a body has beside its runs."""

    WHOLE = 0
    HOLLOW = 1
    INTEREST = 2


class DeliveryClass(IntEnum):
    """What a unit waits for."""

    RELIABLE = 0
    FIFO = 1
    AGREED = 2
    SAFE = 3


_CLASSES: dict[int, DeliveryClass] = {
    Service.RELIABLE: DeliveryClass.RELIABLE,
    Service.FIFO: DeliveryClass.FIFO,
    Service.CAUSAL: DeliveryClass.AGREED,
    Service.AGREED: DeliveryClass.AGREED,
    Service.SAFE: DeliveryClass.SAFE,
}


def class_of(service: int) -> DeliveryClass:
    """Return the class of a service that is served."""
    return _CLASSES[service]


class SessionRun(NamedTuple):
    """Messages in a row of one session, in one unit or in several alike."""

    sender: int
    first: int  # number of the first, from 1
    messages: int
    service: int


class UnitBody(NamedTuple):
    """What the originator says; it travels unchanged."""

    runs: tuple[SessionRun, ...]
    payloads: tuple[bytes, ...]
    part: int = 0  # of a large message: which of its parts, from 0
    parts: int = 1
    kind: BodyKind = BodyKind.WHOLE

    @property
    def delivery_class(self) -> DeliveryClass:
        return class_of(self.runs[0].service) if self.runs else DeliveryClass.RELIABLE

    @property
    def size(self) -> int:
        """What it counts for where bytes are counted: a message without any counts too."""
        return sum(map(len, self.payloads)) + len(self.payloads)

    def hollow(self) -> UnitBody:
        """Return the same without messages."""
        return self._replace(payloads=(), kind=BodyKind.HOLLOW)


def encode_body(body: UnitBody) -> bytes:
    """Return the bytes of a body."""
    return b"".join(
        (
            _HEAD.pack(body.part, body.parts, len(body.runs), body.kind),
            *(_RUN.pack(*run) for run in body.runs),
            *(_LENGTH.pack(len(payload)) for payload in body.payloads),
            *body.payloads,
        )
    )


def decode_body(data: bytes) -> UnitBody:
    """Return the body that these bytes are; a WireError says why they are none."""
    reader = ByteReader(data, 0, "the unit")
    part, parts, count, kind = reader.unpack(_HEAD)
    if kind == BodyKind.INTEREST:
        return _decode_interest(reader, (part, parts, count))
    if kind > BodyKind.INTEREST:
        raise WireError(f"there is no unit of kind {kind}")
    if not count or part >= parts:
        raise WireError("a unit without messages, or a part beyond the last")
    runs = tuple([SessionRun._make(reader.unpack(_RUN)) for _ in range(count)])
    messages = 0
    for _, first, number, service in runs:
        messages += number
        if not number or not 0 < first <= NUMBER_MAX:
            raise WireError("a unit whose messages cannot be counted")
        if not Service.UNRELIABLE < service <= SERVICE_MAX:
            raise WireError("a service that does not exist")
    if messages > MESSAGES_MAX or (parts > 1 and messages != 1):
        raise WireError("a unit whose messages cannot be counted")
    if count > 1 and len({class_of(run.service) for run in runs}) != 1:
        raise WireError("a unit of two classes")
    if kind == BodyKind.HOLLOW:
        reader.end()
        if parts > 1:
            raise WireError("a hollow part of a large message")
        return UnitBody(runs, (), kind=BodyKind.HOLLOW)
    lengths = reader.numbers(messages, "H")
    return UnitBody(runs, tuple(payloads_from(data, reader.at, len(data), lengths)), part, parts)


def _decode_interest(reader: ByteReader, head: tuple[int, int, int]) -> UnitBody:
    payloads = tuple(reader.take(length) for length in reader.numbers(INTEREST_PARTS, "H"))
    reader.end()
    flag, gained, lost = payloads
    if head != (0, 1, 0) or flag not in (b"\0", b"\1") or len(gained) % DIGEST_SIZE or len(lost) % DIGEST_SIZE:
        raise WireError("a unit that tells an interest, and more or less than that")
    return UnitBody((), payloads, kind=BodyKind.INTEREST)


@dataclass(slots=True)
class Unit:
    """A unit in its stream. Born ordered: its place never changes."""

    rank: int  # of its source in the view
    stamp: int  # the ring's timestamp and the place in the packet, in one number
    previous: int | None  # stamp of the unit before it in its stream, 0: none; None: nobody here knows
    originator: ProcessId
    body: UnitBody
    needs: int = EVERYBODY  # fragments that it is for, as bits
    is_delivered: bool = field(default=False, compare=False)

    @property
    def last(self) -> int:
        """The stamp of the last unit, which is this one."""
        return self.stamp

    @property
    def place(self) -> Stamp:
        return self.stamp, self.rank, 0

    @property
    def size(self) -> int:
        return self.body.size

    @property
    def payloads(self) -> Sequence[bytes]:
        return self.body.payloads

    @property
    def delivery_class(self) -> DeliveryClass:
        return self.body.delivery_class

    @property
    def is_hollow(self) -> bool:
        """Whether its messages are not here, since nobody here wants them."""
        return self.body.kind is BodyKind.HOLLOW

    @property
    def is_interest(self) -> bool:
        """Whether it tells what its originator wants, and has nothing to deliver."""
        return self.body.kind is BodyKind.INTEREST

    @property
    def is_ordered(self) -> bool:
        """Whether it is delivered in the order of all, and not before."""
        return self.delivery_class >= DeliveryClass.AGREED

    def sessions(self) -> list[tuple[tuple[ProcessId, int], SessionRun]]:
        """Return each run with the session that it is of."""
        return [((self.originator, run.sender), run) for run in self.body.runs]

    def parcels(self, base: int, payloads: Sequence[bytes]) -> list[Parcel]:
        """Return the messages as they go up; `base` is the first number of the view."""
        runs = self.body.runs
        senders = [run.sender for run in runs for _ in range(run.messages)]
        services = [run.service for run in runs for _ in range(run.messages)]
        number, slot = self.stamp - base, self.rank * RANK_SLOTS
        return [(number, self.originator, senders, services, payloads, len(payloads), slot)]

    def singles(self) -> list[Unit]:
        """Return the units one by one."""
        return [self]


@dataclass(slots=True)
class UnitRun:
    """Units in a row of one daemon's session, alike: as many messages in each, of one length, stamps equally far
    apart."""

    rank: int
    stamp: int  # of the first
    previous: int  # stamp of the unit before the first in its stream, 0: none
    originator: ProcessId
    run: SessionRun  # all messages
    each: int  # messages in a unit
    payloads: Sequence[bytes]
    needs: int = EVERYBODY
    step: int = 1  # from one stamp to the next: packets of the ring that a unit takes
    is_delivered: bool = field(default=False, compare=False)
    count: int = field(init=False, compare=False)  # of units; this and what follows is worked out once
    last: int = field(init=False, compare=False)  # the stamp of the last unit
    size: int = field(init=False, compare=False)
    delivery_class: DeliveryClass = field(init=False, compare=False)
    is_ordered: bool = field(init=False, compare=False)

    def __post_init__(self) -> None:
        payloads = self.payloads
        self.count = len(payloads) // self.each
        self.last = self.stamp + (self.count - 1) * self.step
        self.size = len(payloads) * (len(payloads[0]) + 1)
        self.delivery_class = _CLASSES[self.run.service]
        self.is_ordered = self.delivery_class >= DeliveryClass.AGREED

    @property
    def place(self) -> Stamp:
        return self.stamp, self.rank, 0

    @property
    def is_hollow(self) -> bool:
        return False

    def sessions(self) -> list[tuple[tuple[ProcessId, int], SessionRun]]:
        """Return all messages with the session that they are of."""
        return [((self.originator, self.run.sender), self.run)]

    def parcels(self, base: int, payloads: Sequence[bytes]) -> list[Parcel]:
        """Return the messages as they go up; `base` is the first number of the view."""
        number, originator, slot = self.stamp - base, self.originator, self.rank * RANK_SLOTS
        each, step = self.each, self.step
        together = len(payloads) if step == 1 else each
        senders, services = (self.run.sender,) * together, bytes((self.run.service,)) * together
        if step == 1:
            return [(number, originator, senders, services, payloads, each, slot)]
        return [
            (number + index * step, originator, senders, services, payloads[at : at + each], each, slot)
            for index, at in enumerate(range(0, len(payloads), each))
        ]

    def split(self, last: int) -> tuple[UnitRun, UnitRun]:
        """Return the units up to a stamp, and the others; there are some of both."""
        count = (last - self.stamp) // self.step + 1
        at, begin = count * self.each, self.stamp + count * self.step
        head = self.run._replace(messages=at)
        rest = self.run._replace(first=self.run.first + at, messages=self.run.messages - at)
        return (
            replace(self, run=head, payloads=self.payloads[:at]),
            replace(self, stamp=begin, previous=begin - self.step, run=rest, payloads=self.payloads[at:]),
        )

    def singles(self) -> list[Unit]:
        """Return the units one by one."""
        found, previous = [], self.previous
        for index in range(self.count):
            at, stamp = index * self.each, self.stamp + index * self.step
            run = self.run._replace(first=self.run.first + at, messages=self.each)
            body = UnitBody((run,), tuple(self.payloads[at : at + self.each]))
            found.append(Unit(self.rank, stamp, previous, self.originator, body, self.needs, self.is_delivered))
            previous = stamp
        return found


AnyUnit = Unit | UnitRun
