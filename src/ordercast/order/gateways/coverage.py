"""Safe delivery in the network: who is known to have what.

A *statement* says that all of a ring have a source up to a stamp: a row of the paper's guarantee array, with a column
for each source, and one more for the residual content of each half of a source that has ended (it has holes, so its
highest packet says nothing of the regular ones). What the own rings deliver is known at first hand.

A member has a packet if a statement on a ring that lists it reaches the packet, and the member took what the speaker
took: the packet lies above the ring's birth, or both came to the ring in the same half, and so on backwards.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from ordercast.model.ids import ConfigurationId, ProcessId
from ordercast.order.gateways.items import Column, Processes, Statement, Stretch
from ordercast.order.gateways.known import Known
from ordercast.order.stamped.lanes import NO_STAMP, Stamp, StampedRun

Row = dict[Column, Stamp]


class Coverage:
    """The guarantee array, with what it needs to speak of halves."""

    __slots__ = ("_held", "_highest", "_known", "_risen", "_rows")

    def __init__(self, known: Known) -> None:
        self._known = known
        # By ring: what each speaker says; of all members (half None), or of one half of a ring that has ended.
        self._rows: dict[ConfigurationId, dict[tuple[ProcessId, Processes | None], Row]] = defaultdict(dict)
        self._highest: dict[ConfigurationId, Row] = defaultdict(dict)  # of all members, whoever says so
        self._held: dict[ConfigurationId, Row] = defaultdict(dict)  # own rings: residual content too, so of my half
        self._risen: dict[ConfigurationId, set[Column]] = defaultdict(set)  # own rings: not told yet

    # What own rings deliver

    def count(self, ring: ConfigurationId, column: Column, stamp: Stamp, is_regular: bool) -> None:
        """Note what an own ring has delivered, its own packets or carried ones: regular deliveries all of its members
        have."""
        held = self._held[ring]
        if stamp > held.get(column, NO_STAMP):
            held[column] = stamp
        if is_regular:
            self._state(ring, self._known.me, None, column, stamp)

    def split(self, old: ConfigurationId, new: ConfigurationId) -> None:
        """Begin a ring that a half of the old one goes on as: all of the half have what it delivered to the end."""
        self._inherit(new, self._held[old], self._held[old])

    def merge(self, old: ConfigurationId, new: ConfigurationId, is_regular: bool) -> None:
        """Begin a merged ring. Where the merge was delivered in the regular configuration, the old ring's statements
        hold for it; where not, nobody knows who else has come along."""
        self._inherit(new, self._held[old], self.row(old) if is_regular else {})

    def _inherit(self, new: ConfigurationId, held: Row, stated: Row) -> None:
        self._held[new] = dict(held)
        for column, stamp in stated.items():
            self._state(new, self._known.me, None, column, stamp)

    # What is said

    def row(self, ring: ConfigurationId) -> Row:
        """Return what this process states of all members of a ring."""
        return self._rows[ring].get((self._known.me, None), {})

    def entries(self, ring: ConfigurationId) -> tuple[Statement, ...]:
        """Return all that this process states of a ring."""
        return _statements(self.row(ring).items())

    def last_entries(self, ring: ConfigurationId) -> tuple[Statement, ...]:
        """Return what this process's half of a ring has: the last statement when the ring ends."""
        return _statements(self._held[ring].items())

    def has_risen(self, ring: ConfigurationId) -> bool:
        return bool(self._risen.get(ring))

    def risen(self, ring: ConfigurationId) -> tuple[Statement, ...]:
        """Return the own statements on a ring that rose since this was asked last."""
        columns = self._risen.pop(ring, set())
        row = self.row(ring)
        return _statements((column, row[column]) for column in columns)

    def state(self, ring: ConfigurationId, by: ProcessId, half: Processes | None, entries: Iterable[Statement]) -> bool:
        """Take statements; return whether any is news."""
        news = [self._state(ring, by, half, column, stamp) for column, stamp in entries]
        return any(news)

    def _state(
        self, ring: ConfigurationId, by: ProcessId, half: Processes | None, column: Column, stamp: Stamp
    ) -> bool:
        rows = self._rows[ring]
        row = rows.get((by, half))
        if row is None:
            row = rows[by, half] = {}
        if stamp <= row.get(column, NO_STAMP):
            return False
        row[column] = stamp
        if half is None:
            highest = self._highest[ring]
            if stamp > highest.get(column, NO_STAMP):
                highest[column] = stamp
            if by == self._known.me:
                self._risen[ring].add(column)
        return True

    # What is asked

    def covers(self, run: StampedRun[Stretch]) -> bool:
        """Whether each ring of the topology is known to have a run of regular packets, which lies above its birth."""
        me = self._known.me
        column = Column(run.content.ring, None)
        return all(
            self._highest[ring].get(column, NO_STAMP) >= run.last
            for ring, members in self._known.parts.items()
            if members and members != {me}
        )

    def uncovered(self, run: StampedRun[Stretch]) -> Processes:
        """Return the members of those rings that are not known to have a run of regular packets; for who observes."""
        column, parts = Column(run.content.ring, None), self._known.parts
        late = [ring for ring in parts if self._highest.get(ring, {}).get(column, NO_STAMP) < run.last]
        return frozenset(member for ring in late for member in parts[ring]) - {self._known.me}

    def lacking(self, packet: Stretch) -> Processes:
        """Return the members of the view that are not known to have a packet."""
        stream = self._known.streams[packet.ring]
        stamp = stream.stamp(packet.tick, packet.seqs[0])
        columns = [
            Column(packet.ring, None),
            *(Column(packet.ring, half) for half in stream.halves_with(packet.seqs[0])),
        ]
        speakers = [
            (ring, by, half)
            for ring, rows in self._rows.items()
            for (by, half), row in rows.items()
            if any(row.get(column, NO_STAMP) >= stamp for column in columns)
        ]
        return frozenset(
            member
            for member in self._known.members
            if member != self._known.me
            and not any(
                (half is None or member in half) and self._shares_past(member, by, ring, stamp)
                for ring, by, half in speakers
            )
        )

    def _shares_past(self, member: ProcessId, speaker: ProcessId, ring: ConfigurationId, stamp: Stamp) -> bool:
        """Whether a member of a ring took what the speaker took, down to a stamp."""
        rings, ends = self._known.rings, self._known.ends
        while ring in rings and member in rings[ring].members:
            if stamp > rings[ring].birth:
                return True
            end = next((end for end in ends.into(ring) if speaker in end.half), None)
            if end is None or member not in end.half:
                return False
            ring = end.ring
        return False

    # What goes

    def newest(self, ring: ConfigurationId) -> Stamp:
        """Return the highest entry of any statement on a ring."""
        rows = self._rows.get(ring, {}).values()
        return max((stamp for row in rows for stamp in row.values()), default=NO_STAMP)

    def forget(self, stable: Stamp, kept: set[ConfigurationId]) -> None:
        """Forget statements of rings that are gone, and entries about sources that are gone."""
        for table in (self._rows, self._highest, self._held, self._risen):
            for ring in table.keys() - kept:
                del table[ring]
        rows = [row for ring in self._rows.values() for row in ring.values()]
        for row in (*rows, *self._highest.values(), *self._held.values()):
            for column in [each for each, stamp in row.items() if stamp <= stable and each.source not in kept]:
                del row[column]
        for ring, risen in self._risen.items():
            risen &= self.row(ring).keys()


def _statements(items: Iterable[tuple[Column, Stamp]]) -> tuple[Statement, ...]:
    """Return entries in an order that does not hang on that of their arrival."""
    return tuple(
        sorted(
            (Statement(column, stamp) for column, stamp in items),
            key=lambda entry: (entry.stamp, entry.column.source, sorted(entry.column.half or ())),
        )
    )
