"""What was delivered and the application has not taken yet: in order, views among the messages, and bounded.

When too much waits, the inbox says that the application is behind; the engine tells the ring, and nobody sends anything
new until it has caught up. An application that takes nothing at all for long is given up: it would stop everybody.

Whoever stops reading and begins again, with another iterator or after a timeout, goes on where the last one was.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple, Self

from ordercast.model.effects import Deliver
from ordercast.model.errors import UsageError
from ordercast.model.ids import Position, ProcessId, Seq
from ordercast.model.service import Service
from ordercast.model.view import View

Batch = Deliver | View
MESSAGE_OVERHEAD = 64  # what a waiting message costs beside its bytes, so that empty ones are bounded too
_SERVICES = tuple(Service)


class Message(NamedTuple):
    """One delivered message. Its position is the same at everybody who delivers it."""

    sender: ProcessId
    data: bytes
    service: Service
    position: Position


Event = Message | View


def size_of(batch: Batch) -> int:
    if isinstance(batch, View):
        return MESSAGE_OVERHEAD
    return sum(sum(map(len, parcel[4])) + MESSAGE_OVERHEAD * len(parcel[4]) for parcel in batch.parcels)


class Inbox:
    def __init__(
        self, size_max: int, on_behind: Callable[[bool], None], on_taken: Callable[[int], None] | None = None
    ) -> None:
        self.size = 0  # bytes that wait
        self.is_behind = False
        self.taken = 0  # batches taken so far: whether the application does anything at all
        self._size_max = size_max
        self._on_behind = on_behind
        self._on_taken = on_taken
        self._waiting: deque[tuple[Batch, int]] = deque()
        self._events: Iterator[Event] = iter(())  # of the batch that is being read one by one
        self._reader: asyncio.Future[None] | None = None  # waits for something to come
        self._failure: BaseException | None = None
        self._is_closed = False

    def put(self, batch: Batch, size: int) -> None:
        self._waiting.append((batch, size))
        self.size += size
        if self.size > self._size_max and not self.is_behind and not self._is_closed:
            self.is_behind = True
            self._on_behind(True)
        self._wake()

    def close(self, failure: BaseException | None = None) -> None:
        """Nothing more will come. The reader gets what is here, then the end or the failure."""
        self._is_closed = True
        self._failure = self._failure or failure
        self._wake()

    def batches(self) -> Batches:
        return Batches(self)

    def events(self) -> Events:
        return Events(self)

    async def next_batch(self) -> Batch:
        while not self._waiting:
            if self._failure is not None:
                raise self._failure
            if self._is_closed:
                raise StopAsyncIteration
            if self._reader is not None and not self._reader.done():
                raise UsageError("somebody else is reading this stream: one reader at a time")
            self._reader = asyncio.get_running_loop().create_future()
            await self._reader
        batch, size = self._waiting.popleft()
        self.size -= size
        self.taken += 1
        if self._on_taken is not None:
            self._on_taken(size)
        if self.is_behind and self.size < self._size_max // 2:
            self.is_behind = False
            self._on_behind(False)
        return batch

    async def next_event(self) -> Event:
        while True:
            for event in self._events:
                return event
            self._events = _events_of(await self.next_batch())

    def _wake(self) -> None:
        reader, self._reader = self._reader, None
        if reader is not None and not reader.done():
            reader.set_result(None)


class Batches:
    """What is delivered, in the engine's own pieces."""

    def __init__(self, inbox: Inbox) -> None:
        self._inbox = inbox

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Batch:
        return await self._inbox.next_batch()


class Events:
    """What is delivered, one by one."""

    def __init__(self, inbox: Inbox) -> None:
        self._inbox = inbox

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        return await self._inbox.next_event()


def _events_of(batch: Batch) -> Iterator[Event]:
    if isinstance(batch, View):
        yield batch
        return
    ring = batch.ring
    for seq, originator, _, asked, payloads, each in batch.parcels:
        for place, data in enumerate(payloads):
            position = Position(ring, Seq(seq + place // each), place % each)
            yield Message(originator, data, _SERVICES[asked[place]], position)
