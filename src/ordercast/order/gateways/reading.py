"""What a ring hands up, as the order of the network takes it: natives in stretches, and what somebody put on the ring.

Whatever is unsound is dropped by itself, with a sentence: nothing moves by it. What comes out does not depend on how
packets came together in runs, which differs between members.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ordercast.model.effects import Parcel
from ordercast.model.errors import WireError
from ordercast.model.ids import ConfigurationId
from ordercast.order.gateways.codec import decode_item
from ordercast.order.gateways.items import Carried, InterestItem
from ordercast.order.gateways.network import Heard, RingEntry
from ordercast.order.gateways.packets import (
    block_from,
    carried_stretches,
    control_in,
    interest_stretch,
    is_control,
    stretches_of,
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

    def entries(self, runs: Iterable[PacketRun]) -> list[RingEntry]:
        """Return what these packets have, in order."""
        found: list[RingEntry] = []
        for run in runs:
            for piece in _singles(run) if is_control(run) else [run]:
                try:
                    found += self._read(piece)
                except WireError as error:
                    self.dropped.append(str(error))
        return found

    def _read(self, run: PacketRun) -> list[RingEntry]:
        if block_from(run.block(run.seq)).origin is not None:
            tick = run.timestamp(run.last)
            return [Heard(run.originator, run.last, tick, Carried(one)) for one in carried_stretches(run)]
        if not is_control(run):
            return list(stretches_of(run, self._ring))
        return self._control(run, run.seq)

    def _control(self, run: PacketRun, seq: int) -> list[RingEntry]:
        data = self._whole(run, seq)
        if data is None:
            return []
        item, since, half = decode_item(data)
        if isinstance(item, InterestItem):
            return [interest_stretch(run, seq, self._ring, item)]
        return [Heard(run.originator, seq, run.timestamp(seq), Carried(item, since, half))]

    def _whole(self, run: PacketRun, seq: int) -> bytes | None:
        """Return the item that a packet completes, if it completes one."""
        part, payload = control_in(run, seq)
        if part is Part.WHOLE:
            return payload
        if part is not Part.FIRST and self._large.size + len(payload) > UNFINISHED_SIZE_MAX:
            self._large.forget(run.originator)
            raise WireError("an item in parts that has no end")
        parcels: list[Parcel] = []
        self._large.take((seq, run.originator, (CONTROL_SENDER,), bytes(1), (payload,), 1, 0), (part,), parcels)
        return parcels[0][4][0] if parcels else None


def _singles(run: PacketRun) -> list[PacketRun]:
    """Return the packets of a run one by one: an unsound one takes no other with it."""
    return [run.piece(seq, seq) for seq in range(run.seq, run.last + 1)]
