"""The order of a network at one process as the simulator runs it: the shipped one, with somebody who looks on.

What the rings hand up and what is said of them goes into the ledger, before and after the order takes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from ordercast.model.ids import ConfigurationId, ProcessId
from ordercast.order.gateways.items import NoticeItem, Processes
from ordercast.order.gateways.merging import Flush, PhysicalRing
from ordercast.order.gateways.network import Heard, RingEntry, RingNetwork
from ordercast.order.gateways.node import GatewayNode
from ordercast.order.gateways.timeline import Passed
from ordercast.order.gateways.views import NetworkView

if TYPE_CHECKING:
    from ordercast.sim.gateways.witness import RingsWitness


class _WatchedOrder(list[Passed]):
    """What the order of a process brings."""

    def __init__(self, network: WatchedNetwork) -> None:
        super().__init__()
        self._network = network
        self._members = network.view.members

    def append(self, passed: Passed) -> None:
        super().append(passed)
        if isinstance(passed, NetworkView):
            self._members = passed.members
        elif passed.content.is_safe:
            self._network.ledger.delivered_as_safe(self._network.known.me, self._members, passed.content)


class WatchedNetwork(RingNetwork):
    def __init__(
        self,
        witness: RingsWitness,
        engine: GatewayNode,
        me: ProcessId,
        rings: Mapping[int, ConfigurationId],
        tick: int,
        is_filtering: bool = False,
    ) -> None:
        super().__init__(me, rings, tick, is_filtering)
        self._witness = witness
        self._engine = engine
        self.ledger = witness.ledger
        alone = frozenset((me,))
        self._physical = {domain: PhysicalRing(ring, alone, tick) for domain, ring in rings.items()}
        self._ended: dict[int, ConfigurationId] = {}  # the logical ring of each domain that ended last
        witness.founded(me, tick)
        self.ledger.begin(me, self)
        for domain, ring in self._physical.items():
            witness.joined(me, domain, ring)
            witness.went_on(me, self.known.own_ring(domain))
        self._view = self.view.id
        self.timeline.passed = _WatchedOrder(self)

    def deliver(self, domain: int, entries: Iterable[RingEntry]) -> None:
        for entry in entries:
            self._see(domain, entry, None)
            super().deliver(domain, (entry,))

    def install(self, domain: int, residual: Iterable[RingEntry], companions: Processes, ring: PhysicalRing) -> None:
        super().install(domain, self._seen(domain, residual, companions), companions, ring)
        new = self.known.own_ring(domain)
        self.ledger.split(self._ended[domain], new)
        self.ledger.installed(self.known.me, self._physical[domain], ring)
        self._physical[domain] = ring
        self._witness.joined(self.known.me, domain, ring)
        self._witness.went_on(self.known.me, new)

    def _seen(self, domain: int, residual: Iterable[RingEntry], companions: Processes) -> Iterator[RingEntry]:
        """Return what is left of a ring, each as it is taken: the next one may speak of a ring that it has told of, and
        be read only then."""
        for entry in residual:
            self._see(domain, entry, companions)
            yield entry
        self._ended[domain] = self.known.own[domain]

    def hold(self, reasons: Iterable[str]) -> None:
        super().hold(reasons)
        me = self.known.me
        self._witness.queued(me, max(self._engine.freight_sizes), bool(self.holds.in_force(frozenset((me,)))))

    def step(self) -> None:
        super().step()
        me = self.known.me
        self._witness.refused(me, self.known.refused)
        for queue in self.forwarding.queues.values():
            for carried in queue:
                if isinstance(carried.item, NoticeItem) and carried.item.by == me:
                    self.ledger.stated(carried.item)
        if self.view.id != self._view:
            self._view = self.view.id
            self._witness.viewed(me, self.view)

    def _merge(self, domain: int, flush: Flush, seq: int, companions: Processes | None) -> None:
        super()._merge(domain, flush, seq, companions)
        ring = self.known.own_ring(domain)
        self.ledger.merged(ring)
        self._witness.went_on(self.known.me, ring)

    def _see(self, domain: int, entry: RingEntry, companions: Processes | None) -> None:
        sender = entry.sender if isinstance(entry, Heard) else entry.originator
        own = self.known.own_ring(domain)
        half = None if companions is None else companions & own.members
        self.ledger.handed_up(self.known.me, self._physical[domain], own, entry, half)
        if sender == self.known.me:
            self._witness.numbered(sender, entry.tick)
