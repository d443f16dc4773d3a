"""Judges the adaptive engine by the packets that its members send, which only the simulator sees all of.

Who owns a place is worked out here a second time, in another way than the engine does it: the witness must not share
the engine's mistakes. Each packet is judged when its originator sends it, each statement when it is first made. Two
rules have modules of their own: hops (`adaptive_hops.py`), and that nobody waits without asking (`adaptive_waits.py`).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

from ordercast.checker.verdict import Verdict
from ordercast.model.configuration import Configuration, ConfigurationKind
from ordercast.model.effects import Broadcast, Effect, SendTo
from ordercast.model.ids import ConfigurationId, ProcessId
from ordercast.model.inputs import Packet
from ordercast.model.promises import SlotPromise
from ordercast.order.adaptive.config import AdaptiveConfig
from ordercast.sim.adaptive_hops import Hops, is_counted
from ordercast.sim.adaptive_waits import Waits
from ordercast.sim.findings import Findings
from ordercast.sim.options import SimOptions
from ordercast.trace.records import Event, Installed
from ordercast.wire.head import KIND_AT
from ordercast.wire.header import FLAGS_AT, HEADER, HEADER_SIZE, RETRANSMITTED, digest_of

DIRECT, MARK, ASK = 9, 10, 11
CONTROL, RESTS = 64, 128
_WEIGHTS = struct.Struct(">IQHHHH")
_CONFIGURATION = slice(KIND_AT + 1, FLAGS_AT)  # its digest
_TICK = struct.Struct(">QQ")  # tick, stable
_BELOW_BITS = 20  # of what a direct packet says its sender knows


@dataclass(slots=True)
class Shares:
    """One distribution, as the witness understands it."""

    base: int
    block: int
    ahead: int
    weights: tuple[int, ...]
    order: list[int] = field(init=False)

    def __post_init__(self) -> None:
        """Give every slot to whom most is owed, by what it should have had until then."""
        period, taken = sum(self.weights), [0] * len(self.weights)
        self.order = []
        for turn in range(1, period + 1):
            owed = [weight * turn - period * got for weight, got in zip(self.weights, taken, strict=True)]
            lucky = owed.index(max(owed))
            taken[lucky] += 1
            self.order.append(lucky)

    def owner(self, place: int) -> int:
        return self.order[(place - self.base) // self.block % len(self.order)]

    def given_ahead(self, member: int) -> int:
        mine, others = self.weights[member], self.weights[:member] + self.weights[member + 1 :]
        if all(mine * 4 > other * 5 for other in others):
            return 0
        takes_turns = all(mine * 5 >= other * 4 for other in others)
        return min(sum(self.weights) // mine - 1, 16 if takes_turns else 8) * (self.ahead // (2 if takes_turns else 1))


@dataclass(slots=True)
class Course:
    """What one member has sent in a configuration."""

    number: int = 0
    place: int = 0
    free: int = 1  # it has said that it uses no place below this
    tick: int = 0
    aru: int = 0


@dataclass(slots=True)
class Book:
    """One configuration."""

    id: ConfigurationId
    members: tuple[ProcessId, ...]
    shares: list[Shares]
    courses: list[Course] = field(init=False)
    used: dict[int, bytes] = field(default_factory=dict)  # places, and the packets there
    keeper: int = 0  # who announces the next distribution

    def __post_init__(self) -> None:
        self.courses = [Course() for _ in self.members]

    def shares_at(self, place: int) -> Shares:
        return next(one for one in reversed(self.shares) if one.base <= place)

    def first_unknown(self, member: int) -> int:
        """Return the first place of which the member's packets and words do not say whether it uses it."""
        place = self.courses[member].free
        while (shares := self.shares_at(place)).owner(place) != member:
            slot_end = place + shares.block - (place - shares.base) % shares.block
            place = min([slot_end, *(one.base for one in self.shares if one.base > place)])
        return place


