"""ClientLoop: an event loop in a thread of its own, and work that other threads have done there."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from ordercast.api.loops import finish_tasks
from ordercast.model.errors import UsageError

T = TypeVar("T")


class ClientLoop:
    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="ordercast client", daemon=True)
        self._closing = threading.Lock()  # nothing new is asked for once it is being closed
        self._is_closed = False
        self._thread.start()

    def start(self, work: Coroutine[Any, Any, T]) -> Future[T] | None:
        """None when the loop is closed."""
        with self._closing:
            if self._is_closed:
                work.close()
                return None
            return asyncio.run_coroutine_threadsafe(work, self._loop)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        future = self.start(work)
        if future is None:
            raise UsageError("the client is closed: use it inside `with`")
        try:
            return future.result()
        except BaseException:
            future.cancel()  # Ctrl-C while it waits
            raise

    def close(self, last: Coroutine[Any, Any, None]) -> None:
        """After this work, which other threads may wait for, and whatever is under way."""
        with self._closing:
            was_closed, self._is_closed = self._is_closed, True
        if was_closed:
            last.close()
            return
        try:
            asyncio.run_coroutine_threadsafe(_finish(last), self._loop).result()
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()


async def _finish(last: Coroutine[Any, Any, None]) -> None:
    try:
        await last
    finally:
        await finish_tasks()
