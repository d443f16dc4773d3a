"""What a ring hands up, as the order of the network takes it: natives in stretches, and what somebody put on the ring.

Whatever is unsound is dropped by itself, with a sentence: nothing moves by it. What comes out does not depend on how
packets came together in runs, which differs between members.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from ordercast.model.effects import Parcel
from ordercast.model.errors import WireError
from ordercast.model.ids import ConfigurationId
from ordercast.order.gateways.codec import decode_item
from ordercast.order.gateways.items import Carried, HelloItem, InterestItem, Stretch
from ordercast.order.gateways.names import RingNames
from ordercast.order.gateways.network import Heard, RingEntry
from ordercast.order.gateways.packets import (
    carried_stretches,
    control_in,
    interest_stretch,
    is_carried,
    is_control,
    is_in_parts,
    native_stretch,
    parts_in,
    together,
)
from ordercast.order.large import LargeMessages
from ordercast.order.ring.two_queues import CONTROL_SENDER
from ordercast.wire.header import Part
from ordercast.wire.run import PacketRun

UNFINISHED_SIZE_MAX: Final = 64 << 20  # of all items that a ring has in parts; a merge takes a few at once


class RingReading:
    """One physical ring, from its installation to its end: large items are put together over its packets."""

    __slots__ = ("_large", "_ring", "dropped")

    def __init__(self, ring: ConfigurationId) -> None:
        self._ring = ring
        self._large = LargeMessages()
        self.dropped: list[str] = []  # why, of what was unsound; whoever reads it takes it

    @property
    def unfinished_size(self) -> int:
        """Bytes of items whose last part has not come."""
        return self._large.size

    def entries(
        self, runs: Iterable[PacketRun], names: RingNames, logical: ConfigurationId | None = None
    ) -> Iterator[RingEntry]:
        """Return what these packets have, in order; natives as those of a logical ring, if it is known."""
        for alike in together(runs):
            run = alike[0]
            is_item = is_control(run)
            for pieces in _singles(run) if is_item and not is_in_parts(run) else (alike,):
                try:
                    found = self._read(pieces, names, logical or self._ring, is_item)
                except WireError as error:
                    self.dropped.append(str(error))
                    continue
                yield from found

    def _read(
        self, runs: Sequence[PacketRun], names: RingNames, logical: ConfigurationId, is_item: bool
    ) -> Sequence[RingEntry]:
        run = runs[0]
        if is_carried(run):
            return self._carried(runs, names)
        if not is_item:
            return (native_stretch(runs, logical),)
        if is_in_parts(run):
            return self._large_items(run)
        return (self._item(run, run.seq, control_in(run), logical),)

    def _carried(self, runs: Sequence[PacketRun], names: RingNames) -> list[RingEntry]:
        """Return the packets that a gateway carries; of a ring that is not known here, only that something came."""
        run, last = runs[0], runs[-1].last
        items: list[Stretch | HelloItem] = [*carried_stretches(runs, names)]
        if not items:
            self.dropped.append("packets of a ring that is not known")
            items = [HelloItem(self._ring)]
        return [Heard(run.originator, last, run.timestamp(run.seq), Carried(one)) for one in items]

    def _large_items(self, run: PacketRun) -> list[RingEntry]:
        """Return the items that are complete with the parts in a run."""
        parts, payloads = parts_in(run)
        if parts[0] != Part.FIRST and self._large.size + sum(map(len, payloads)) > UNFINISHED_SIZE_MAX:
            self._large.forget(run.originator)
            raise WireError("an item in parts that has no end")
        parcels: list[Parcel] = []
        self._large.take((run.seq, run.originator, (CONTROL_SENDER,), bytes(1), payloads, 1, 0), parts, parcels)
        found = []
        for seq, *_, (data,), _, _ in parcels:
            try:
                found.append(self._item(run, seq, data, self._ring))
            except WireError as error:
                self.dropped.append(str(error))
        return found

    def _item(self, run: PacketRun, seq: int, data: bytes, logical: ConfigurationId) -> RingEntry:
        item, since, half = decode_item(data)
        if isinstance(item, InterestItem):
            return interest_stretch(run, seq, logical, item)
        return Heard(run.originator, seq, run.timestamp(seq), Carried(item, since, half))


def _singles(run: PacketRun) -> list[list[PacketRun]]:
    """Return the packets of a run one by one: an unsound one takes no other with it."""
    return [[run.piece(seq, seq)] for seq in range(run.seq, run.last + 1)]