class AdaptiveWitness:
    def __init__(self, options: SimOptions) -> None:
        self._config: AdaptiveConfig = options.adaptive
        self._books: dict[bytes, Book] = {}
        self._findings = Findings()
        self._hops = Hops(options) if is_counted(options) else None
        self._waits = Waits(options)

    def observe(self, event: Event) -> None:
        if self._hops is not None:
            self._hops.observe(event)
        self._waits.observe(event)
        if isinstance(event, Installed) and event.configuration.kind is ConfigurationKind.REGULAR:
            self._open(event.configuration)

    def _open(self, view: Configuration) -> None:
        if digest_of(view.id) not in self._books:
            config = self._config
            first = Shares(1, config.block, config.ahead, (1,) * len(view.members))
            self._books[digest_of(view.id)] = Book(view.id, view.members, [first])

    def received(self, process: ProcessId, packets: Sequence[Packet], now: int) -> None:
        """A member has read packets, and answers next."""
        self._waits.received(process, packets, now)

    def effect(self, process: ProcessId, effect: Effect, now: int) -> None:
        """A member sends."""
        self._waits.effect(process, effect, now)
        if isinstance(effect, Broadcast):
            for packet in effect.packets:
                self._sent(process, packet)
        elif isinstance(effect, SendTo):
            self._sent(process, effect.packet)

    def _sent(self, process: ProcessId, packet: bytes) -> None:
        if len(packet) < HEADER_SIZE or packet[KIND_AT] not in (DIRECT, MARK, ASK):
            return
        book = self._books.get(packet[_CONFIGURATION])
        if book is None or process not in book.members:
            self._add(SlotPromise.SLOTS, "a packet of a configuration that nobody has installed", process, None)
            return
        *_, flags, _, member, first, aru, third = HEADER.unpack_from(packet)
        if book.members[member] != process:
            return  # passed on for another
        course = book.courses[member]
        if packet[KIND_AT] == DIRECT:
            if not flags & RETRANSMITTED and book.used.get(first) != packet:  # no copy for another network
                self._judge_packet(book, member, flags, first, third, packet)
                aru, below = aru >> _BELOW_BITS, aru & ((1 << _BELOW_BITS) - 1)
                self._judge_known(book, member, aru, max(0, aru - below))
            return
        if packet[KIND_AT] == ASK:
            self._judge_aru(book, member, aru)
            return
        tick, stable = _TICK.unpack_from(packet, HEADER_SIZE)
        if tick <= course.tick or first < course.free or third != course.number:
            self._add(SlotPromise.FRONTIERS, f"mark {tick} takes back what was said before", process, book)
        course.tick, course.free = tick, max(course.free, first)
        self._judge_known(book, member, aru, stable)

    def _judge_packet(self, book: Book, member: int, flags: int, place: int, number: int, packet: bytes) -> None:
        process, course = book.members[member], book.courses[member]
        shares = book.shares_at(place)
        if shares.owner(place) != member:
            self._add(SlotPromise.SLOTS, f"place {place} is not its sender's", process, book)
        if place in book.used:
            self._add(SlotPromise.SLOTS, f"place {place} is used twice", process, book)
        if number != course.number + 1 or place <= course.place:
            self._add(SlotPromise.STREAMS, f"packet {number} at place {place} is out of turn", process, book)
        if place < course.free:
            self._add(SlotPromise.STREAMS, f"place {place} was given up, and is used", process, book)
        book.used[place] = packet
        course.number, course.place = number, place
        ahead = shares.given_ahead(member) if flags & RESTS else 0
        course.free = max(course.free, place + 1 + ahead)
        if flags & CONTROL:
            self._judge_distribution(book, member, place, packet)

    def _judge_distribution(self, book: Book, member: int, place: int, packet: bytes) -> None:
        process = book.members[member]
        number, base, block, ahead, keeper, count = _WEIGHTS.unpack_from(packet, HEADER_SIZE)
        weights = struct.unpack_from(f">{count}H", packet, HEADER_SIZE + _WEIGHTS.size)
        expected = max(place, book.shares[-1].base) + self._config.reach + 1
        is_next = member == book.keeper and number == len(book.shares) and base == expected
        if not is_next or min(weights) < 1 or count != len(book.members) or keeper >= count:
            self._add(SlotPromise.SLOTS, f"distribution {number} is not as it should be", process, book)
            return
        book.shares.append(Shares(base, block, ahead, weights))
        book.keeper = keeper
        course = book.courses[member]
        course.free = max(course.free, base)

    def _judge_known(self, book: Book, member: int, aru: int, safe: int) -> None:
        self._judge_aru(book, member, aru)
        for other, name in enumerate(book.members):
            if book.courses[other].aru < safe:
                what = f"place {safe} is said to be safe although {name:#x} has not said that it knows it"
                self._add(SlotPromise.FRONTIERS, what, book.members[member], book)

    def _judge_aru(self, book: Book, member: int, aru: int) -> None:
        """Whoever says that it knows everything up to a place was told so by all others."""
        course, process = book.courses[member], book.members[member]
        if aru < course.aru:
            self._add(SlotPromise.FRONTIERS, f"aru {aru} after {course.aru}", process, book)
        if aru <= course.aru:
            return
        course.aru = aru
        for other, name in enumerate(book.members):
            if book.first_unknown(other) <= aru:
                base = book.shares_at(aru).base
                promise = SlotPromise.MOVES if book.courses[other].free < base else SlotPromise.FRONTIERS
                what = f"aru {aru} is said although {name:#x} has not passed it"
                self._add(promise, what, process, book)

    def _add(self, promise: SlotPromise, what: str, process: ProcessId, book: Book | None) -> None:
        self._findings.add(promise, what, process, book.id if book is not None else None)

    def verdicts(self) -> list[Verdict]:
        """Return a verdict on what was broken."""
        for text, process in self._hops.findings() if self._hops is not None else ():
            self._add(SlotPromise.HOPS, text, process, None)
        for text, process in self._waits.found:
            self._add(SlotPromise.STUCK, text, process, None)
        return self._findings.broken()
