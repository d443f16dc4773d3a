"""What a process passes up: messages with their positions, each once, large ones whole.

The position of what went through a tree names its originator and its source number, and the epoch in which it was sent;
of what went by the control stream, its number there. Positions are names: the order of messages is that of ranks, which
nobody above the engine sees. A cargo that was ordered where its source could not know of it is sent again in a later
configuration, and its position says so: whoever has delivered it drops it then.
"""

from __future__ import annotations

from typing import NamedTuple

from ordercast.model.effects import Deliver, Parcel, Placed
from ordercast.model.ids import AGAIN_SLOT, ConfigurationId, ProcessId
from ordercast.order.large import LargeMessages
from ordercast.order.tree.blocks import SOURCE_BITS, Cargo
from ordercast.wire.header import Part

CONTROL_SLOT = 0x8000  # in the slots of what went by the control stream; cargoes have fewer messages
Spot = tuple[int, int]  # number and slot of a message on the control stream
SENDERS_MAX = 100_000  # that are remembered


class ControlMessage(NamedTuple):
    """A message that went by the control stream."""

    epoch: int  # of its source
    spot: Spot
    originator: ProcessId
    sender: int
    service: int
    data: bytes
    is_again: bool = False
    source: int = 0  # the number of the cargo that it was in, if it was in one


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
        parcel = parcel_of(cargo, cargo.payloads)
        parcels: list[Parcel] = [parcel]
        if cargo.part != Part.WHOLE:
            parcels = []
            self.large.take(parcel, bytes((cargo.part,)), parcels)
        return Deliver(self.current, self.origin(cargo.originator), parcels) if parcels else None

    def origin(self, originator: ProcessId) -> ConfigurationId:
        """Return that of the positions of a process's cargoes."""
        return ConfigurationId(self.configuration.seq, originator)

    def control(self, message: ControlMessage, *, is_late: bool) -> Deliver | None:
        """Deliver what went by the control stream, unless it is sent again and was delivered with its cargo. Views of
        groups that it makes have the same ids at all companions, whether it takes effect in the regular configuration
        here or behind its end; unless it is late, and behind the end at all."""
        last = self._last.get((message.originator, message.sender), 0)
        if message.is_again and 0 < message.source <= last:
            self.dropped += 1
            return None
        views = self.current if is_late else self.configuration
        return Deliver(self.current, self.configuration, [control_parcel(message)], views_of=views)

    def placed(self, parcel: Parcel) -> Placed:
        """Tell the place of a cargo of this process that it is not owed itself."""
        return Placed(self.origin(parcel[1]), [parcel])

    def control_placed(self, message: ControlMessage) -> Placed:
        """Tell the same of what went by the control stream."""
        return Placed(self.configuration, [control_parcel(message)])


def parcel_of(cargo: Cargo, payloads: tuple[bytes, ...]) -> Parcel:
    """Return messages at the place of a cargo: its own, or the large one whose last part it is."""
    each = len(payloads)
    number, base = cargo.epoch << SOURCE_BITS | cargo.source, cargo.is_again * AGAIN_SLOT
    return number, cargo.originator, (cargo.sender,) * each, (cargo.service,) * each, payloads, each, base


def control_parcel(message: ControlMessage) -> Parcel:
    number, slot = message.spot
    number |= message.epoch << SOURCE_BITS
    slot |= CONTROL_SLOT | message.is_again * AGAIN_SLOT
    sender, service = (message.sender,), (message.service,)
    return number, message.originator, sender, service, (message.data,), 1, slot
