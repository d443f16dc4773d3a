"""What was delivered and the application has not taken yet: in order, views among the messages, and bounded.

When too much waits, the inbox says that the application is behind; the engine tells the ring, and nobody sends anything
new until it has caught up. An application that takes nothing at all for long is given up: it would stop everybody.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable

from ordercast.model.effects import Deliver
from ordercast.model.view import View

Batch = Deliver | View


class Inbox:
    def __init__(self, size_max: int, on_behind: Callable[[bool], None]) -> None:
        self.size = 0  # bytes that wait
        self.is_behind = False
        self.taken = 0  # batches taken so far: whether the application does anything at all
        self._size_max = size_max
        self._on_behind = on_behind
        self._waiting: deque[tuple[Batch, int]] = deque()
        self._reader: asyncio.Future[None] | None = None  # waits for something to come
        self._failure: BaseException | None = None
        self._is_closed = False

    def put(self, batch: Batch, size: int) -> None:
        self._waiting.append((batch, size))
        self.size += size
        if self.size > self._size_max and not self.is_behind:
            self.is_behind = True
            self._on_behind(True)
        self._wake()

    def close(self, failure: BaseException | None = None) -> None:
        """Nothing more will come. The reader gets what is here, then the end or the failure."""
        self._is_closed = True
        self._failure = self._failure or failure
        self._wake()

    def _wake(self) -> None:
        reader, self._reader = self._reader, None
        if reader is not None and not reader.done():
            reader.set_result(None)

    async def batches(self) -> AsyncIterator[Batch]:
        waiting = self._waiting
        while True:
            while waiting:
                batch, size = waiting.popleft()
                self.size -= size
                self.taken += 1
                if self.is_behind and self.size < self._size_max // 2:
                    self.is_behind = False
                    self._on_behind(False)
                yield batch
            if self._failure is not None:
                raise self._failure
            if self._is_closed:
                return
            self._reader = asyncio.get_running_loop().create_future()
            await self._reader
