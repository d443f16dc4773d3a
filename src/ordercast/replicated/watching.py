"""Who is told of what happens to a replica: watchers, who get every event, and waiters, who wait for a state.

A watcher that does not keep up loses events, and finds a `Reloaded` in their place: then it has to read the copy anew.
The group never waits for a watcher.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar
from weakref import ref

from ordercast.replicated.effects import Changed, Progress
from ordercast.replicated.structures.base import Applied, Reloaded

EVENTS_MAX = 10_000  # that wait for a watcher

Watched = Applied | Reloaded | Changed | Progress
EventT = TypeVar("EventT")
T = TypeVar("T")


class Watch(Generic[EventT]):
    """Events from the moment when it was made. It ends with its replica."""

    def __init__(self, kinds: tuple[type, ...]) -> None:
        self.kinds = kinds
        self._events: deque[Any] = deque()
        self._reader: asyncio.Future[None] | None = None
        self._is_over = False

    def put(self, event: Watched) -> None:
        if not isinstance(event, self.kinds):
            return
        if len(self._events) >= EVENTS_MAX:
            self._events.clear()
            event = Reloaded("this watcher did not keep up")
        self._events.append(event)
        self._wake()

    def end(self) -> None:
        self._is_over = True
        self._wake()

    def _wake(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> EventT:
        while not self._events:
            if self._is_over:
                raise StopAsyncIteration
            self._reader = asyncio.get_running_loop().create_future()
            await self._reader
        event: EventT = self._events.popleft()
        return event


class Watchers:
    def __init__(self) -> None:
        self._watches: list[ref[Watch[Any]]] = []
        self._waiters: dict[asyncio.Future[Any], Callable[[], Any]] = {}

    def want(self, kind: type) -> bool:
        """Does anybody want to be told of such events?"""
        return any(kind in watch.kinds for watch in self._living())

    def watch(self, *kinds: type) -> Watch[Any]:
        """It is told until nobody has it any more."""
        watch: Watch[Any] = Watch(kinds)
        self._watches.append(ref(watch, self._watches.remove))
        return watch

    def tell(self, event: Watched) -> None:
        for watch in self._living():
            watch.put(event)

    def _living(self) -> list[Watch[Any]]:
        return [watch for each in self._watches if (watch := each()) is not None]

    async def until(self, ready: Callable[[], T | None]) -> T:
        found = ready()
        if found is not None:
            return found
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._waiters[future] = ready
        try:
            return await future
        finally:
            self._waiters.pop(future, None)

    def look(self) -> None:
        """Something has changed."""
        for future, ready in list(self._waiters.items()):
            if not future.done() and (found := ready()) is not None:
                future.set_result(found)

    def end(self, error: BaseException) -> None:
        for watch in self._living():
            watch.end()
        for future in list(self._waiters):
            if not future.done():
                future.set_exception(error)
