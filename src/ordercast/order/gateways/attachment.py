"""One attachment of a process: the ring there, and what its packets say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ordercast.model.errors import WireError
from ordercast.model.ids import NO_CONFIGURATION, ConfigurationId, ProcessId
from ordercast.order.attached import RingChange
from ordercast.order.gateways.codec import decode_item
from ordercast.order.gateways.items import (
    Carried,
    HelloItem,
    InterestItem,
    MarkItem,
    Processes,
    Stretch,
    TopologyItem,
)
from ordercast.order.gateways.merging import PhysicalRing
from ordercast.order.gateways.network import Heard, RingEntry
from ordercast.order.gateways.packets import (
    block_from,
    carried_stretches,
    control_freight,
    control_of,
    freight_of,
    interest_stretch,
    is_control,
    stretches_of,
)
from ordercast.order.layered import InnerRing
from ordercast.order.ring.two_queues import Freight
from ordercast.wire.header import Part
from ordercast.wire.run import PacketRun


class RingAttachment:
    """A ring of the network that this process is on."""

    def __init__(self, inner: InnerRing, domain: int) -> None:
        self.inner = inner
        self.domain = domain
        self.physical: ConfigurationId = NO_CONFIGURATION  # the ring that is installed
        self.unsound = 0  # packets and items that cannot be
        self.is_gone = False  # it has been left in order
        self._begun: dict[ProcessId, list[bytes]] = {}  # items whose last packet has not come, by who puts them here

    # What the ring hands up

    def read(self, runs: Sequence[PacketRun]) -> Iterator[RingEntry]:
        """Return what packets of the ring say, in order. What is unsound is so at every member, and counts nowhere."""
        for run in runs:
            try:
                entries = list(self._entries(run))
            except WireError:
                self.unsound += run.count
                continue
            yield from entries

    def change(self, change: RingChange) -> tuple[list[RingEntry], Processes, PhysicalRing]:
        """Return what is left of the old ring, who comes along from it, and the new one."""
        residual = list(self.read(change.residual))
        self._begun.clear()
        configuration = change.configuration
        self.physical = configuration.id
        ring = PhysicalRing(configuration.id, frozenset(configuration.members), change.birth)
        return residual, frozenset(configuration.transitional), ring

    def _entries(self, run: PacketRun) -> Iterator[RingEntry]:
        if block_from(run.block(run.seq)).origin is not None:
            for stretch in carried_stretches(run):
                yield Heard(run.originator, run.last, run.timestamp(run.last), Carried(stretch))
        elif is_control(run):
            yield from self._items(run)
        else:
            yield from stretches_of(run, self.physical)

    def _items(self, run: PacketRun) -> Iterator[RingEntry]:
        originator = run.originator
        for seq in range(run.seq, run.last + 1):
            data = self._assembled(originator, *control_of(run, seq))
            if data is None:
                continue
            item, since, half = decode_item(data)
            if isinstance(item, InterestItem):
                if item.process != originator:
                    raise WireError("an interest in another's name")
                yield interest_stretch(run, seq, self.physical, item)
                continue
            if isinstance(item, MarkItem | TopologyItem) and item.by != originator:
                raise WireError("an item in another's name")
            yield Heard(originator, seq, run.timestamp(seq), Carried(item, since, half))

    def _assembled(self, originator: ProcessId, part: Part, data: bytes) -> bytes | None:
        """Return an item whose last packet this is."""
        if part is Part.WHOLE:
            return data
        if part is Part.FIRST:
            self._begun[originator] = []
        elif originator not in self._begun:
            return None  # its beginning lay beyond a gap that everybody skipped alike
        self._begun[originator].append(data)
        return b"".join(self._begun.pop(originator)) if part is Part.LAST else None

    # What is put on the ring

    def freight(self, carried: Carried) -> list[Freight]:
        """Return an item as the packets that it takes."""
        item, since, half = carried
        if isinstance(item, Stretch):
            return freight_of(item, since, half, self.inner.freight_body_max)
        return [control_freight(item, self.inner.freight_body_max, since, half)]

    @staticmethod
    def is_greeting(carried: Carried) -> bool:
        """Whether an item goes before everything else."""
        return isinstance(carried.item, HelloItem)
