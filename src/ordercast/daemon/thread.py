"""A node with a thread and an event loop of its own, for programs whose loop is often busy.

The methods are those of `Node`, called from any event loop: what is submitted crosses over in batches, and so does what
is delivered. A program that blocks its own loop no longer holds up the token; if it blocks for long, deliveries wait
here and then stop the senders, as they would in a plain node.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Coroutine, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

from ordercast.daemon.config import NodeConfig
from ordercast.daemon.inbox import Batch, Inbox
from ordercast.daemon.node import Event, Node, events_of
from ordercast.model.effects import Deliver
from ordercast.model.service import Service

T = TypeVar("T")
CROSSING_SIZE_MAX = 1 << 20  # bytes on their way from one thread to the other; what is more waits in the node's inbox


class ThreadedNode:
    def __init__(self, config: NodeConfig | None = None) -> None:
        self.node = Node(config)  # for its status; call its methods from here only
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="ordercast node", daemon=True)
        self._pump: asyncio.Task[None] | None = None
        self._inbox = Inbox(CROSSING_SIZE_MAX, self._on_behind)
        self._home: asyncio.AbstractEventLoop | None = None
        self._may_go_on: asyncio.Event | None = None  # of the node's loop

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.leave()

    async def start(self) -> None:
        self._home = asyncio.get_running_loop()
        self._thread.start()
        try:
            await self._over_there(self._start())
        except BaseException:
            self._stop()
            raise

    async def leave(self) -> None:
        if self._thread.is_alive():
            await self._over_there(self._leave())
            self._stop()

    async def submit(self, data: bytes, service: Service = Service.AGREED) -> None:
        await self._over_there(self.node.submit(data, service))

    async def submit_many(self, payloads: Sequence[bytes], service: Service = Service.AGREED) -> None:
        await self._over_there(self.node.submit_many(payloads, service))

    def batches(self) -> AsyncIterator[Batch]:
        return self._inbox.batches()

    def stream(self) -> AsyncIterator[Event]:
        return events_of(self.batches())

    # In the node's thread

    async def _start(self) -> None:
        self._may_go_on = asyncio.Event()
        self._may_go_on.set()
        await self.node.start()
        self._pump = asyncio.create_task(self._carry_over())

    async def _leave(self) -> None:
        await self.node.leave()
        assert self._pump is not None and self._may_go_on is not None
        self._may_go_on.set()
        await self._pump

    async def _carry_over(self) -> None:
        assert self._home is not None and self._may_go_on is not None
        failure: BaseException | None = None
        try:
            async for batch in self.node.batches():
                size = (
                    sum(len(data) for parcel in batch.parcels for data in parcel[4])
                    if isinstance(batch, Deliver)
                    else 0
                )
                self._home.call_soon_threadsafe(self._inbox.put, batch, size)
                await self._may_go_on.wait()
        except Exception as error:
            failure = error
        if not self._home.is_closed():
            self._home.call_soon_threadsafe(self._inbox.close, failure)

    # Between the two

    def _on_behind(self, is_behind: bool) -> None:
        assert self._may_go_on is not None
        if self._loop.is_running():
            self._loop.call_soon_threadsafe(self._may_go_on.clear if is_behind else self._may_go_on.set)

    async def _over_there(self, work: Coroutine[Any, Any, T]) -> T:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
