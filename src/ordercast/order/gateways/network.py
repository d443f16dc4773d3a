"""One process's part in a network: takes what its rings deliver, gives what to put on them and what is ordered.

`deliver` takes what a ring delivers in its regular configuration, `install` the rest of an old ring together with the
new one, `step` lets the order go on. After them `passed` has packets and views in the order of the network, and each
queue of `forwarding` what is to be put on an attachment; natives go on a ring only while `may_number`, and those of
users while `may_send`. Everything that is on an attached ring is sent safe, so that nothing leaves a ring before all
of its members have it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from ordercast.model.ids import ConfigurationId, ProcessId
from ordercast.model.notes import Occurrence
from ordercast.order.gateways.coverage import Coverage
from ordercast.order.gateways.forgetting import Stability
from ordercast.order.gateways.forwarding import Forwarding
from ordercast.order.gateways.holds import Holds
from ordercast.order.gateways.interest import Masks
from ordercast.order.gateways.items import (
    EVERYTHING,
    BegunMessage,
    Carried,
    Column,
    EndItem,
    HelloItem,
    InterestItem,
    LogicalRing,
    MarkItem,
    NoticeItem,
    Processes,
    Statement,
    Stretch,
    TopologyItem,
)
from ordercast.order.gateways.known import Known
from ordercast.order.gateways.merging import Buffered, Flush, Merging, PhysicalRing
from ordercast.order.gateways.own_packets import OwnPackets
from ordercast.order.gateways.soundness import why_no_mark, why_no_topology, why_not_carried
from ordercast.order.gateways.timeline import Passed, Timeline
from ordercast.order.gateways.views import NetworkView, Views
from ordercast.order.stamped.lanes import NO_STAMP, Stamp


class Heard(NamedTuple):
    """An item as a ring delivers it: who put it on the ring, at which seq and tick."""

    sender: ProcessId
    seq: int
    tick: int
    carried: Carried


# What a ring delivers: its own packets, with the id of the physical ring, and what processes put on it.
RingEntry = Stretch | Heard


class RingNetwork:
    """The order of the network, at one process. Pure: no clock, no bytes."""

    def __init__(
        self, me: ProcessId, rings: Mapping[int, ConfigurationId], tick: int, is_filtering: bool = False
    ) -> None:
        """Begin alone, on a ring of its own in each domain, at a tick above everything of earlier lives."""
        known = Known(me, tuple(sorted(rings)))
        self.known = known
        known.clock = tick
        for domain, ring in sorted(rings.items()):
            self._found(domain, ring, tick)
        self.coverage = Coverage(known)
        self.views = Views(known)
        self.holds = Holds(me)
        self.merging = Merging(known, self.views)
        self.stability = Stability(known, self.coverage)
        self.masks = Masks(known, is_filtering)
        self.forwarding = Forwarding(known, self.coverage, self.stability, self.holds, self.masks)
        self.timeline = Timeline(known, self.coverage, self.views, self.merging.pending, self._on_turn, self._on_birth)
        self.own_packets = OwnPackets(me)
        # What lies on both sides of a merge is asked of, and told to, whoever takes what has passed.
        self.begun: Callable[[], tuple[BegunMessage, ...]] = tuple
        self.learn_begun: Callable[[tuple[BegunMessage, ...]], object] = tuple
        self._fresh: dict[int, EndItem] = {}  # ENDs in own words, until a regular delivery speaks for the whole half
        self._told: dict[ConfigurationId, Stamp] = {}  # the front of own rings, as others know it

    def _found(self, domain: int, ring: ConfigurationId, tick: int) -> None:
        known = self.known
        alone = frozenset((known.me,))
        logical = LogicalRing(ring, alone, alone if known.is_gateway else frozenset(), tick)
        known.learn(logical)
        known.own[domain] = ring
        known.born.add(ring)
        known.parts[ring] = alone
        known.bases[known.me, domain] = ring
        known.place = max(known.place, logical.birth)

    # What is asked

    @property
    def view(self) -> NetworkView:
        return self.views.current

    @property
    def passed(self) -> list[Passed]:
        """What the order has brought, in order; whoever takes it empties it."""
        return self.timeline.passed

    def is_idle(self) -> bool:
        """Whether nothing waits to be put on a ring or to be ordered."""
        known = self.known
        return (
            not any(self.forwarding.queues.values())
            and not self.merging.flushes
            and known.parts.keys() == known.born & known.parts.keys()
            and not any(known.streams[ring].runs or known.streams[ring].residual() for ring in known.parts)
            and not any(known.is_complete(ring) for ring in known.parts)
        )

    @property
    def undelivered_size(self) -> int:
        """Bytes of packets that wait for their place in the order, or for a link to begin."""
        return sum(stream.size for stream in self.known.streams.values()) + self.forwarding.aside_size

    def may_number(self, domain: int) -> bool:
        """Whether natives may go onto a ring: not while it is flushed for a merge."""
        return not self.merging.is_flushing(domain)

    def may_send(self, domain: int) -> bool:
        """Whether packets of users may go onto a ring: not while a member of the view holds, either."""
        return self.may_number(domain) and not self.holds.in_force(self.view.members)

    def interest_due(self) -> InterestItem | None:
        """Return what this process has to say of itself, as a safe native packet on a ring that `may_number`."""
        return self.masks.due(bool(self.merging.flushes), self.views.is_alone)

    # Inputs

    def deliver(self, domain: int, entries: Iterable[RingEntry]) -> None:
        """Take what a ring has delivered in its regular configuration, in order."""
        for entry in entries:
            self._take(domain, entry, None)

    def install(self, domain: int, residual: Iterable[RingEntry], companions: Processes, ring: PhysicalRing) -> None:
        """Take what is left of an old ring, delivered in the transitional configuration of these companions, and begin
        the new one."""
        for entry in residual:
            self._take(domain, entry, companions)
        self.merging.give_up(domain)
        known = self.known
        old = known.own_ring(domain)
        half = companions & old.members
        new = LogicalRing(ConfigurationId(ring.id.seq, min(half)), half, half & old.gateways, ring.tick)
        known.clock = max(known.clock, ring.tick)
        known.need = max(known.need, new.birth)
        self._state_last(domain, old.id, half)
        end = EndItem(old.id, half, new, frozenset((known.me,)), ring.reason)
        self.forwarding.say(end, domain)
        self.forwarding.start_ring(domain, ring.id, half)
        self.coverage.split(old.id, new.id)
        self._move(domain, new.id)
        self._fresh[domain] = end
        if half != ring.members:
            self.merging.begin(domain, ring)

    def hear_lowest(self, domain: int, stamp: Stamp) -> None:
        """Hear from the token of a ring that all of its members are past a place."""
        self.stability.hear(self.known.own[domain], stamp)

    def limit(self, tick: int) -> bool:
        """Let the order go on up to the end of a tick, and no further; return whether that is news."""
        before, self.timeline.limit = self.timeline.limit, (tick + 1, 0, 0)
        return self.timeline.limit != before

    def hold(self, reasons: Iterable[str]) -> None:
        """Hear the reasons of this process to hold all users, none of them or several; tell everybody what changed."""
        hold = self.holds.decide(reasons)
        if hold is not None:
            self.known.occurred[Occurrence.NETWORK_HELD] += hold.is_on
            self.holds.take(hold)
            self.forwarding.forward(hold, NO_STAMP, None, None)

    def step(self) -> None:
        """Let the order go on as far as it can, and say what others may wait for."""
        self.timeline.advance()
        if self.merging.flushes and self.masks.in_force == EVERYTHING:
            for domain, mark in self.merging.marks_due():
                self.forwarding.queues[domain].append(Carried(mark))
        if self.known.is_gateway:
            self._tell()
        if self.stability.forget():
            self._forget()

    # What rings deliver

    def _take(self, domain: int, entry: RingEntry, companions: Processes | None) -> None:
        known = self.known
        flush = self.merging.flushes.get(domain)
        if entry.tick > known.clock:
            known.clock = entry.tick
        if companions is None:
            if not self._is_capped(flush):
                stream = known.streams[known.own[domain]]
                stream.raise_front((entry.tick, stream.tag, entry.seq if isinstance(entry, Heard) else entry.seqs[-1]))
            if domain in self._fresh:
                self._speak_for_half(domain)
        if flush is not None:
            flush.clock = max(flush.clock, entry.tick)
        if isinstance(entry, Stretch):
            self._take_native(domain, entry, companions)
        else:
            self._take_heard(domain, entry, companions)

    @staticmethod
    def _is_capped(flush: Flush | None) -> bool:
        """Whether a ring's front stays just below its pending merge."""
        return flush is not None and flush.tick is not None

    def _speak_for_half(self, domain: int) -> None:
        """Say the word of a whole half: what is delivered on a new ring was received by all, so all have installed."""
        end = self._fresh.pop(domain)
        self.forwarding.say(replace(end, sure=end.half), domain)

    def _take_native(self, domain: int, stretch: Stretch, companions: Processes | None) -> None:
        """Take packets numbered on this ring, if they are of my logical ring."""
        ring = self.known.own_ring(domain)
        if stretch.originator not in ring.members:
            return
        if stretch.originator != self.known.me:
            self.masks.came(stretch.mask)
        if stretch.ring != ring.id:
            stretch = replace(stretch, ring=ring.id)
        self.own_packets.handed_up(ring.tag, stretch)
        half = None if companions is None else companions & ring.members
        self.forwarding.accept(stretch, NO_STAMP, domain, half)
        if half is None:
            self.forwarding.handed_up(domain, stretch.seqs[-1])
        stamp = (stretch.tick, ring.tag, stretch.seqs[-1])
        self.coverage.count(ring.id, Column(ring.id, half), stamp, companions is None)

    def _take_heard(self, domain: int, heard: Heard, companions: Processes | None) -> None:
        item, _, half = heard.carried
        match item:
            case HelloItem():
                pass
            case MarkItem():
                self._take_mark(domain, item, companions is None)
            case TopologyItem():
                self._take_topology(domain, item, heard.seq, companions)
            case _:
                own = self.known.own_ring(domain)
                flush = self.merging.flushes.get(domain)
                if heard.sender == self.known.me:
                    self._count(own.id, item, half, companions is None)
                elif heard.sender in own.members:
                    if not self._is_refused(heard, heard.sender in own.gateways):
                        self._take_carried(domain, heard, companions is None)
                elif flush is not None and heard.sender in flush.marks:
                    self._keep(flush, heard, companions is None)

    def _keep(self, flush: Flush, heard: Heard, is_regular: bool) -> None:
        """Keep what a gateway of another half carried after its mark, until the halves are one."""
        item, since, half = heard.carried
        assert not isinstance(item, HelloItem | MarkItem | TopologyItem)
        if not self._is_refused(heard, flush.marks[heard.sender].is_gateway):
            flush.buffer.append(Buffered(heard.sender, item, since, half, is_regular))

    def _is_refused(self, heard: Heard, is_gateway: bool) -> bool:
        return self.known.refuse(why_not_carried(self.known, heard.sender, heard.carried, is_gateway=is_gateway))

    def _take_carried(self, domain: int, heard: Heard, is_regular: bool) -> None:
        """Take what a gateway of my logical ring carried."""
        item, since, half = heard.carried
        assert not isinstance(item, HelloItem | MarkItem | TopologyItem)
        since = self.forwarding.since(domain, heard.sender, since)
        if isinstance(item, Stretch) and item.bodies:
            self.masks.came(item.mask)
        if self.forwarding.accept(item, since, domain, half):
            self._count(self.known.own[domain], item, half, is_regular)

    def _count(self, ring: ConfigurationId, item: object, half: Processes | None, is_regular: bool) -> None:
        if isinstance(item, Stretch):
            self.coverage.count(ring, Column(item.ring, half), self.forwarding.stamp(item), is_regular)

    # Merges

    def _take_mark(self, domain: int, mark: MarkItem, is_regular: bool) -> None:
        flush = self.merging.flushes.get(domain)
        known = self.known
        if flush is None or mark.ring != flush.physical.id or known.refuse(why_no_mark(known, mark, domain)):
            return
        if not flush.take_mark(mark):
            return
        if is_regular:  # else packets from before the marks may be residual, and lie below
            known.streams[known.own[domain]].raise_front(flush.cap)
        known.clock = max(known.clock, flush.stamp[0])
        known.need = max(known.need, flush.stamp)
        known.changed()

    def _on_turn(self, domain: int) -> None:
        topology = self.merging.topology_due(domain)
        if topology is not None:
            members = self.known.members
            holds, begun = self.holds.said(members), self.begun()
            topology = replace(topology, masks=self.masks.said(), holds=holds, begun=begun)
            self.forwarding.queues[domain].append(Carried(topology))

    def _take_topology(self, domain: int, topology: TopologyItem, seq: int, companions: Processes | None) -> None:
        flush = self.merging.flushes.get(domain)
        if flush is None or topology.physical != flush.physical.id:
            return
        if self.known.refuse(why_no_topology(topology, flush)):
            return
        flush.topologies[topology.ring] = topology
        if flush.is_done():
            self._merge(domain, flush, seq, companions)

    def _merge(self, domain: int, flush: Flush, seq: int, companions: Processes | None) -> None:
        """Become one logical ring: all halves have spoken."""
        self.merging.end(domain)
        known, old, new = self.known, self.known.own_ring(domain), flush.result()
        known.occurred[Occurrence.NETWORK_MERGE_BY_RESIDUAL] += companions is not None
        self.coverage.merge(old.id, new.id, companions is None)
        self._state_all(domain, old.id)
        end = EndItem(old.id, old.members, new, new.members if companions is None else companions)
        self.forwarding.say(end, domain)
        self._move(domain, new.id)
        self.masks.want_everything_until(new.birth)
        if companions is None:
            known.streams[new.id].raise_front((max(flush.clock, new.tick), new.tag, seq))
        self.forwarding.begin_links(domain, new.members - old.members, new.birth)
        self._take_buffer(domain, flush, new, companions is None)

    def _take_buffer(self, domain: int, flush: Flush, ring: LogicalRing, is_regular: bool) -> None:
        """Take what gateways of the other halves carried meanwhile, and state for their halves what they took."""
        seen: dict[ConfigurationId, dict[Column, Stamp]] = {}
        for sender, item, since, half, was_regular in flush.buffer:
            if not self.forwarding.accept(item, max(since, ring.birth), domain, half):
                continue
            self._count(ring.id, item, half, is_regular)
            if was_regular and isinstance(item, Stretch):
                row = seen.setdefault(flush.marks[sender].logical, {})
                column = Column(item.ring, half)
                row[column] = max(row.get(column, NO_STAMP), self.forwarding.stamp(item))
        for other, row in sorted(seen.items()):
            entries = tuple(Statement(column, stamp) for column, stamp in row.items())
            notice = NoticeItem(other, self.known.me, NO_STAMP, entries)
            if self.coverage.state(other, self.known.me, None, entries):
                self.forwarding.forward(notice, ring.birth, domain, None)

    def _on_birth(self, ring: LogicalRing) -> None:
        for topology in ring.topologies:
            for hold in topology.holds:
                self.holds.take(hold)
            for process, mask in topology.masks:
                self.masks.add(process, mask)
            self.learn_begun(topology.begun)
        self.forwarding.release()

    def _forget(self) -> None:
        """Forget what belongs to rings and processes that are gone."""
        known = self.known
        self.forwarding.forget_links()
        self.holds.forget(known.members)
        self.masks.forget(known.members)
        self._told = {ring: front for ring, front in self._told.items() if ring in known.rings}

    # What is said

    def _move(self, domain: int, ring: ConfigurationId) -> None:
        self.known.own[domain] = ring
        self.forwarding.put_early(domain)
        self.known.changed()

    def _state_all(self, domain: int, ring: ConfigurationId) -> None:
        """State for all members of a ring that ends what its regular configuration brought."""
        known = self.known
        front = known.streams[ring].front
        self.forwarding.say(NoticeItem(ring, known.me, front, self.coverage.entries(ring)), domain)

    def _state_last(self, domain: int, ring: ConfigurationId, half: Processes) -> None:
        """State for all members of a ring that ends what they have, and for my half what it has besides."""
        self._state_all(domain, ring)
        known = self.known
        front, entries = known.streams[ring].front, self.coverage.last_entries(ring)
        self.forwarding.say(NoticeItem(ring, known.me, front, entries, half), domain)

    def _tell(self) -> None:
        """Tell the fronts of own rings and what their members have, where somebody may wait for it."""
        known = self.known
        for domain, ring in known.own.items():
            front = known.streams[ring].front
            told = self._told.get(ring, NO_STAMP)
            if (front > told and told < known.need) or self.coverage.has_risen(ring):
                self._told[ring] = front
                entries, stable = self.coverage.risen(ring), self.stability.of(ring)
                notice = NoticeItem(ring, known.me, front, entries, stable=stable)
                known.occurred[Occurrence.NETWORK_CAP_TOLD] += notice.is_cap
                self.forwarding.say(notice, domain)
