"""The client in blocking form, for scripts and threads: the same names, without `await`.

The client itself runs on an event loop in a thread of its own, so that it answers its daemon whatever the program does.
Several threads may use it; one at a time may read each stream.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Literal, Self, TypeVar, overload

from ordercast.api.blocking_stream import BlockingStream, Start
from ordercast.api.client import Client
from ordercast.api.group_reader import GroupReader
from ordercast.api.loops import finish_tasks
from ordercast.model.errors import UsageError
from ordercast.model.events import Message
from ordercast.model.ids import Position
from ordercast.model.service import Service
from ordercast.session.payloads import Sendable

T = TypeVar("T")


class BlockingClient(BlockingStream):
    def __init__(self, client: Client) -> None:
        super().__init__(client.inbox.main, self._start)
        self._client = client
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="ordercast client", daemon=True)
        self._closing = threading.Lock()  # nothing new is asked for once it is being closed
        self._is_closed = False

    def __repr__(self) -> str:
        return repr(self._client).replace("<Client", "<BlockingClient", 1)

    @property
    def joined(self) -> frozenset[str]:
        """The groups that were asked for."""
        return frozenset(self._client.joined)

    def open(self) -> None:
        self._thread.start()
        try:
            self._wait(self._client.open())
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Whoever waits in another thread gets a ConnectionLost."""
        with self._closing:
            was_closed, self._is_closed = self._is_closed, True
        if was_closed or not self._thread.is_alive():
            return
        try:
            asyncio.run_coroutine_threadsafe(self._finish(), self._loop).result()
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    async def _finish(self) -> None:
        try:
            await self._client.close()
        finally:
            await finish_tasks()

    @property
    def name(self) -> str:
        return self._client.name

    def join(self, *groups: str) -> None:
        self._wait(self._client.join(*groups))

    def leave(self, *groups: str) -> None:
        self._wait(self._client.leave(*groups))

    @overload
    def send(
        self,
        to: str | Iterable[str],
        data: Sendable,
        service: Service = Service.AGREED,
        *,
        confirm: Literal[False] = False,
        self_discard: bool = False,
        headers: Mapping[str, str] | None = None,
    ) -> None: ...

    @overload
    def send(
        self,
        to: str | Iterable[str],
        data: Sendable,
        service: Service = Service.AGREED,
        *,
        confirm: Literal[True],
        self_discard: bool = False,
        headers: Mapping[str, str] | None = None,
    ) -> Position: ...

    @overload
    def send(
        self,
        to: str | Iterable[str],
        data: Sendable,
        service: Service = Service.AGREED,
        *,
        confirm: bool,
        self_discard: bool = False,
        headers: Mapping[str, str] | None = None,
    ) -> Position | None: ...

    def send(
        self,
        to: str | Iterable[str],
        data: Sendable,
        service: Service = Service.AGREED,
        *,
        confirm: bool = False,
        self_discard: bool = False,
        headers: Mapping[str, str] | None = None,
    ) -> Position | None:
        sending = self._client.send(to, data, service, confirm=confirm, self_discard=self_discard, headers=headers)
        return self._wait(sending)

    @overload
    def send_many(
        self,
        to: str | Iterable[str],
        payloads: Sequence[Sendable],
        service: Service = Service.AGREED,
        *,
        confirm: Literal[False] = False,
        self_discard: bool = False,
        headers: Mapping[str, str] | None = None,
    ) -> None: ...

    @overload
    def send_many(
        self,
        to: str | Iterable[str],
        payloads: Sequence[Sendable],
        service: Service = Service.AGREED,
        *,
        confirm: Literal[True],
        self_discard: bool = False,
        headers: Mapping[str, str] | None = None,
    ) -> Position | None: ...

    @overload
    def send_many(
        self,
        to: str | Iterable[str],
        payloads: Sequence[Sendable],
        service: Service = Service.AGREED,
        *,
        confirm: bool,
        self_discard: bool = False,
        headers: Mapping[str, str] | None = None,
    ) -> Position | None: ...

    def send_many(
        self,
        to: str | Iterable[str],
        payloads: Sequence[Sendable],
        service: Service = Service.AGREED,
        *,
        confirm: bool = False,
        self_discard: bool = False,
        headers: Mapping[str, str] | None = None,
    ) -> Position | None:
        many = self._client.send_many
        return self._wait(many(to, payloads, service, confirm=confirm, self_discard=self_discard, headers=headers))

    def request(
        self,
        to: str | Iterable[str],
        data: Sendable,
        service: Service = Service.AGREED,
        *,
        timeout: float,
        headers: Mapping[str, str] | None = None,
    ) -> Message:
        return self._wait(self._client.request(to, data, service, timeout=timeout, headers=headers))

    def reply(
        self,
        message: Message,
        data: Sendable,
        service: Service = Service.AGREED,
        *,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._wait(self._client.reply(message, data, service, headers=headers))

    def drain(self) -> None:
        self._wait(self._client.drain())

    def groups(self) -> dict[str, int]:
        return self._wait(self._client.groups())

    def members(self, group: str) -> tuple[str, ...]:
        return self._wait(self._client.members(group))

    def manage(self, document: dict[str, Any]) -> dict[str, Any]:
        return self._wait(self._client.manage(document))

    def group(self, group: str) -> BlockingGroup:
        """Reads one group apart from the others: enter it with `with`, and iterate, in this thread or another."""
        return BlockingGroup(self._client.group(group), self._wait, self._start)

    @property
    def member(self) -> Client:
        """The client underneath. It belongs to its event loop: call its methods with `run` only."""
        return self._client

    def run(self, work: Coroutine[Any, Any, T], /) -> T:
        """Run a coroutine on the client's event loop, and return what it returns."""
        return self._wait(work)

    def _start(self, work: Coroutine[Any, Any, T]) -> Future[T] | None:
        """None when the client is closed."""
        with self._closing:
            if self._is_closed:
                work.close()
                return None
            return asyncio.run_coroutine_threadsafe(work, self._loop)

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        future = self._start(work)
        if future is None:
            raise UsageError("the client is closed: use it inside `with`")
        try:
            return future.result()
        except BaseException:
            future.cancel()  # Ctrl-C while it waits
            raise


class BlockingGroup(BlockingStream):
    """One group of a blocking client."""

    def __init__(
        self, reader: GroupReader, wait: Callable[[Coroutine[Any, Any, object]], object], start: Start
    ) -> None:
        super().__init__(reader.queue, start)
        self.group = reader.group
        self._reader = reader
        self._wait = wait

    def __repr__(self) -> str:
        return repr(self._reader).replace("<GroupReader", "<BlockingGroup", 1)

    def __enter__(self) -> Self:
        self._wait(self._reader.__aenter__())
        return self

    def __exit__(self, *how: object) -> None:
        with suppress(UsageError):  # the client was closed before: so is the group
            self._wait(self._reader.__aexit__(None, None, None))
