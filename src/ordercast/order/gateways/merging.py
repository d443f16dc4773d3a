"""Merges: logical rings on one physical ring become one, by a flush that is all or nothing.

Until they are one, each of them takes packets of its own members only. Every member marks, and sends no natives from
then on; with all marks the place of the merge is known. When the order has come to it, the speaker of each half says
its topology, which is final; with all topologies the merge is done. If the physical ring ends before, whoever has all
topologies merges, and whoever has not gives up. Both may happen in halves that stay connected.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

from ordercast.model.configuration import ChangeReason
from ordercast.model.ids import ConfigurationId, ProcessId
from ordercast.model.notes import Occurrence
from ordercast.order.gateways.items import (
    CAP,
    NOBODY_ELSE,
    Base,
    EndItem,
    Flooded,
    Half,
    LogicalRing,
    MarkItem,
    OwnWord,
    Processes,
    TopologyItem,
    TopologyPart,
    merged_id,
    tag_of,
)
from ordercast.order.gateways.known import Known
from ordercast.order.gateways.timeline import PendingMerge
from ordercast.order.gateways.views import Views
from ordercast.order.stamped.lanes import Stamp


class PhysicalRing(NamedTuple):
    """A ring as it was installed on an attachment."""

    id: ConfigurationId
    members: Processes
    tick: int  # above every packet of the old rings that a member has held
    reason: ChangeReason = ChangeReason.RING_REFORMED  # why the old rings ended, as all members say it


class Buffered(NamedTuple):
    """An item that a gateway of another half carried after its mark."""

    sender: ProcessId
    item: Flooded
    since: Stamp
    half: Processes | None
    is_regular: bool  # delivered in the regular configuration of this ring


@dataclass(slots=True)
class Flush:
    """The state of one merge, from the installation of the physical ring on."""

    physical: PhysicalRing
    clock: int = 0  # highest tick delivered on the ring
    tick: int | None = None  # of the merge, once all have marked
    has_marked: bool = False
    has_spoken: bool = False
    marks: dict[ProcessId, MarkItem] = field(default_factory=dict)
    topologies: dict[ConfigurationId, TopologyItem] = field(default_factory=dict)
    buffer: list[Buffered] = field(default_factory=list)

    @property
    def merged(self) -> ConfigurationId:
        return merged_id(self.physical.id)

    @property
    def stamp(self) -> Stamp:
        """The place of the merge, once it is known."""
        assert self.tick is not None
        return (self.tick, tag_of(self.merged), 0)

    @property
    def cap(self) -> Stamp:
        """The front of each half: just below the merge."""
        tick, tag, _ = self.stamp
        return (tick, tag, CAP)

    @property
    def halves(self) -> tuple[Half, ...]:
        """Who belongs to which logical ring, by their marks."""
        members: dict[ConfigurationId, set[ProcessId]] = {}
        for mark in self.marks.values():
            members.setdefault(mark.logical, set()).add(mark.by)
        return tuple(Half(ring, frozenset(who)) for ring, who in sorted(members.items()))

    def speaker(self, half: Half) -> ProcessId:
        """Return who tells the topology of a half: the lowest gateway, or the lowest member if there is none."""
        return min([process for process in half.members if self.marks[process].is_gateway] or half.members)

    def take_mark(self, mark: MarkItem) -> bool:
        """Take a member's mark; return whether it was the last, so that the place of the merge is known."""
        self.marks[mark.by] = mark
        if self.tick is not None or self.marks.keys() != self.physical.members:
            return False
        self.tick = 1 + max(self.clock, *(each.clock for each in self.marks.values()))
        return True

    def is_done(self) -> bool:
        """Whether all halves have spoken."""
        return self.tick is not None and self.topologies.keys() == {half.ring for half in self.halves}

    def result(self) -> LogicalRing:
        """Return the merged ring."""
        assert self.tick is not None
        return LogicalRing(
            self.merged,
            self.physical.members,
            frozenset(mark.by for mark in self.marks.values() if mark.is_gateway),
            self.tick,
            self.halves,
            tuple(topology for _, topology in sorted(self.topologies.items())),
        )


