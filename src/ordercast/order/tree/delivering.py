"""What a process passes up: messages with their positions, each once, large ones whole.

The position of what went through a tree names its originator and its source number, and the epoch in which it was sent;
of what went by the control stream, its number there. Positions are names: the order of messages is that of ranks, which
nobody above the engine sees. A cargo that was ordered where its source could not know of it is sent again in a later
configuration: whoever has delivered it drops it then.
"""

from __future__ import annotations

from ordercast.model.effects import Deliver, Parcel
from ordercast.model.ids import ConfigurationId, ProcessId
from ordercast.order.large import LargeMessages
from ordercast.order.tree.blocks import SOURCE_BITS, Cargo
from ordercast.wire.header import Part

CONTROL_SLOT = 0x8000  # the slot of what went by the control stream; cargoes have fewer messages
Spot = tuple[int, int]  # number and slot of a message on the control stream
SENDERS_MAX = 100_000  # that are remembered


class Delivering:
    def __init__(self, configuration: ConfigurationId) -> None:
        self.configuration = configuration  # whose messages these are
        self.current = configuration  # in which they are delivered: that, or the transitional one that ends it
        self.large = LargeMessages()
        self.dropped = 0
        self._last: dict[tuple[ProcessId, int], int] = {}  # the last source number of each sender

    def begin(self, configuration: ConfigurationId) -> int:
        """Begin a configuration; return how many large messages are cut."""
        self.configuration = self.current = configuration
        return self.cut()

    def cut(self) -> int:
        """Drop large messages that are not whole, which all do alike; return how many."""
        cut, self.large = len(self.large), LargeMessages()
        return cut

    def cargo(self, cargo: Cargo) -> Deliver | None:
        key = cargo.originator, cargo.sender
        if cargo.source <= self._last.get(key, 0):
            self.dropped += 1
            return None
        if cargo.part in (Part.WHOLE, Part.LAST):
            self._last.pop(key, None)  # so that those who are silent longest are forgotten first
            self._last[key] = cargo.source
            if len(self._last) > SENDERS_MAX:
                del self._last[next(iter(self._last))]
        each = len(cargo.payloads)
        number, senders, services = (
            cargo.epoch << SOURCE_BITS | cargo.source,
            (cargo.sender,) * each,
            (cargo.service,) * each,
        )
        parcel = number, cargo.originator, senders, services, cargo.payloads, each, 0
        parcels: list[Parcel] = [parcel]
        if cargo.part != Part.WHOLE:
            parcels = []
            self.large.take(parcel, (cargo.part,), parcels)
        origin = ConfigurationId(self.configuration.seq, cargo.originator)
        return Deliver(self.current, origin, parcels) if parcels else None

    def control(self, epoch: int, spot: Spot, originator: ProcessId, sender: int, service: int, data: bytes) -> Deliver:
        number, slot = spot
        number |= epoch << SOURCE_BITS
        parcel = number, originator, (sender,), (service,), (data,), 1, CONTROL_SLOT | slot
        return Deliver(self.current, self.configuration, [parcel])
