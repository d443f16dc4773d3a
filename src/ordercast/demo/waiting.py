"""Waiting for something to happen, never for time to pass: whoever waits is woken by everything that happens.

Every wait has a bound, and says in one sentence what did not come about.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

PATIENCE_S = 60.0  # for one thing; on a quiet machine the slowest takes two seconds


class NotSettled(Exception):
    """Something did not come about in time, or broke. It says what, and what to do."""


class News:
    def __init__(self, patience_s: float = PATIENCE_S) -> None:
        self.patience_s = patience_s
        self._waiters: set[asyncio.Future[None]] = set()
        self._failure: NotSettled | None = None

    def wake(self) -> None:
        """Something has happened."""
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)

    def fail(self, sentence: str) -> None:
        """Nothing of what is waited for will come: the first reason counts."""
        self._failure = self._failure or NotSettled(sentence)
        self.wake()

    async def until(self, is_so: Callable[[], bool], what: str) -> None:
        async with self.bounded(what):
            self.check()
            while not is_so():
                waiter = asyncio.get_running_loop().create_future()
                self._waiters.add(waiter)
                try:
                    await waiter
                finally:
                    self._waiters.discard(waiter)
                self.check()

    def check(self) -> None:
        """Raises what has failed meanwhile."""
        if self._failure is not None:
            raise self._failure

    @asynccontextmanager
    async def bounded(self, what: str) -> AsyncIterator[None]:
        """`what`: what should come about, as the end of a sentence."""
        try:
            async with asyncio.timeout(self.patience_s):
                yield
        except TimeoutError:
            sentence = f"after {self.patience_s:.0f} s it has not come about that {what}"
            raise NotSettled(f"{sentence}: is this machine very busy? Try again") from None
