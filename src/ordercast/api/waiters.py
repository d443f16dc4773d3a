"""Who waits for a join, a leave or a confirmation to come back in the ordered stream. Each comes back in the order in
which it was asked for; who has stopped waiting keeps its place."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Sequence
from typing import Any

from ordercast.api.awaited import new_future
from ordercast.model.events import Left, Piece, Reason, View
from ordercast.model.ids import Places, Position

_Queues = dict[str, deque[asyncio.Future[None]]]  # by group


class Waiters:
    def __init__(self, new_promise: Callable[[], Any] = new_future) -> None:
        self._new = new_promise
        self._joins: _Queues = {}
        self._leaves: _Queues = {}
        # Messages still to be confirmed, and the number of the frame that has them
        self._confirmations: deque[tuple[int, asyncio.Future[Position], int]] = deque()

    def changes(self, groups: Sequence[str], *, joins: bool) -> list[asyncio.Future[None]]:
        """For the first view, or for the leave, of each of these groups."""
        queues = self._joins if joins else self._leaves
        futures: list[asyncio.Future[None]] = [self._new() for _ in groups]
        for group, future in zip(groups, futures, strict=True):
            queues.setdefault(group, deque()).append(future)
        return futures

    @property
    def await_changes(self) -> bool:
        return bool(self._joins or self._leaves)

    def confirmation(self, messages: int, number: int = 0) -> asyncio.Future[Position]:
        """Return a future of the last position of so many messages, in the frame of this number. Asked for in the order
        in which they are sent."""
        future: asyncio.Future[Position] = self._new()
        self._confirmations.append((messages, future, number))
        return future

    @property
    def unconfirmed(self) -> int:
        return sum(messages for messages, _, _ in self._confirmations)

    def saw(self, piece: Piece, me: str) -> None:
        if isinstance(piece, View):
            if piece.reason is Reason.JOIN and me in piece.who:
                _resolve_first(self._joins, piece.group)
        elif isinstance(piece, Left):
            _resolve_first(self._leaves, piece.group)

    def refused(self, groups: Sequence[str], error: BaseException, *, joins: bool) -> set[str]:
        """The first who waits for each of these changes is told why it does not come; which groups had one."""
        queues, told = (self._joins if joins else self._leaves), set()
        for group in groups:
            if (future := _first(queues, group)) is not None and not future.done():
                _fail((future,), error)
                told.add(group)
        return told

    def await_join(self, group: str) -> bool:
        return group in self._joins

    def await_leave(self, group: str) -> bool:
        return group in self._leaves

    def confirmed(self, messages: int, places: Places) -> None:
        """Tell those who wait that the next so many messages have these places."""
        told = 0
        while told < messages and self._confirmations:
            wanted, future, number = self._confirmations.popleft()
            if wanted > messages - told:
                self._confirmations.appendleft((wanted - (messages - told), future, number))
                return
            told += wanted
            if not future.done():
                future.set_result(places.last(told))

    def denied(self, number: int, error: BaseException) -> bool:
        """The messages of this frame are not sent; tell whether somebody waited for them."""
        for entry in self._confirmations:
            if entry[2] == number:
                self._confirmations.remove(entry)
                _fail((entry[1],), error)
                return True
        return False

    def begin_again(self, joined: Collection[str]) -> None:
        """In a new session, in which these groups are joined, each once, and all others are left."""
        for queues, goes_on in ((self._leaves, False), (self._joins, True)):
            for group in list(queues):
                while queues.get(group) and not (goes_on and group in joined and len(queues[group]) == 1):
                    _resolve_first(queues, group)
        for group in joined:
            if group not in self._joins:  # it comes all the same, and is nobody's who asks later
                place: asyncio.Future[None] = self._new()
                place.set_result(None)
                self._joins[group] = deque((place,))

    def fail(self, error: BaseException) -> None:
        for queues in (self._joins, self._leaves):
            for queue in queues.values():
                _fail(queue, error)
            queues.clear()
        self.fail_confirmations(error)

    def fail_confirmations(self, error: BaseException) -> None:
        _fail([future for _, future, _ in self._confirmations], error)
        self._confirmations.clear()


def _first(queues: _Queues, group: str) -> asyncio.Future[None] | None:
    queue = queues.get(group)
    if not queue:
        return None
    future = queue.popleft()
    if not queue:
        del queues[group]
    return future


def _resolve_first(queues: _Queues, group: str) -> None:
    future = _first(queues, group)
    if future is not None and not future.done():
        future.set_result(None)


def _fail(futures: Collection[asyncio.Future[Any]], error: BaseException) -> None:
    for future in futures:
        if not future.done():
            future.set_exception(error)
            future.exception()  # seen: who waits for it gets it anyway, and nobody else is to be warned
