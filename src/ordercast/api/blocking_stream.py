"""What comes for a client, for a thread that blocks: event by event, or in pieces."""

from __future__ import annotations

import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from typing import Any

from ordercast.api.direct import DirectClient
from ordercast.api.group_inbox import GroupQueue
from ordercast.api.pieces import events_of, rest_of
from ordercast.model.arguments import check_timeout
from ordercast.model.errors import UsageError
from ordercast.model.events import Event, Piece

# Starts work on the event loop of a client that has moved there; None when the client is closed.
Start = Callable[[Coroutine[Any, Any, Piece | None]], "Future[Piece | None] | None"]


class BlockingStream:
    def __init__(self, direct: DirectClient, queue: GroupQueue, start: Start) -> None:
        self._direct = direct
        self._queue = queue
        self._start = start
        self._begun: Piece | None = None  # the piece that is being read one by one
        self._events: Iterator[Event] = iter(())  # that are left of it
        self._read = 0  # how many were taken
        self._waiting: Future[Piece | None] | None = None  # for the next piece, on the event loop
        self._reading = threading.Lock()

    def receive(self, timeout: float | None = None) -> Event | None:
        """The next event; None at the end of the stream. TimeoutError when nothing came within so many seconds."""
        if timeout is not None:
            check_timeout(timeout)
        while True:
            for event in self._events:
                self._read += 1
                return event
            try:
                self._begun = self._next_piece(timeout)
            except TimeoutError:
                raise TimeoutError(f"nothing came within {timeout:g} s") from None
            if self._begun is None:
                return None
            self._events, self._read = iter(events_of(self._begun)), 0

    def __next__(self) -> Event:
        if (event := self.receive()) is None:
            raise StopIteration
        return event

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
            if not self._direct.has_moved:
                piece = self._direct.next_piece(self._queue, timeout)
                if piece is not None or not self._direct.has_moved:
                    return piece
            return self._next_from_loop(timeout)
        finally:
            self._reading.release()

    def _next_from_loop(self, timeout: float | None) -> Piece | None:
        if self._waiting is None:
            self._waiting = self._start(self._take())
        if self._waiting is None:
            return None
        try:
            piece = self._waiting.result(timeout)
        except TimeoutError:
            raise  # the next call waits for the same one
        except Exception:
            self._waiting = None  # the next call asks again
            raise
        self._waiting = None
        return piece

    async def _take(self) -> Piece | None:
        try:
            return await self._queue.next_piece()
        except StopAsyncIteration:
            return None
