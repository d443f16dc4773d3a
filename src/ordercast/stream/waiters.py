"""Who waits for a join, a leave or a confirmation to come back in the ordered stream."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

from ordercast.model.events import Left, Piece, Reason, View
from ordercast.model.ids import Position


class Waiters:
    def __init__(self) -> None:
        self._joins: dict[str, asyncio.Future[None]] = {}
        self._leaves: dict[str, asyncio.Future[None]] = {}
        self._confirmations: deque[tuple[int, asyncio.Future[Position]]] = deque()  # messages still to be confirmed

    def join(self, group: str) -> asyncio.Future[None]:
        future = self._joins[group] = asyncio.get_running_loop().create_future()
        return future

    def leave(self, group: str) -> asyncio.Future[None]:
        future = self._leaves[group] = asyncio.get_running_loop().create_future()
        return future

    def confirmation(self, messages: int) -> asyncio.Future[Position]:
        """Of so many messages; the position of the last of them. Asked for in the order in which they are sent."""
        future: asyncio.Future[Position] = asyncio.get_running_loop().create_future()
        self._confirmations.append((messages, future))
        return future

    @property
    def unconfirmed(self) -> int:
        return sum(messages for messages, _ in self._confirmations)

    def saw(self, piece: Piece, me: str) -> None:
        if isinstance(piece, View):
            if piece.reason is Reason.JOIN and me in piece.who:
                _resolve(self._joins.pop(piece.group, None))
        elif isinstance(piece, Left):
            _resolve(self._leaves.pop(piece.group, None))

    def confirmed(self, messages: int, last: Position) -> None:
        while messages and self._confirmations:
            wanted, future = self._confirmations.popleft()
            if wanted > messages:
                self._confirmations.appendleft((wanted - messages, future))
                return
            messages -= wanted
            if not future.done():
                future.set_result(last)

    def fail(self, error: BaseException) -> None:
        futures: list[asyncio.Future[Any]] = [
            *self._joins.values(),
            *self._leaves.values(),
            *(future for _, future in self._confirmations),
        ]
        self._joins.clear()
        self._leaves.clear()
        self._confirmations.clear()
        for future in futures:
            if not future.done():
                future.set_exception(error)
                future.exception()  # seen: who waits for it gets it anyway, and nobody else is to be warned


def _resolve(future: asyncio.Future[None] | None) -> None:
    if future is not None and not future.done():
        future.set_result(None)
