"""Dispatcher: reads the groups of replicas once, for all replicas that a member carries.

It belongs to the member: the first replica starts it, the last one stops it. What comes for the member's other groups
is read as always (`api/group_inbox.py`).
"""

from __future__ import annotations

import asyncio
from typing import Protocol
from weakref import WeakKeyDictionary

from ordercast.api.group_inbox import GroupQueue
from ordercast.api.member import Member
from ordercast.api.pieces import size_of
from ordercast.model.errors import UsageError
from ordercast.model.events import Batch, Dropped, Left, Piece, Reconnected, Transition, View

TURN_SIZE = 256 << 10  # bytes that are handed over before the event loop has its turn


Told = Batch | View | Transition | Left | Reconnected  # what listeners are told of


class Listener(Protocol):
    """A replica of one group."""

    def on_view(self, view: View) -> None: ...
    def on_transition(self, transition: Transition) -> None: ...
    def on_messages(self, batch: Batch) -> None: ...
    def on_lost(self, why: str) -> None:
        """Told at once, ahead of what is in the stream: the connection broke, or the member has ended. What the stream
        still has is of a membership that is over, and is not handed over."""

    def on_cut_off(self, name: str | None) -> None:
        """The member has left, or (with its name from now on) was out of the group: then a new view follows."""

    def on_ended(self, error: BaseException) -> None:
        """Nothing will come any more."""

    def on_failed(self, error: Exception) -> None:
        """It has raised this itself; others of the member go on."""


class Dispatcher:
    def __init__(self, member: Member) -> None:
        self._member = member
        self._listeners: dict[str, Listener] = {}
        self._queue: GroupQueue | None = None  # what came for their groups
        self._reading: asyncio.Task[None] | None = None
        self._losses = 0  # of which the stream has not told yet
        member.on_loss(self._lost)

    @classmethod
    def of(cls, member: Member) -> Dispatcher:
        """The member's own."""
        if member not in _DISPATCHERS:
            _DISPATCHERS[member] = cls(member)
        return _DISPATCHERS[member]

    def add(self, group: str, listener: Listener) -> None:
        if group in self._listeners:
            raise UsageError(f"{self._member.name} has a replica of {group} already")
        queue = self._queue or GroupQueue(self._member.inbox)
        self._member.inbox.claim(group, queue, self._member)
        self._queue = queue
        self._listeners[group] = listener
        if self._reading is None or self._reading.done():
            self._reading = asyncio.get_running_loop().create_task(self._read(queue))

    async def remove(self, group: str, listener: Listener) -> None:
        """It hears nothing any more."""
        if self._listeners.get(group) is listener:
            del self._listeners[group]
            self._member.inbox.give_back(group)
        reading = self._reading
        if not self._listeners and reading is not None:
            assert self._queue is not None
            self._member.inbox.end(self._queue)
            self._reading = self._queue = None
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)

    async def _read(self, queue: GroupQueue) -> None:
        """Whatever ends it, the listeners are told."""
        error: BaseException = UsageError("the member was closed")
        try:
            waiting = TURN_SIZE
            async for piece in queue.pieces():
                self._hand_over(piece)
                waiting -= size_of(piece)
                if waiting <= 0:
                    waiting = TURN_SIZE
                    await asyncio.sleep(0)  # to apply is work: nobody shall wait for all of it
        except asyncio.CancelledError:
            raise
        except Exception as caught:
            error = caught
        for listener in list(self._listeners.values()):
            listener.on_ended(error)

    def _lost(self, why: str) -> None:
        self._losses += 1
        for listener in list(self._listeners.values()):
            listener.on_lost(why)

    def _hand_over(self, piece: Piece) -> None:
        if isinstance(piece, Reconnected):
            self._losses = max(0, self._losses - 1)
        if self._losses:
            return
        if isinstance(piece, Dropped):
            raise UsageError('messages were dropped, and a replica needs them all: connect with slow="wait"')
        for listener in self._concerned(piece):
            try:
                _tell(listener, piece)
            except Exception as error:
                listener.on_failed(error)

    def _concerned(self, piece: Told) -> list[Listener]:
        if isinstance(piece, Reconnected):
            return list(self._listeners.values())
        groups = piece.groups if isinstance(piece, Batch) else (piece.group,)
        return [listener for group in groups if (listener := self._listeners.get(group)) is not None]


def _tell(listener: Listener, piece: Told) -> None:
    match piece:
        case Batch():
            listener.on_messages(piece)
        case Reconnected():
            listener.on_cut_off(piece.name)
        case View():
            listener.on_view(piece)
        case Transition():
            listener.on_transition(piece)
        case Left():
            listener.on_cut_off(None)


_DISPATCHERS: WeakKeyDictionary[Member, Dispatcher] = WeakKeyDictionary()
