"""The client in blocking form, for scripts and threads: the same names, without `await`.

The client itself runs on an event loop in a thread of its own, so that it answers its daemon whatever the program does.
Several threads may use it; one at a time may read.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterable, Iterator, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

from ordercast.client.connection import Client
from ordercast.model.errors import UsageError
from ordercast.model.events import Event, Piece
from ordercast.model.ids import Position
from ordercast.model.service import Service
from ordercast.stream.loops import finish_tasks
from ordercast.stream.pieces import events_of, rest_of

T = TypeVar("T")


class BlockingClient:
    def __init__(self, client: Client) -> None:
        self._client = client
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="ordercast client", daemon=True)
        self._begun: Piece | None = None  # the piece that is being read one by one
        self._events: Iterator[Event] = iter(())  # that are left of it
        self._read = 0  # how many were taken
        self._waiting: Future[Piece | None] | None = None  # for the next piece
        self._reading = threading.Lock()
        self._closing = threading.Lock()  # nothing new is asked for once it is being closed
        self._is_closed = False

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

    def send(
        self,
        to: str | Iterable[str],
        data: bytes,
        service: Service = Service.AGREED,
        *,
        confirm: bool = False,
        self_discard: bool = False,
    ) -> Position | None:
        return self._wait(self._client.send(to, data, service, confirm=confirm, self_discard=self_discard))

    def send_many(
        self,
        to: str | Iterable[str],
        payloads: Sequence[bytes],
        service: Service = Service.AGREED,
        *,
        confirm: bool = False,
        self_discard: bool = False,
    ) -> Position | None:
        return self._wait(self._client.send_many(to, payloads, service, confirm=confirm, self_discard=self_discard))

    def groups(self) -> dict[str, int]:
        return self._wait(self._client.groups())

    def members(self, group: str) -> tuple[str, ...]:
        return self._wait(self._client.members(group))

    def manage(self, document: dict[str, Any]) -> dict[str, Any]:
        return self._wait(self._client.manage(document))

    def receive(self, timeout: float | None = None) -> Event | None:
        """The next event; None at the end of the stream. TimeoutError when nothing came within so many seconds."""
        while True:
            for event in self._events:
                self._read += 1
                return event
            self._begun = self._next_piece(timeout)
            if self._begun is None:
                return None
            self._events, self._read = iter(events_of(self._begun)), 0

    def __iter__(self) -> Iterator[Event]:
        while (event := self.receive()) is not None:
            yield event

    def batches(self) -> Iterator[Piece]:
        while True:
            begun, self._begun, self._events = self._begun, None, iter(())
            piece = rest_of(begun, self._read) if begun is not None else None
            piece = piece or self._next_piece(None)
            if piece is None:
                return
            yield piece

    def _next_piece(self, timeout: float | None) -> Piece | None:
        if not self._reading.acquire(blocking=False):
            raise UsageError("somebody else is reading this stream: one reader at a time")
        try:
            if self._waiting is None:
                with self._closing:
                    if self._is_closed:
                        return None
                    self._waiting = asyncio.run_coroutine_threadsafe(self._take(), self._loop)
            piece = self._waiting.result(timeout)  # after a timeout the next call waits for the same one
            self._waiting = None
            return piece
        finally:
            self._reading.release()

    async def _take(self) -> Piece | None:
        try:
            return await self._client.inbox.next_piece()
        except StopAsyncIteration:
            return None

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        with self._closing:
            if self._is_closed:
                work.close()
                raise UsageError("the client is closed: use it inside `with`")
            future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()  # Ctrl-C while it waits
            raise
