"""Whom we hear, whom others say they hear, and with whom it is worth forming a ring.

The paper assumes that whoever is connected is connected to all. Where that fails (A hears B, B hears C, A does not hear
C; one-way links), rings would form and break for ever. Our rule, a deviation: rings merge only when every member of
one and every member of the other are known to hear each other, both ways, by their own recent announcements; and a
process that was given up although it could be heard is held down: we do not propose it again for a while, longer
each time. Only the side that proposes waits; who is asked and finds the evidence good agrees, unless the process was
expelled for failing to receive.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from ordercast.model.ids import ConfigurationId, Duration, Instant, ProcessId
from ordercast.order.membership.admission import Admission, Around
from ordercast.order.membership.bounds import Numbering
from ordercast.order.ring.config import FEW, LIFETIME_ANNOUNCEMENTS, MANY, RingConfig
from ordercast.wire.messages import Announcement, Join

HOLD_DOWN_LEVEL_MAX = 4  # each level above the first doubles: eight times at most
BLAMED_LEVELS = 3  # who fails to receive waits longer from the start
KNOWN_FACTOR = 4  # how many processes are remembered, as a multiple of members_max


def lifetime_of(config: RingConfig) -> Duration:
    """How long evidence is good for without being renewed."""
    return Duration(LIFETIME_ANNOUNCEMENTS * config.announce_ns)


@dataclass(slots=True)
class _HoldDown:
    until: Instant
    level: int  # from 1
    is_blamed: bool  # for failing to receive: not even its own proposals are accepted


class _Report(NamedTuple):
    announcement: Announcement
    at: Instant
    heard: frozenset[ProcessId]  # by the announcer


class Mergeable(NamedTuple):
    """Members of other rings that may join us, and why some were passed over."""

    chosen: tuple[ProcessId, ...]
    is_held: bool  # some only because of a hold-down
    is_unlisted: bool  # some because of a roster


class Hearing:
    __slots__ = (
        "_admission",
        "_config",
        "_heard",
        "_held",
        "_is_counted",
        "_joins",
        "_lifetime",
        "_lifetime_here",
        "_me",
        "_members",
        "_reports",
    )

    def __init__(
        self, me: ProcessId, config: RingConfig, admission: Admission | None = None, *, is_counted: bool = False
    ) -> None:
        """`is_counted`: several networks are compared by the announcements that come on each, so none are spared."""
        self._me = me
        self._is_counted = is_counted
        self._admission = admission or Admission(me)
        self._config = config
        self._lifetime = self._lifetime_here = lifetime_of(config)
        self._members: frozenset[ProcessId] = frozenset()  # of the ring, if they are many
        self._heard: dict[ProcessId, Instant] = {}  # when each process was last heard
        self._reports: dict[ProcessId, _Report] = {}  # the last announcement of each
        self._joins: dict[ProcessId, Numbering] = {}  # the Join numbers of each
        self._held: dict[ProcessId, _HoldDown] = {}

    def installed(self, members: tuple[ProcessId, ...]) -> None:
        """These are a ring now. Many announce themselves seldom to each other: what is known of them is good longer,
        so that one announcement may be lost."""
        is_large = len(members) >= MANY and not self._is_counted
        self._members = frozenset(members) if is_large else frozenset()
        calm = self._config.calm_gap_of(len(members)) * 5 // 2
        self._lifetime_here = Duration(max(self._lifetime, calm))

    def hear(self, process: ProcessId, now: Instant) -> bool:
        """Note a sign of life; True when it is the first for a while."""
        if process == self._me:
            return False
        known = self.is_heard(process, now)
        self._heard[process] = now
        if not known:
            self._forget(now)
        return not known

    def report(self, announcement: Announcement, now: Instant) -> None:
        """Remember whom the announcer hears."""
        self.hear(announcement.sender, now)
        self._reports[announcement.sender] = _Report(announcement, now, frozenset(announcement.heard))

    def is_stale(self, join: Join, now: Instant) -> bool:
        """An older opinion of its sender that arrives late, or a number that cannot be true. Remembers the newest."""
        numbering = self._joins.get(join.sender)
        if numbering is None:
            self._joins[join.sender] = Numbering(join.number)
            return False
        return not numbering.believes(join.number, now, self._lifetime)

    def is_heard(self, process: ProcessId, now: Instant) -> bool:
        last = self._heard.get(process)
        return last is not None and now - last < self._lifetime_of(process)

    def _lifetime_of(self, process: ProcessId) -> Duration:
        return self._lifetime_here if process in self._members else self._lifetime

    def heard(self, now: Instant) -> tuple[ProcessId, ...]:
        return tuple(sorted(process for process in self._heard if self.is_heard(process, now)))

    def count(self, now: Instant) -> int:
        """Return how many hear each other here, as far as I can tell: those that I hear, and me."""
        return 1 + sum(now - last < self._lifetime_of(process) for process, last in self._heard.items())

    def is_calm(self, heard: Iterable[ProcessId]) -> bool:
        """Whether those who are heard are members of a ring of many, all of them."""
        return bool(self._members) and self._members.issuperset(heard)

    def hold_down(self, processes: Iterable[ProcessId], now: Instant, *, is_blamed: bool = False) -> None:
        """These were given up; those among them that we hear shall not be considered for a while. Who did not answer is
        heard by its Joins, or not at all: what it said as a member of many, long ago, counts for nothing."""
        for process in processes:
            last = self._heard.get(process)
            if last is None or now - last >= (self._lifetime_of(process) if is_blamed else self._lifetime):
                continue
            before = self._held.get(process)
            if before is not None and before.is_blamed and now < before.until and not is_blamed:
                continue  # held down already, for longer
            level = 0
            if before is not None and now - before.until < 2 * self._hold_ns(before.level + 1):
                level = before.level
            level = min(level + (BLAMED_LEVELS if is_blamed else 1), HOLD_DOWN_LEVEL_MAX)
            self._held[process] = _HoldDown(Instant(now + self._hold_ns(level)), level, is_blamed)

    def is_held_down(self, process: ProcessId, now: Instant) -> bool:
        return process in self._held and now < self._held[process].until

    def admits(self, newcomers: Collection[ProcessId], ring: Collection[ProcessId], now: Instant) -> bool:
        """Every newcomer and every member of `ring` hear each other, as far as evidence goes, there is room for all,
        none is held down for failing to receive, and their rosters allow it."""
        return self._can_hear(newcomers, ring, now) and self._are_listed(newcomers, ring, now)

    def _can_hear(self, newcomers: Collection[ProcessId], ring: Collection[ProcessId], now: Instant) -> bool:
        if len(newcomers) + len(ring) > self._config.members_max:
            return False
        if any(self.is_held_down(newcomer, now) and self._held[newcomer].is_blamed for newcomer in newcomers):
            return False
        there, here = frozenset(newcomers), frozenset(ring)
        return all(self._hears(one, here, now) for one in there) and all(self._hears(one, there, now) for one in here)

    def _are_listed(self, newcomers: Collection[ProcessId], ring: Collection[ProcessId], now: Instant) -> bool:
        heard = self.heard(now)
        reports = [self._reports[one].announcement for one in newcomers if one in self._reports]
        incumbents = [report.sender for report in reports if len(report.members) > 1]
        return self._admission.admits(newcomers, ring, Around(heard, incumbents))

    def is_quarrel(self, join: Join, now: Instant) -> bool:
        """Whether many are about to fall apart: an outsider gives up processes that I hear. Whoever goes along takes
        over what others failed to agree on, and passes it to the next; so nobody would come to rest."""
        return len(join.candidates) > FEW and any(self.is_heard(process, now) for process in join.failed)

    def mergeable(self, ring: tuple[ProcessId, ...], now: Instant) -> Mergeable:
        chosen: list[ProcessId] = []
        held = unlisted = False
        for members in self._other_rings(ring, now):
            if any(self.is_held_down(process, now) for process in members):
                held = True
            elif self._can_hear(members, [*ring, *chosen], now):
                if self._are_listed(members, [*ring, *chosen], now):
                    chosen.extend(members)
                else:
                    unlisted = True
        return Mergeable(tuple(chosen), held, unlisted)

    def _other_rings(self, ring: tuple[ProcessId, ...], now: Instant) -> list[tuple[ProcessId, ...]]:
        """Memberships of the rings that announced themselves, as all their members see them, in ring order."""
        rings: dict[ConfigurationId, tuple[ProcessId, ...]] = {}
        for announcement, at, _ in self._reports.values():
            if now - at < self._lifetime and not set(announcement.members) & set(ring):
                rings[announcement.ring] = announcement.members
        return [rings[ring_id] for ring_id in sorted(rings) if self._all_report(ring_id, rings[ring_id], now)]

    def _all_report(self, ring_id: ConfigurationId, members: tuple[ProcessId, ...], now: Instant) -> bool:
        return all(
            (report := self._reports.get(process)) is not None
            and now - report.at < self._lifetime
            and report.announcement.ring == ring_id
            for process in members
        )

    def _hears(self, listener: ProcessId, speakers: frozenset[ProcessId], now: Instant) -> bool:
        """Tell whether it hears all of these, itself left out. With sets: many members ask this at every Join."""
        others = speakers - {listener} if listener in speakers else speakers
        if listener == self._me or not others:
            return all(self.is_heard(speaker, now) for speaker in others)
        report = self._reports.get(listener)
        return report is not None and now - report.at < self._lifetime and others <= report.heard

    def _hold_ns(self, level: int) -> int:
        return self._config.hold_down_ns << (level - 1)

    def _forget(self, now: Instant) -> None:
        """Bound what is remembered: the longest silent go first."""
        surplus = len(self._heard) - KNOWN_FACTOR * self._config.members_max
        for process in sorted(self._heard, key=lambda known: self._heard[known])[: max(0, surplus)]:
            for table in (self._heard, self._reports, self._joins, self._held):
                table.pop(process, None)
