"""Merge: the streams of all members as one order, from the installation of a configuration to its end.

The frontier of a member is the first place of which it is not known whether the member uses it. Everything below all
frontiers is known: that is the aru. Packets up to it are delivered in the order of their places; a safe one waits
until all members have said that they know its place. The paper's cases are this one rule: D a packet up to the aru, K a
frontier that passed a place without a packet, C all frontiers at a base, V recovery (`ending.py`), B the aru stands.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ordercast.model.configuration import ChangeReason
from ordercast.model.effects import Deliver, Effect, Parcel
from ordercast.model.errors import WireError
from ordercast.model.ids import NO_SEQ, ConfigurationId, Seq
from ordercast.order.adaptive import ending
from ordercast.order.adaptive.codec import (
    CONTROL,
    RESTS,
    AdaptiveKind,
    DistributionFields,
    Mark,
    distribution_fields,
    parse_direct,
)
from ordercast.order.adaptive.config import AdaptiveConfig
from ordercast.order.adaptive.slots import Distribution, Line, Place, base_after, first_distribution
from ordercast.order.adaptive.stream import MemberStream, lowest
from ordercast.order.large import LargeMessages
from ordercast.order.membership.recovery_plan import RecoveryPlan
from ordercast.order.membership.ring import Ring
from ordercast.wire.header import Heading, unwrapped
from ordercast.wire.run import PacketRun

ANNOUNCED_MAX = 16  # announcements that wait for others before them
FAR = 4  # places so many times the reach above what is known cannot be true


@dataclass(slots=True)
class Merge:
    """The messages of one configuration: the adaptive engine's `Past`."""

    ring: Ring
    view: ConfigurationId  # the configuration in which is delivered
    config: AdaptiveConfig
    backlog_max: int  # packets that may be on their way; bounds what is kept
    heading: Heading = field(init=False)  # of direct packets
    streams: list[MemberStream] = field(init=False)  # in ring order
    line: Line = field(init=False)
    frontiers: list[Place] = field(init=False)
    arus: list[Place] = field(init=False)  # what each member said of its own
    me: int = field(init=False)
    teller: int | None = field(init=False)  # to whom others acknowledge, who tells all; None: everybody tells all
    aru: Seq = NO_SEQ
    delivered: Seq = NO_SEQ
    safe: Place = 0  # all members know everything up to here
    discarded: Place = 0  # packets up to here are forgotten
    highest: Place = 0  # the highest place of a packet
    behind: set[int] = field(default_factory=set)  # other members whose applications cannot take more deliveries
    asked_safe: Place = 0  # the highest place up to the aru of a packet that asks for safe delivery
    announced: dict[tuple[int, int], tuple[Place, DistributionFields]] = field(
        default_factory=dict
    )  # by number, announcer
    is_moved: bool = False  # a distribution was learnt, and nobody told that this process moved
    is_recovered: bool = False  # an exchange brought a distribution that this process had not heard of
    large: LargeMessages = field(default_factory=LargeMessages)
    tick = 0  # stamps are a ring's

    def __post_init__(self) -> None:
        count = len(self.ring.members)
        self.heading = self.ring.heading.of_kind(AdaptiveKind.DIRECT)
        self.streams = [MemberStream() for _ in range(count)]
        self.line = Line(first_distribution(count, self.config.block, self.config.ahead))
        self.arus = [0] * count
        self.me = self.ring.index
        self._choose_teller()
        self.frontiers = [self._frontier(member) for member in range(count)]
        self._raise_aru()

    # Frontiers

    def after_last(self, member: int) -> Place:
        """Return a place below which, by its packets alone, the member uses no more. What a resting one gives up goes
        by the distribution of its place, so it is looked up until that is known for sure."""
        stream = self.streams[member]
        if not stream.is_resting:
            return stream.place + 1
        return stream.place + 1 + (stream.rest or self.line.at(stream.place).rests[member])

    def known(self, member: int) -> Place:
        """Return a place below which the member uses none but for packets that are here."""
        return max(self.after_last(member), self.streams[member].next)

    def _frontier(self, member: int) -> Place:
        stream, newest = self.streams[member], self.line.newest
        known = self.after_last(member) if stream.is_resting else stream.place + 1
        if known < stream.next:
            known = stream.next
        if known <= self.aru:
            known = self.aru + 1
        return newest.next_owned(member, known) if known >= newest.base else self.line.next_owned(member, known)

    def _update(self, member: int) -> None:
        self.frontiers[member] = self._frontier(member)
        self._raise_aru()

    def _raise_aru(self) -> None:
        aru = min(self.frontiers) - 1
        if aru > self.aru:
            before, self.aru = self.aru, Seq(aru)
            self.arus[self.me] = aru
            if before <= self.safe:
                self._raise_safe()

    def _forget(self) -> None:
        """Distributions below what is delivered are not asked for again: what resting packets give up by them is noted
        down. Others up to the aru may be: marks that only some heard raise it, and recovery goes by an earlier one."""
        for member, stream in enumerate(self.streams):
            if stream.is_resting and stream.place <= self.delivered and not stream.rest:
                stream.rest = self.line.at(stream.place).rests[member]
        self.line.forget(self.delivered + 1)

    def _raise_safe(self) -> None:
        safe = min(self.arus)
        if safe > self.safe:
            self.safe = safe

    @property
    def limit(self) -> Place:
        """The highest place that this process may use, and that surely belongs to a known distribution: whoever lacks
        an announcement is below it, and the base of what is announced lies above this."""
        base = self.line.newest.base
        return (self.aru if self.aru > base else base) + self.config.reach

    # What comes

    def take(self, run: PacketRun, number: int) -> bool:
        """Keep packets from the network; True when something of them is new. WireError when they cannot be."""
        member = self.heading.places[run.originator]
        stream = self.streams[member]
        last = number + run.count - 1
        if last <= stream.last:
            return False
        if member == self.me:
            raise WireError("a packet in the name of this process, which did not send it")
        if number <= stream.last:
            skipped = stream.last + 1 - number
            run, number = run.piece(run.seq + skipped, run.last), number + skipped
        self._check(member, run, number)
        return self._add(member, run, number)

    def _check(self, member: int, run: PacketRun, number: int) -> None:
        if number + run.count > self.streams[member].last + 2 * self.backlog_max:
            raise WireError("a number far above those before it")
        first, last, limit = run.seq, run.last, self.limit
        if last > limit + FAR * self.config.reach or first <= self.aru:
            raise WireError("a place that cannot be true")
        if first == last == self.frontiers[member] and run.parcel is not None:
            return  # messages at the sender's next place, which is its own
        if last <= limit:
            distribution = self.line.at(first)
            if run.flags & CONTROL and member != distribution.keeper:
                raise WireError("a distribution that is not the book-keeper's")
            if distribution.owner(first) != member or (last > first and distribution.owner(last) != member):
                raise WireError("a place that is not its sender's")

    def check_aru(self, run: PacketRun, aru: Place) -> None:
        """A packet that acknowledges its own place; WireError when it cannot be: its sender knows no more than what it
        has said of itself."""
        member, place = self.heading.places[run.originator], run.last
        rest = self.line.at(place).rests[member] if run.flags & RESTS and run.count == 1 else 0
        if place <= self.limit and aru >= self.line.next_owned(member, place + 1 + rest):
            raise WireError("a packet whose aru lies above its sender's own frontier")

    def _add(self, member: int, run: PacketRun, number: int) -> bool:
        stream = self.streams[member]
        is_new, ordered = stream.add(run, number)
        if is_new and run.last > self.highest:
            self.highest = run.last
        if not ordered:
            return is_new
        for one in ordered:
            if one.parcel is None and one.flags & CONTROL:
                self._learn(member, one)
        if stream.mark is not None and stream.mark.next > stream.next:
            self._apply_mark(stream)
        self._update(member)
        return True

    def hear_aru(self, member: int, aru: Place) -> None:
        """A member said that it knows everything up to there."""
        before = self.arus[member]
        if aru > before and member != self.me:
            self.arus[member] = aru
            if before <= self.safe:
                self._raise_safe()

    def hear_safe(self, safe: Place) -> None:
        """A member said that all know everything up to there. What it sends may follow from what it delivered as safe:
        so whoever takes that knows as much."""
        if safe > self.safe:
            self.safe = max(self.safe, min(safe, self.aru))

    def hear(self, mark: Mark) -> bool:
        """Take a statement; True when it is newer than what was heard. WireError when it cannot be."""
        stream = self.streams[mark.originator]
        before = stream.mark
        if mark.originator == self.me or (before is not None and mark.tick <= before.tick):
            return False
        if before is not None and (mark.next < before.next or mark.aru < before.aru or mark.last < before.last):
            raise WireError("a later mark that takes back what an earlier one said")
        limit = self.limit
        if mark.next > limit + FAR * self.config.reach or mark.last > stream.last + 2 * self.backlog_max:
            raise WireError("a mark that cannot be true")
        if (
            mark.next <= mark.aru
            and mark.next <= limit
            and mark.aru >= self.line.next_owned(mark.originator, mark.next)
        ):
            raise WireError("a mark whose aru lies above its sender's own frontier")
        stream.mark = mark
        if mark.is_behind or self.behind:
            (self.behind.add if mark.is_behind else self.behind.discard)(mark.originator)
        if mark.last > stream.high:
            stream.high = mark.last
        self.hear_aru(mark.originator, mark.aru)
        self.hear_safe(mark.stable)
        if self._apply_mark(stream):
            self._update(mark.originator)
        return True

    @staticmethod
    def _apply_mark(stream: MemberStream) -> bool:
        """A mark counts when all packets that it speaks of are here; what an older one proved stays. True when it
        proves more."""
        mark = stream.mark
        if mark is None or mark.last > stream.last or mark.next <= stream.next:
            return False
        stream.next = mark.next
        return True

    def _learn(self, member: int, run: PacketRun) -> None:
        """An announcement is in order in its stream. It counts when those before it are known: whoever had the office
        before may be heard later. Whoever knows a distribution gives up its places below the base."""
        fields = distribution_fields(run.packet(run.seq))
        if len(self.announced) < ANNOUNCED_MAX:
            self.announced.setdefault((fields[0], member), (run.seq, fields))
        newest = self.line.newest
        while (found := self.announced.pop((newest.number + 1, newest.keeper), None)) is not None:
            place, (number, base, block, ahead, weights, keeper) = found
            if base != base_after(place, newest.base, self.config.reach) or len(weights) != len(self.streams):
                return  # nobody adopts it, for all see the same packets before it
            newest = Distribution(number, base, block, ahead, weights, keeper)
            self.adopt(newest)

    def adopt(self, distribution: Distribution) -> None:
        self.line.add(distribution)
        mine = self.streams[self.me]
        mine.next = max(mine.next, distribution.base)
        self.is_moved = True
        self._choose_teller()
        self.frontiers = [self._frontier(member) for member in range(len(self.streams))]
        self._raise_aru()

    def _choose_teller(self) -> None:
        """Where members are few everybody tells all what it received; where they are many the busiest does for all."""
        self.teller = self.line.newest.ranks.index(0) if len(self.streams) >= self.config.gather_acks else None

    # What this process does with its own places

    def give_up(self, below: Place) -> None:
        """Use no place below this."""
        mine = self.streams[self.me]
        mine.next = max(mine.next, below)
        self._update(self.me)

    def next_place(self) -> Place:
        return self.frontiers[self.me]

    def aru_after(self, place: Place, rest: int) -> Place:
        """Return what is known here once a packet is sent at this place, which gives up so many behind it."""
        frontiers = self.frontiers.copy()
        frontiers[self.me] = self.line.next_owned(self.me, place + 1 + rest)
        return max(self.aru, min(frontiers) - 1)

    def sent(self, run: PacketRun) -> None:
        """Keep packets of this process, which follow its last."""
        self._add(self.me, run, self.streams[self.me].last + 1)

    # Delivery

    def advance(self, effects: list[Effect]) -> None:
        self.deliver(self.aru, self.safe, effects)

    def deliver(self, through: Place, safe: Place, effects: list[Effect]) -> None:
        """Deliver everything up to a place, or to the first packet that is not yet safe."""
        at = self.delivered
        if at >= through:
            return
        parcels: list[Parcel] = []
        while at < through:
            queue, first, following = lowest(self.streams, at + 1)
            if queue is None or first > through:
                at = Seq(through)
                break
            run = queue[0]
            end = run.last
            if end > through or end >= following:
                end = Seq(min(through, following - 1))
            assert end >= first, "no place is used twice"
            if run.is_safe:
                self.asked_safe = max(self.asked_safe, end)
                if end > safe:
                    self._ask_behind(through)
                    end = Seq(safe)
                if end < first:
                    at = Seq(first - 1)
                    break
            at = Seq(end)
            if end == run.last:
                queue.popleft()
            if run.parcel is None:
                continue
            if run.parts or first > run.seq or end < run.last:
                self._put(run, first, end, parcels)
            else:
                parcels.append(run.parcel)
            if end == run.last:
                run.parcel = None  # whoever still needs the packet takes it from the bytes
        self.delivered = at
        if parcels:
            effects.append(Deliver(self.view, self.ring.id, parcels))

    def _ask_behind(self, through: Place) -> None:
        """Delivery waits for one safe packet: those behind it are acknowledged too, not when it is their turn."""
        for stream in self.streams:
            for run in reversed(stream.undelivered):
                if run.is_safe and run.seq <= through:
                    self.asked_safe = max(self.asked_safe, min(run.last, through))
                if run.seq <= through and (run.is_safe or run.last <= self.asked_safe):
                    break

    def _put(self, run: PacketRun, first: Place, end: Place, parcels: list[Parcel]) -> None:
        """Put messages of some packets of a run, or of parts of messages, behind the others."""
        if run.parts:
            parts = run.parts[first - run.seq : end + 1 - run.seq]
            self.large.take(run.parcel_of(first, end), parts, parcels)
        else:
            parcels.append(run.parcel_of(first, end))

    def discard(self) -> None:
        """Forget packets that all members have and that are delivered here."""
        if self.line.ends <= self.delivered + 1:
            self._forget()
        through = self.safe if self.safe < self.delivered else self.delivered
        if through > self.discarded:
            before, self.discarded = self.discarded, through
            for stream in self.streams:
                if stream.place > before:
                    stream.discard(through)

    # The end of the configuration

    def held_after(self, seq: Seq) -> Iterable[tuple[Seq, PacketRun]]:
        found = [item for stream in self.streams for item in stream.held_after(seq)]
        return sorted(found, key=lambda item: item[0])

    def keep(self, seq: Seq, packet: bytes) -> bool:
        """The acknowledgement in it is garbage, since wrapping writes over it."""
        old = unwrapped(packet, self.heading)
        run, number, *_ = parse_direct(old, 0, len(old), self.heading)
        if run.seq != seq:
            raise WireError("a packet under another place than its own")
        before = self.line.newest.number
        is_new = self.take(run, number)
        self.is_recovered = self.is_recovered or self.line.newest.number > before
        return is_new

    def finish(self, plan: RecoveryPlan, ring: Ring, reason: ChangeReason, effects: list[Effect]) -> None:
        ending.finish(self, plan, ring, reason, effects)

    def check_invariants(self) -> None:
        assert self.delivered <= self.aru == self.arus[self.me], "delivered ≤ received"
        assert self.safe <= self.aru, "what is safe was received here too"
        assert min(self.frontiers) > self.aru, "nothing up to the aru is unknown"
        for stream in self.streams:
            stream.check_invariants()
