"""One attachment of a process: the ring there, what its packets say, and what is put on it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ordercast.model.ids import NO_CONFIGURATION, ConfigurationId
from ordercast.order.attached import RingChange
from ordercast.order.gateways.items import Carried, HelloItem, MarkItem, Processes, TopologyItem
from ordercast.order.gateways.merging import PhysicalRing
from ordercast.order.gateways.names import RingNames
from ordercast.order.gateways.network import Heard, RingEntry
from ordercast.order.gateways.packets import freight_from
from ordercast.order.gateways.reading import RingReading
from ordercast.order.layered import InnerRing
from ordercast.order.ring.two_queues import Freight
from ordercast.order.stamped.lanes import NO_STAMP, Stamp
from ordercast.wire.run import PacketRun


class RingAttachment:
    """A ring of the network that this process is on."""

    def __init__(self, inner: InnerRing, domain: int) -> None:
        self.inner = inner
        self.domain = domain
        self.is_past = False  # its ring has changed after the farewell: what comes of the new one is for others
        self.is_gone = False  # it has been left in order
        self.lowest = inner.lowest
        self.lowest_heard: Stamp = NO_STAMP  # as the order has heard it last
        self.dropped: list[str] = []  # why packets or items counted nowhere; whoever reads it takes it
        self._reading = RingReading(NO_CONFIGURATION)

    def read(
        self, runs: Sequence[PacketRun], names: RingNames, logical: ConfigurationId | None = None
    ) -> Iterator[RingEntry]:
        """Return what packets of the ring say, in order: each is taken before the next one is read, which may speak of
        a ring that it has told of. What is unsound is so at every member, and counts nowhere."""
        return self._entries(self._reading, runs, names, logical)

    def _entries(
        self,
        reading: RingReading,
        runs: Sequence[PacketRun],
        names: RingNames,
        logical: ConfigurationId | None = None,
    ) -> Iterator[RingEntry]:
        for entry in reading.entries(runs, names, logical):
            if not (isinstance(entry, Heard) and self._is_impostor(entry)):
                yield entry
        self.dropped += reading.dropped
        reading.dropped.clear()

    def change(self, change: RingChange, names: RingNames) -> tuple[Iterator[RingEntry], Processes, PhysicalRing]:
        """Return what is left of the old ring, who comes along from it, and the new one."""
        residual = self._entries(self._reading, change.residual, names)
        configuration = change.configuration
        self._reading = RingReading(configuration.id)
        ring = PhysicalRing(configuration.id, frozenset(configuration.members), change.birth, configuration.reason)
        return residual, frozenset(configuration.transitional), ring

    def freight(self, items: Iterable[Carried], names: RingNames | None) -> list[Freight]:
        """Return items as the packets that they take; `names`: short ones may be used."""
        return [one for carried in items for one in freight_from(carried, self.inner.freight_body_max, names)]

    def _is_impostor(self, entry: Heard) -> bool:
        """Whether somebody speaks in another's name."""
        item = entry.carried.item
        is_impostor = isinstance(item, MarkItem | TopologyItem) and item.by != entry.sender
        if is_impostor:
            self.dropped.append("a mark or a topology in another's name")
        return is_impostor


def is_greeting(carried: Carried) -> bool:
    """Whether an item goes before everything else on its ring."""
    return isinstance(carried.item, HelloItem)
