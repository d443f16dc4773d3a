"""One order out of the streams of a view, at one daemon. Pure: no clock, no bytes.

A walk has two phases. What is lowest is delivered when every other stream is past it, and, if it is safe, when every
site is known to have it: nothing passes a safe unit that waits. Reliable and FIFO units go up early, at once or when
their sessions are contiguous.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import NamedTuple

from ordercast.model.effects import Effect, Record
from ordercast.model.ids import ProcessId
from ordercast.model.notes import PacketDropped
from ordercast.order.sites.sessions import Sessions
from ordercast.order.sites.stream import UnitStream
from ordercast.order.sites.units import AnyUnit, BodyKind, DeliveryClass, Unit, UnitRun
from ordercast.order.sites.views import WideView
from ordercast.order.stamped.lanes import NO_STAMP, Stamp, lowest

_LINE = attrgetter("line")

LargeKey = tuple[ProcessId, int, int]  # originator, sender, number


class PassedUnit(NamedTuple):
    """A unit or a run of units that goes up, with its messages."""

    unit: AnyUnit
    payloads: Sequence[bytes]
    is_early: bool


class WideOrder:
    def __init__(self, view: WideView, me: ProcessId) -> None:
        self.view = view
        self.me = me
        self.rank = view.proposal.rank_of[me]
        self.base = view.base
        self.streams = [UnitStream(rank, self.base) for rank in range(len(view.fragments))]
        self.own = self.streams[self.rank]
        self._lanes = [stream.lane for stream in self.streams]
        self.arus = [self.base] * len(self.streams)  # below them everybody of a site has everything, by rank
        self.place: Stamp = NO_STAMP  # of the last unit that was passed in order
        self.commits: frozenset[ProcessId] = frozenset((me,))  # those whose whole store is held here
        self.out: list[PassedUnit] = []  # what goes up; whoever takes it empties it
        self.own_size = 0  # of own units that not everybody is known to have, in bytes; 0: there are none
        self._unfinished = 0  # messages whose end came without all of their parts, since somebody asked
        self.has_news = True  # something came since the last walk
        self.is_held = False  # nothing is delivered any more, until the view ends
        self._sessions = Sessions()
        self._large: dict[LargeKey, dict[int, bytes]] = {}
        self._last_parts: dict[LargeKey, Unit] = {}
        self._tape: deque[tuple[int, int]] = deque()  # ring seqs, and the lowest line after each
        self._noted = self.base

    @property
    def stable(self) -> int:
        """The stamp below which everybody has everything."""
        return min(self.arus)

    @property
    def is_idle(self) -> bool:
        """Whether everything that is known of has been delivered."""
        return not any(stream.lane.runs or stream.is_waiting for stream in self.streams)

    # What the tape brings

    def take(self, unit: Unit) -> bool:
        """Take a unit that was not here; deliver it early if it may be."""
        self.has_news = True
        if not self.hold(unit):
            return False
        if not self.is_held:
            self._early(unit)
        return True

    def take_run(self, run: UnitRun) -> None:
        """Take units of the own ring, which follow all that is here."""
        self.has_news = True
        self.own.add_run(run)
        if run.originator == self.me:
            self.own_size += run.size
        if not run.is_ordered:
            self._early(run)

    def unroll(self) -> None:
        """Hold single units from now on: the view is about to end."""
        self.own.unroll()

    def hold(self, unit: Unit) -> bool:
        """Take a unit that was not here, and deliver nothing."""
        if not self.streams[unit.rank].add(unit):
            return False
        if unit.originator == self.me:
            self.own_size += unit.size
        if unit.body.parts > 1:
            self._keep_part(unit)
        return True

    def promise(self, rank: int, through: int, line: int, aru: int) -> None:
        """Take the word of another site."""
        self.has_news = True
        self.streams[rank].promise(through, line)
        self.acknowledge(rank, aru)

    def acknowledge(self, rank: int, aru: int) -> None:
        if aru > self.arus[rank]:
            self.arus[rank], self.has_news = aru, True

    def tape_at(self, seq: int, stamp: int) -> None:
        """The own ring has come to this entry: nothing of it lies below the next one."""
        self.has_news = True
        if stamp >= self.own.line:
            self.own.promise(self.own.through, stamp + 1)
        self.note(seq)

    def note(self, seq: int) -> None:
        """Note how far everything is here at this place of the tape."""
        least = min(map(_LINE, self.streams))
        if least > self._noted:
            self._noted = least
            self._tape.append((seq, least))

    def safe_at(self, seq: int) -> None:
        """All members of the own ring have its tape up to here."""
        while self._tape and self._tape[0][0] <= seq:
            self.acknowledge(self.rank, self._tape.popleft()[1])

    # Delivery

    def walk(self) -> None:
        """Deliver what has become deliverable, and let go what everybody has."""
        if self.is_held:
            return
        self.has_news = False
        while (found := lowest(self._lanes)) is not None:
            lane, bound = found
            while lane.runs and lane.runs[0].first <= bound:
                unit = lane.runs[0].content
                last = self._passable(unit, bound)
                if last < unit.stamp:
                    self._forget()
                    return
                if last < unit.last:
                    self.streams[unit.rank].cut(last)
                self._pass(lane.runs.popleft().content)
        self._forget()

    def _passable(self, unit: AnyUnit, bound: Stamp) -> int:
        """Return the stamp up to which units may pass now, of a run that begins below the bound."""
        last = bound[0] if (bound[0], unit.rank, 0) <= bound else bound[0] - 1
        return min(last, self.stable - 1) if unit.delivery_class is DeliveryClass.SAFE else last

    def _forget(self) -> None:
        stable = self.stable
        for stream in self.streams:
            for unit in stream.forget(stable):
                if stream is self.own and unit.originator == self.me:
                    self.own_size -= unit.size

    def _pass(self, unit: AnyUnit) -> None:
        self.place = unit.last, unit.rank, 0
        self.streams[unit.rank].passed.append(unit.stamp)
        if not unit.is_delivered:
            self._deliver(unit, is_early=False)

    def _early(self, unit: AnyUnit) -> None:
        if isinstance(unit, Unit) and unit.body.parts > 1:
            last = self._last_parts.get(_key(unit))
            if last is None:
                return
            unit = last
        if unit.is_ordered or unit.is_delivered or not self._is_whole(unit):
            return
        lacking = self._sessions.lacks(unit) if unit.delivery_class is DeliveryClass.FIFO else None
        if lacking is None:
            self._deliver(unit, is_early=True)
        else:
            self._sessions.wait(unit, lacking)

    def _deliver(self, unit: AnyUnit, *, is_early: bool) -> None:
        """Pass a unit up. Parts of a large message go with the last one."""
        unit.is_delivered = True
        payloads = unit.payloads
        if isinstance(unit, Unit) and unit.body.parts > 1:
            if unit.body.part < unit.body.parts - 1:
                return
            key = _key(unit)
            parts = self._large.pop(key, {})
            self._last_parts.pop(key, None)
            if parts.keys() != set(range(unit.body.parts)):
                self._unfinished += 1
                return
            payloads = (b"".join(parts[index] for index in range(unit.body.parts)),)
        if isinstance(unit, UnitRun) or unit.body.kind is BodyKind.WHOLE:
            self.out.append(PassedUnit(unit, payloads, is_early))
        for freed in self._sessions.delivered(unit):
            if not self.is_held and not freed.is_delivered:
                self._early(freed)

    # Large messages

    def told_unfinished(self) -> list[Effect]:
        """Tell of large messages that were dropped. Nobody sends the last part without the others: it was forged."""
        count, self._unfinished = self._unfinished, 0
        return [Record(PacketDropped("the last part of a message without the others"))] * count

    def _keep_part(self, unit: Unit) -> None:
        key, body = _key(unit), unit.body
        self._large.setdefault(key, {})[body.part] = body.payloads[0]
        if body.part == body.parts - 1:
            self._last_parts[key] = unit

    def _is_whole(self, unit: AnyUnit) -> bool:
        if isinstance(unit, UnitRun):
            return True
        parts = unit.body.parts
        if parts == 1 or unit.body.part < parts - 1:
            return True
        return len(self._large.get(_key(unit), ())) == parts

    # The end of the view

    def has(self, rank: int, stamp: int) -> bool:
        """Whether a unit is here, or was and is forgotten."""
        stream = self.streams[rank]
        return stamp < stream.line or stamp in stream.units

    def take_over(self, lines: Sequence[int], commits: Iterable[ProcessId]) -> None:
        """Hold all that companions held: their lines hold here too, and so do their commits."""
        for stream, line in zip(self.streams, lines, strict=True):
            stream.line = max(stream.line, line)
        self.commits |= frozenset(commits)

    def up_to(self, signal: Stamp) -> None:
        """Deliver in order up to a place that some companion has passed."""
        for unit in self._remaining():
            if unit.place <= signal:
                self._settle(unit)

    def rest(self, lowest_line: int, commits: frozenset[ProcessId]) -> tuple[int, int]:
        """Deliver what is owed of the rest, in order; return how many units beyond the line were delivered, and how
        many were dropped."""
        beyond = dropped = 0
        for unit in self._remaining():
            is_owed = unit.stamp < lowest_line or self._is_owed(unit, commits)
            if unit.is_delivered:
                continue
            if is_owed and self._is_whole(unit):
                beyond += unit.stamp >= lowest_line
                self._settle(unit)
            else:
                dropped += 1
        return beyond, dropped

    def _is_owed(self, unit: AnyUnit, commits: frozenset[ProcessId]) -> bool:
        if unit.is_ordered:
            return unit.originator in commits
        return unit.delivery_class is DeliveryClass.RELIABLE or self._sessions.lacks(unit) is None

    def _remaining(self) -> list[AnyUnit]:
        """Return what is held and was not passed, in order."""
        units = (unit for stream in self.streams for unit in stream.units.values() if unit.place > self.place)
        return sorted(units, key=lambda unit: unit.place)

    def _settle(self, unit: AnyUnit) -> None:
        self.place = unit.place
        if not unit.is_delivered:
            self._deliver(unit, is_early=False)


def _key(unit: Unit) -> LargeKey:
    run = unit.body.runs[0]
    return unit.originator, run.sender, run.first
