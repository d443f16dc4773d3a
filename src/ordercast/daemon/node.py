"""Node: a member of the cluster inside any asyncio program.

    async with ordercast.Node() as node:
        await node.submit(b"hello")
        async for event in node.stream():
            ...

Everything that is delivered comes in one stream, views in their place among the messages. `batches()` gives the same
stream in the pieces in which the engine delivers it, for those who count microseconds. A node belongs to the event loop
on which it was started; see `thread.py` for a node with a thread of its own.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic_ns
from types import TracebackType
from typing import Self

from ordercast.daemon.config import NodeConfig, TraceConfig, TraceLevel
from ordercast.daemon.counters import Counters
from ordercast.daemon.driver import Driver
from ordercast.daemon.sockets import Sockets
from ordercast.daemon.storage import FolderStorage, MemoryStorage, Storage
from ordercast.model.effects import Alarm, Deliver, InstallView
from ordercast.model.errors import UsageError
from ordercast.model.ids import Instant, Position, ProcessId, node_of, process_id_from, process_text
from ordercast.model.inputs import Submission
from ordercast.model.notes import Note
from ordercast.model.service import Service
from ordercast.model.view import View
from ordercast.order.ring.node import RingNode
from ordercast.order.ring.outbox import OVERHEAD

LEAVE_PATIENCE_S = 5.0  # an orderly leave that takes longer is given up: others will see a failure


@dataclass(frozen=True, slots=True)
class Message:
    """One delivered message. Its position is the same at everybody who delivers it."""

    sender: ProcessId
    data: bytes
    service: Service
    position: Position


Event = Message | View
Batch = Deliver | View


class NodeFailed(Exception):
    """The node has ended by itself: the reason is its cause."""


class Node:
    """One process on the ring, driven by the event loop on which it is entered."""

    def __init__(self, config: NodeConfig | None = None) -> None:
        config = config or NodeConfig()
        self.config = config.with_packet_size()
        self.config.ring.validate()
        self.counters = Counters()
        self.started_at = Instant(0)
        self.engine: RingNode
        self.sockets: Sockets
        self.process: ProcessId
        self._storage: Storage
        self._driver: Driver | None = None
        self._batches: deque[Batch] = deque()
        self._arrived = asyncio.Event()
        self._has_room = asyncio.Event()
        self._ended = asyncio.Event()
        self._failure: BaseException | None = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.leave()

    # Beginning and end

    async def start(self) -> None:
        self.sockets = Sockets(self.config)
        self.config = self.sockets.config
        try:
            folder = self.config.state_folder
            self._storage = MemoryStorage() if folder is None else await asyncio.to_thread(FolderStorage, folder)
        except BaseException:
            self.sockets.close()
            raise
        assert self.config.node is not None
        self.process = process_id_from(self.config.node, self._storage.incarnation)
        self.engine = RingNode(self.config.node, self.config.ring)
        self._driver = Driver(self.engine, self.sockets, self._storage, self, self.counters)
        self.started_at = self.now()
        self._driver.start()

    async def leave(self) -> None:
        """Finish what was submitted, tell the others, close. The others see a leave, not a failure."""
        if self._driver is None:
            return
        if not self._ended.is_set():
            self._driver.leave()
            try:
                await asyncio.wait_for(self._ended.wait(), LEAVE_PATIENCE_S)
            except TimeoutError:
                self._ended.set()
        self._close()

    def _close(self) -> None:
        if self._driver is not None:
            self._driver.stop()
            self._driver = None
            self.sockets.close()
            self._storage.close()
        self._arrived.set()
        self._has_room.set()

    # Sending

    async def submit(self, data: bytes, service: Service = Service.AGREED) -> None:
        """Send one message to all members; returns when it is accepted, and waits while there is no room."""
        await self.submit_many((data,), service)

    async def submit_many(self, payloads: Sequence[bytes], service: Service = Service.AGREED) -> None:
        """Send several at once, which costs far less than one by one."""
        submissions = [Submission(data, service) for data in payloads]
        size = sum(map(len, payloads)) + OVERHEAD * len(payloads)
        if size > self.config.ring.queue_size_max:
            half = len(submissions) // 2
            if not half:
                raise UsageError(f"a message of {len(payloads[0])} bytes is too large: see message_size_max")
            await self.submit_many(payloads[:half], service)
            await self.submit_many(payloads[half:], service)
            return
        driver = self._running()
        while self.engine.room() < size:
            self._has_room.clear()
            await self._has_room.wait()
            driver = self._running()
        driver.submit(submissions)
        self.counters.messages_submitted += len(payloads)
        self.counters.bytes_submitted += size - OVERHEAD * len(payloads)

    def _running(self) -> Driver:
        if self._failure is not None:
            raise NodeFailed("the node has ended by itself") from self._failure
        if self._driver is None or self._ended.is_set():
            raise UsageError("the node is not running: use it inside `async with`")
        return self._driver

    # Receiving

    async def batches(self) -> AsyncIterator[Batch]:
        """What is delivered, in order, in the engine's own pieces. Ends when the node does. One reader at a time."""
        batches, arrived = self._batches, self._arrived
        while True:
            while batches:
                yield batches.popleft()
            if self._failure is not None:
                raise NodeFailed("the node has ended by itself") from self._failure
            if self._ended.is_set():
                return
            arrived.clear()
            await arrived.wait()

    async def stream(self) -> AsyncIterator[Event]:
        """What is delivered, message by message, and the views between them."""
        services = tuple(Service)
        async for batch in self.batches():
            if isinstance(batch, View):
                yield batch
                continue
            ring = batch.ring
            for seq, slot, originator, _, service, data in batch.messages():
                yield Message(originator, data, services[service], Position(ring, seq, slot))

    # Questions

    def now(self) -> Instant:
        return Instant(monotonic_ns())

    @property
    def loop_lag_ns(self) -> int:
        return 0 if self._driver is None else self._driver.loop_lag_ns

    @property
    def members(self) -> tuple[ProcessId, ...]:
        return self.engine.ring.members

    def name_of(self, process: ProcessId) -> str:
        try:
            return self.config.peer(node_of(process)).name
        except UsageError:
            return process_text(process)

    # What the driver tells (see `driver.Application`)

    def on_deliver(self, deliver: Deliver, at: Instant) -> None:
        counters = self.counters
        for parcel in deliver.parcels:
            payloads = parcel[4]
            counters.messages_delivered += len(payloads)
        self._batches.append(deliver)
        self._arrived.set()

    def on_view(self, effect: InstallView, at: Instant) -> None:
        self._batches.append(effect.view)
        self._arrived.set()

    def on_room(self) -> None:
        self._has_room.set()

    def on_alarm(self, alarm: Alarm, at: Instant) -> None:
        pass

    def on_note(self, note: Note, at: Instant) -> None:
        pass

    def on_left(self, at: Instant) -> None:
        self._ended.set()
        self._arrived.set()
        self._has_room.set()

    def on_failure(self, error: BaseException) -> None:
        self._failure = error
        self._ended.set()
        self._close()
