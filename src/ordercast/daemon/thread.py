"""A node with a thread and an event loop of its own, for programs whose loop is often busy.

The methods are those of `Node`, called from the event loop on which it was started: what is submitted crosses over in
batches, and so does what is delivered. A program that blocks its own loop no longer holds up the token; if it blocks
for long, deliveries wait in the node's inbox and then stop the senders, as they would in a plain node.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

from ordercast.daemon.config import NodeConfig
from ordercast.daemon.inbox import Batch, Batches, Events, Inbox, size_of
from ordercast.daemon.node import Node
from ordercast.model.errors import UsageError
from ordercast.model.service import Service

T = TypeVar("T")
CROSSING_SIZE_MAX = 1 << 20  # bytes on their way from one thread to the other; what is more waits in the node's inbox


class ThreadedNode:
    def __init__(self, config: NodeConfig | None = None) -> None:
        self.node = Node(config)  # for its status; call its methods from here only
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="ordercast node", daemon=True)
        self._inbox = Inbox(CROSSING_SIZE_MAX, lambda _: None, self._on_taken)
        self._crossing = 0  # bytes; counted in the node's thread
        self._is_running = False
        self._pump: asyncio.Task[None] | None = None
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
        if self._home is not None:
            raise UsageError("a node is started once: make a new one")
        self._home = asyncio.get_running_loop()
        self._thread.start()
        self._is_running = True
        try:
            await self._over_there(self._start())
        except BaseException:
            self._is_running = False
            self._stop()
            raise

    async def leave(self) -> None:
        if self._is_running:
            self._is_running = False
            await asyncio.shield(asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._leave(), self._loop)))
            self._stop()

    async def submit(self, data: bytes, service: Service = Service.AGREED) -> None:
        await self.submit_many((data,), service)

    async def submit_many(self, payloads: Sequence[bytes], service: Service = Service.AGREED) -> None:
        if not self._is_running:
            raise UsageError("the node is not running: use it inside `async with`")
        await self._over_there(self.node.submit_many(payloads, service))

    def batches(self) -> Batches:
        return self._inbox.batches()

    def stream(self) -> Events:
        return self._inbox.events()

    # In the node's thread

    async def _start(self) -> None:
        self._may_go_on = asyncio.Event()
        await self.node.start()
        self._pump = asyncio.create_task(self._carry_over())

    async def _leave(self) -> None:
        await self.node.leave()
        assert self._pump is not None and self._may_go_on is not None
        self._crossing = -1 << 62  # no more waiting: what is left crosses over
        self._may_go_on.set()
        await self._pump

    async def _carry_over(self) -> None:
        assert self._home is not None and self._may_go_on is not None
        failure: BaseException | None = None
        try:
            async for batch in self.node.batches():
                self._post(self._inbox.put, batch, size_of(batch))
                self._crossing += size_of(batch)
                while self._crossing > CROSSING_SIZE_MAX:
                    self._may_go_on.clear()
                    await self._may_go_on.wait()
        except Exception as error:
            failure = error
        self._post(self._inbox.close, failure)

    def _post(self, what: Any, *arguments: Batch | int | BaseException | None) -> None:
        assert self._home is not None
        if not self._home.is_closed():
            self._home.call_soon_threadsafe(what, *arguments)

    def _taken(self, size: int) -> None:
        assert self._may_go_on is not None
        self._crossing -= size
        self._may_go_on.set()

    # Between the two

    def _on_taken(self, size: int) -> None:
        if self._loop.is_running():
            self._loop.call_soon_threadsafe(self._taken, size)

    async def _over_there(self, work: Coroutine[Any, Any, T]) -> T:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
