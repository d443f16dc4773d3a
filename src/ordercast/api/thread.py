"""A node with a thread and an event loop of its own, for programs whose loop is often busy.

The methods are those of `Node`, called from the event loop on which it was started: what is sent crosses over in
batches, and so does what is delivered. A program that blocks its own loop no longer holds up the others; if it blocks
for long, deliveries wait in the node's inbox and then stop the senders, as they would in a plain node.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterable, Mapping
from concurrent.futures import wait
from functools import partial
from typing import Any, Self, TypeVar

from ordercast.api.group_inbox import GroupInbox
from ordercast.api.loops import finish_tasks
from ordercast.api.member import Member
from ordercast.api.node import DEFAULT_NAME, Node
from ordercast.api.pieces import size_of
from ordercast.daemon.config.node import NodeConfig
from ordercast.model.effects import Alarm
from ordercast.model.errors import UsageError
from ordercast.model.events import Message, Piece
from ordercast.model.ids import Position
from ordercast.model.service import Service
from ordercast.session.payloads import Sendable

T = TypeVar("T")
CROSSING_SIZE_MAX = 1 << 20  # bytes on their way from one thread to the other; what is more waits in the node's inbox


class ThreadedNode(Member):
    def __init__(
        self,
        config: NodeConfig | None = None,
        *,
        name: str = DEFAULT_NAME,
        cluster: str | None = None,
        port: int | None = None,
        on_alarm: Callable[[Alarm], None] | None = None,
    ) -> None:
        """`on_alarm` is told of what a person should know, on the event loop that started this node."""
        super().__init__()
        told = None if on_alarm is None else partial(self._post, on_alarm)
        # For its status; call its methods from here only.
        self.node = Node(config, name=name, cluster=cluster, port=port, on_alarm=told)
        self.inbox = GroupInbox(CROSSING_SIZE_MAX, None, self._on_taken)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="ordercast node", daemon=True)
        self._crossing = 0  # bytes; counted in the node's thread
        self._is_running = False
        self._starting: asyncio.Task[Any] | None = None
        self._pump: asyncio.Task[None] | None = None
        self._home: asyncio.AbstractEventLoop | None = None
        self._may_go_on: asyncio.Event | None = None  # of the node's loop
        self.node.on_loss(partial(self._post, self._tell_loss))

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *how: object) -> None:
        await self.close()

    async def start(self) -> None:
        if self._home is not None:
            raise UsageError("a node is started once: make a new one")
        self._home = asyncio.get_running_loop()
        self._thread.start()
        self._is_running = True
        try:
            await asyncio.shield(self._over_there(self._start()))
        except BaseException:
            self._is_running = False
            await self._undo_start()
            raise

    async def _undo_start(self) -> None:
        """Close what a start has opened that failed or was cancelled, and the thread."""
        ending = asyncio.run_coroutine_threadsafe(self._end_start(), self._loop)
        try:
            await asyncio.shield(asyncio.wrap_future(ending))
        finally:
            wait((ending,))  # here, if this is cancelled too
            self._stop()

    async def close(self) -> None:
        if self._is_running:
            self._is_running = False
            await asyncio.shield(asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._leave(), self._loop)))
            self._stop()

    @property
    def name(self) -> str:
        return self.node.name

    async def groups(self) -> dict[str, int]:
        return await self._over_there(self.node.groups())

    async def members(self, group: str) -> tuple[str, ...]:
        return await self._over_there(self.node.members(group))

    def _check_usable(self) -> None:
        if not self._is_running:
            raise UsageError("the node is not running: use it inside `async with`")

    async def _ask(self, groups: tuple[str, ...], *, joins: bool) -> None:
        work = self.node.meet(*groups) if joins else self.node.leave(*groups)
        await asyncio.shield(self._over_there(work))  # or the two would not agree on what was asked for

    async def _send(
        self,
        groups: tuple[str, ...],
        data: list[bytes],
        service: Service,
        *,
        confirm: bool,
        self_discard: bool,
        headed: bool,
    ) -> Position | None:
        send = self.node._send
        sending = send(groups, data, service, confirm=confirm, self_discard=self_discard, headed=headed)
        return await self._over_there(sending)

    async def request(
        self,
        to: str | Iterable[str],
        data: Sendable,
        service: Service = Service.AGREED,
        *,
        timeout: float | None,
        headers: Mapping[str, str] | None = None,
    ) -> Message:
        """As every member does; the reply is awaited where it comes."""
        return await self._over_there(self.node.request(to, data, service, timeout=timeout, headers=headers))

    async def drain(self) -> None:
        """As every member does: the node ends its stream when all is in it, and this one ends behind it."""
        await self._over_there(self.node.drain())
        self._is_draining = True
        self._joined.clear()

    # In the node's thread

    async def _start(self) -> None:
        self._may_go_on = asyncio.Event()
        self._starting = asyncio.current_task()
        await self.node.start()
        self._pump = asyncio.create_task(self._carry_over())

    async def _end_start(self) -> None:
        assert self._starting is not None
        self._starting.cancel()
        await asyncio.wait((self._starting,))
        if self._pump is not None:  # all was done before it could be cancelled
            await self._leave()

    async def _leave(self) -> None:
        await self.node.close()
        assert self._pump is not None and self._may_go_on is not None
        self._crossing = -1 << 62  # no more waiting: what is left crosses over
        self._may_go_on.set()
        await self._pump
        await finish_tasks()

    async def _carry_over(self) -> None:
        assert self._home is not None and self._may_go_on is not None
        failure: BaseException | None = None
        try:
            async for piece in self.node.batches():
                self._post(self.inbox.put, piece, size_of(piece))
                self._crossing += size_of(piece)
                while self._crossing > CROSSING_SIZE_MAX:
                    self._may_go_on.clear()
                    await self._may_go_on.wait()
        except Exception as error:
            failure = error
        self._post(self.inbox.close, failure)

    def _post(self, what: Any, *arguments: Piece | Alarm | int | str | BaseException | None) -> None:
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

    def _over_there(self, work: Coroutine[Any, Any, T]) -> asyncio.Future[T]:
        try:
            self._check_usable()
        except UsageError:
            work.close()
            raise
        return asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