class Merging:
    """The merges that are under way on the own attachments, by domain."""

    __slots__ = ("_known", "_views", "flushes")

    def __init__(self, known: Known, views: Views) -> None:
        self._known = known
        self._views = views
        self.flushes: dict[int, Flush] = {}

    def pending(self) -> list[PendingMerge]:
        """Return the merges whose place is known."""
        return [
            PendingMerge(flush.stamp, flush.merged, domain)
            for domain, flush in self.flushes.items()
            if flush.tick is not None
        ]

    def begin(self, domain: int, ring: PhysicalRing) -> None:
        """Begin a merge of the logical rings on a physical ring."""
        self.flushes[domain] = Flush(ring)
        self._known.merging.add(domain)

    def end(self, domain: int) -> Flush | None:
        """End a merge, if there is one."""
        self._known.merging.discard(domain)
        return self.flushes.pop(domain, None)

    def give_up(self, domain: int) -> None:
        """Forget a merge whose physical ring has ended."""
        flush = self.end(domain)
        if flush is not None:
            what = Occurrence.NETWORK_GIVEN_UP_AFTER_MARKS if flush.tick else Occurrence.NETWORK_GIVEN_UP_BEFORE_MARKS
            self._known.occurred[what] += 1

    def is_flushing(self, domain: int) -> bool:
        """Whether natives have to wait."""
        flush = self.flushes.get(domain)
        return flush is not None and flush.has_marked

    def marks_due(self) -> list[tuple[int, MarkItem]]:
        """Return the marks to send now, by domain: this process's place has come to the birth of its logical ring."""
        known = self._known
        due = []
        for domain, flush in self.flushes.items():
            if not flush.has_marked and known.place >= known.own_ring(domain).birth:
                flush.has_marked = True
                known.occurred[Occurrence.NETWORK_MARKED] += 1
                mark = MarkItem(flush.physical.id, known.own[domain], known.me, known.clock, known.domains)
                due.append((domain, mark))
        return due

    def topology_due(self, domain: int) -> TopologyItem | None:
        """Return what this process has to say of its half, now that the merge is next in the order; None if it has
        spoken, or somebody else speaks."""
        flush, known = self.flushes[domain], self._known
        half = next(half for half in flush.halves if half.ring == known.own[domain])
        if flush.has_spoken or known.me != flush.speaker(half):
            return None
        flush.has_spoken = True
        known.occurred[Occurrence.NETWORK_SPOKEN] += 1
        known.occurred[Occurrence.NETWORK_TWO_MERGES] += len(self.pending()) > 1
        return self._topology(flush, known.own[domain])

    def _topology(self, flush: Flush, own: ConfigurationId) -> TopologyItem:
        known, merge = self._known, flush.stamp
        return TopologyItem(
            physical=flush.physical.id,
            ring=own,
            by=known.me,
            view=self._views.common,
            reachable=known.members & known.heard,
            parts=tuple(
                TopologyPart(known.rings[ring], members, known.lost.get(ring, NOBODY_ELSE))
                for ring, members in sorted(known.parts.items())
            ),
            bases=tuple(Base(process, domain, ring) for (process, domain), ring in sorted(known.bases.items())),
            ends=tuple(self._ends_before(merge)),
            words=tuple(sorted(self._words_before(merge))),
        )

    def _ends_before(self, merge: Stamp) -> list[EndItem]:
        known = self._known
        return [
            replace(end, successor=end.successor.bare())
            for ring in sorted(known.parts)
            for end in known.ends.of(ring)
            if end.successor.birth < merge
        ]

    def _words_before(self, merge: Stamp) -> list[OwnWord]:
        known = self._known
        return [
            word
            for word in known.ends.words
            if word.ring in known.parts and word.successor in known.rings and known.rings[word.successor].birth < merge
        ]
