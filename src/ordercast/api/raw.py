"""RawNode: the engine's ordered stream as it is, without groups. For benchmarks, tests and tools.

async with RawNode() as node:
    await node.submit(b"hello")
    async for event in node.stream():
        ...
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ordercast.api.inbox import Inbox, Items
from ordercast.daemon.config.node import NodeConfig
from ordercast.daemon.participant import Participant
from ordercast.groups.turns import portions
from ordercast.model.configuration import Configuration
from ordercast.model.effects import Deliver, Install
from ordercast.model.errors import UsageError
from ordercast.model.ids import Places, Position, ProcessId
from ordercast.model.inputs import EVERYWHERE, Interest
from ordercast.model.service import Service
from ordercast.session.payloads import MESSAGE_OVERHEAD, checked_payloads, checked_service

_SERVICES = tuple(Service)


class RawMessage(NamedTuple):
    """One delivered message. Its position is the same at everybody who delivers it."""

    sender: ProcessId
    data: bytes
    service: Service
    position: Position


RawPiece = Deliver | Configuration
RawEvent = RawMessage | Configuration
RawEvents = Items[RawEvent]
RawPieces = Items[RawPiece]


class RawNode(Participant):
    def __init__(self, config: NodeConfig | None = None) -> None:
        super().__init__(config)
        self.inbox: Inbox[RawPiece, RawEvent] = Inbox(
            raw_events_of, raw_rest_of, self.config.inbox_size_max, self.on_behind
        )
        self.reading = self.inbox

    async def submit(self, data: bytes, service: Service = Service.AGREED) -> None:
        """Send one message to all members; returns when it is accepted, and waits while there is no room."""
        await self.submit_many((data,), service)

    def want(self, *destinations: str) -> None:
        """Have what is sent to these, too. An engine that prunes nothing brings it anyway."""
        self._tell_interest([Interest(destination, is_wanted=True) for destination in destinations])

    async def submit_many(
        self, payloads: Sequence[bytes], service: Service = Service.AGREED, to: tuple[str, ...] = EVERYWHERE
    ) -> None:
        """Send several at once, which costs far less than one by one. What cannot be sent is refused before anything
        is. An engine that prunes brings them to those who want one of `to`, if there is any."""
        self._running()
        checked_service(service, self.engine.promises.services)
        checked = checked_payloads(payloads)
        largest = max(map(len, checked), default=0)
        if largest > self._message_size_max:
            raise UsageError(f"a message of {largest:,} bytes exceeds message_size_max = {self._message_size_max:,}")
        start = 0
        for end, size in portions(checked, self._overhead, self.config.sizes.queue_size_max):
            while not self._has_room_for(size):
                await self._room()
            self._hand_over(checked[start:end], service, 0, size, to)
            await self.give_turn()
            start = end

    def batches(self) -> RawPieces:
        """What is delivered, in order, in the engine's own pieces. Ends when the node does. One reader at a time."""
        return self.inbox.pieces()

    def stream(self) -> RawEvents:
        """What is delivered, message by message, and the views between them."""
        return self.inbox.events()

    def _opened(self) -> None:
        pass

    def _delivered(self, deliver: Deliver, size: int) -> None:
        self.inbox.put(deliver, size)

    def _viewed(self, effect: Install) -> None:
        self.inbox.put(effect.configuration, MESSAGE_OVERHEAD)


def raw_rest_of(piece: RawPiece, taken: int) -> RawPiece | None:
    if isinstance(piece, Deliver) and taken < len(piece):
        raise UsageError("these messages are being read one by one: read all of them so before the next batch")
    return None


def raw_events_of(piece: RawPiece) -> Iterator[RawEvent]:
    if isinstance(piece, Configuration):
        yield piece
        return
    for number, originator, _, asked, payloads, each, base in piece.parcels:
        at = Places(piece.origin, number, base, each, 0).at
        for index, data in enumerate(payloads):
            yield RawMessage(originator, data, _SERVICES[asked[index]], at(index))
