"""What came for an application and was not taken yet: in order, and bounded.

It comes in pieces, and can be read in pieces or event by event, by one reader or by several who share it out
(`group_inbox.py`); what all of them have not taken is bounded together. When too much waits, the inbox says that the
application is behind. Whoever stops reading and begins again, with another iterator or after a timeout, goes on where
the last one was.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Iterator
from typing import Any, Generic, Self, TypeVar

from ordercast.model.errors import UsageError

PieceT = TypeVar("PieceT")
EventT = TypeVar("EventT")
ItemT = TypeVar("ItemT")


class Queue(Generic[PieceT, EventT]):
    """What one reader has not taken, in order. One at a time reads it."""

    def __init__(self, inbox: Inbox[PieceT, EventT]) -> None:
        self.is_wanted = False  # somebody has read here
        self._inbox = inbox
        self._waiting: deque[tuple[PieceT, int]] = deque()
        self._begun: PieceT | None = None  # the piece that is being read one by one
        self._events: Iterator[EventT] = iter(())  # that are left of it
        self._read = 0  # how many were taken
        self._reader: asyncio.Future[None] | None = None  # waits for something to come
        self._has_ended = False

    def put(self, piece: PieceT, size: int) -> None:
        self._waiting.append((piece, size))
        self.wake()

    def end(self) -> int:
        """Nobody wants more of it. The bytes that were not taken."""
        self._has_ended = True
        size = sum(size for _, size in self._waiting)
        self._waiting.clear()
        self._begun, self._events = None, iter(())
        self.wake()
        return size

    def pieces(self) -> Items[PieceT]:
        return Items(self.next_piece)

    def events(self) -> Items[EventT]:
        return Items(self.next_event)

    async def next_piece(self) -> PieceT:
        """The next, or what is left of the one that is being read one by one."""
        if self._begun is not None:
            rest = self._inbox.rest_of(self._begun, self._read)
            self._begun, self._events = None, iter(())
            if rest is not None:
                return rest
        return await self._next_piece()

    def take(self) -> PieceT | None:
        """The next piece; None when nothing is here. Raises what ends the stream, if it has ended."""
        self.is_wanted = True
        if not self._waiting:
            if self._has_ended:
                raise StopAsyncIteration
            self._inbox.check_open()
            return None
        piece, size = self._waiting.popleft()
        self._inbox.took(size)
        return piece

    async def _next_piece(self) -> PieceT:
        while (piece := self.take()) is None:
            if self._reader is not None and not self._reader.done():
                raise UsageError("somebody else is reading this stream: one reader at a time")
            self._reader = asyncio.get_running_loop().create_future()
            await self._reader
        return piece

    async def next_event(self) -> EventT:
        while True:
            for event in self._events:
                self._read += 1
                return event
            self._begun = None
            piece = await self._next_piece()
            self._begun, self._events, self._read = piece, iter(self._inbox.events_of(piece)), 0

    def wake(self) -> None:
        reader, self._reader = self._reader, None
        if reader is not None and not reader.done():
            reader.set_result(None)


class Inbox(Generic[PieceT, EventT]):
    def __init__(
        self,
        events_of: Callable[[PieceT], Iterable[EventT]],
        rest_of: Callable[[PieceT, int], PieceT | None],
        size_max: int,
        on_behind: Callable[[bool], None] | None = None,
        on_taken: Callable[[int], None] | None = None,
    ) -> None:
        self.size = 0  # bytes that wait
        self.is_behind = False
        self.taken = 0  # pieces taken so far: whether the application does anything at all
        self.events_of = events_of
        self.rest_of = rest_of  # what is left of a piece when so many events were taken; None: nothing
        self.main: Queue[PieceT, EventT] = Queue(self)
        self._size_max = size_max
        self._on_behind = on_behind
        self._on_taken = on_taken
        self._failure: BaseException | None = None
        self._is_closed = False

    def put(self, piece: PieceT, size: int) -> None:
        self._put_into((self.main,), piece, size)

    def _put_into(self, queues: Iterable[Queue[PieceT, EventT]], piece: PieceT, size: int) -> None:
        """What several readers get is counted once, and taken when the first of them takes it."""
        self.size += size
        if self.size > self._size_max and not self.is_behind and not self._is_closed:
            self._set_behind(True)
        counted = size
        for queue in queues:
            queue.put(piece, counted)
            counted = 0

    def close(self, failure: BaseException | None = None) -> None:
        """Nothing more will come. The reader gets what is here, then the end or the failure."""
        self._is_closed = True
        self._failure = self._failure or failure
        self.main.wake()

    def check_open(self) -> None:
        """Raises what ends the stream, if it has ended."""
        if self._failure is not None:
            raise self._failure
        if self._is_closed:
            raise StopAsyncIteration

    def took(self, size: int) -> None:
        """A reader has taken something of this size."""
        self.size -= size
        self.taken += 1
        if self._on_taken is not None:
            self._on_taken(size)
        if self.is_behind and self.size <= self._size_max // 2:
            self._set_behind(False)

    def pieces(self) -> Items[PieceT]:
        return self.main.pieces()

    def events(self) -> Items[EventT]:
        return self.main.events()

    async def next_piece(self) -> PieceT:
        return await self.main.next_piece()

    def _set_behind(self, is_behind: bool) -> None:
        self.is_behind = is_behind
        if self._on_behind is not None:
            self._on_behind(is_behind)


class Items(Generic[ItemT]):
    """What comes: in the pieces in which it came, or one by one."""

    def __init__(self, take: Callable[[], Coroutine[Any, Any, ItemT]]) -> None:
        self._take = take

    def __aiter__(self) -> Self:
        return self

    def __anext__(self) -> Coroutine[Any, Any, ItemT]:
        return self._take()  # handed on, not awaited: one coroutine less for every item
