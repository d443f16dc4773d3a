"""The inbox of a group member, shared out between those who read it.

A group can be claimed for a queue of its own: what comes for it goes there. Everything else is for whoever reads the
member itself. A message to several groups is given to each reader whom it concerns, once; what says something of the
whole stream (`Reconnected`, `Dropped`) is given to all. Each reader has the order of the stream, and positions tell the
order between readers.

What nobody reads must not pile up: while groups are claimed, what concerns none of the member's other groups is kept
only if the member itself has ever been read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

from ordercast.api.callback import CallbackQueue, OnMessage
from ordercast.api.inbox import Inbox, Queue
from ordercast.api.pieces import events_of, rest_of
from ordercast.groups.names import sink_of
from ordercast.model.arguments import check_timeout
from ordercast.model.errors import UsageError
from ordercast.model.events import Batch, Dropped, Event, Left, Piece, Reconnected
from ordercast.session.counters import CallbackCounters

GroupQueue = Queue[Piece, Event]


async def received(queue: GroupQueue, timeout: float | None) -> Event | None:
    """Return the next event; None at the end of the stream. Raises TimeoutError; what comes later is not lost by it."""
    check_timeout(timeout)
    try:
        async with asyncio.timeout(timeout) as limit:
            return await queue.next_event()
    except StopAsyncIteration:
        return None
    except TimeoutError:
        if not limit.expired():
            raise
        raise TimeoutError(f"nothing came within {timeout:g} s") from None


class InboxOwner(Protocol):
    """The member whose inbox it is."""

    @property
    def joined(self) -> Collection[str]: ...

    @property
    def name(self) -> str: ...

    def is_in(self, group: str) -> bool: ...


class GroupInbox(Inbox[Piece, Event]):
    def __init__(
        self,
        size_max: int,
        on_behind: Callable[[bool], None] | None = None,
        on_taken: Callable[[int], None] | None = None,
    ) -> None:
        super().__init__(events_of, rest_of, size_max, on_behind, on_taken)
        self.shows_sinks = False  # who reads here has asked for what sinks send: parts and markers of rows
        self._claims: dict[str, GroupQueue] = {}
        self._left: set[str] = set()  # groups whose reader has gone: passed over until the leave has come
        self._owner: InboxOwner | None = None  # once there are claims
        self._is_finished = False
        self._lock: AbstractContextManager[Any] = nullcontext()
        self._changed: Callable[[], None] | None = None

    def call(self, on_message: OnMessage) -> CallbackCounters:
        """From now on this function is called with what would be in the member's own stream."""
        called = CallbackQueue(self, on_message)
        self.main = called
        return called.counters

    def lock_with(self, lock: AbstractContextManager[Any], changed: Callable[[], None]) -> None:
        """Readers come and go in other threads than the one that puts, which holds this lock; readers that wait are
        told when something has `changed` though nothing came."""
        self._lock, self._changed = lock, changed

    # Who reads what

    def claim(self, group: str, queue: GroupQueue, owner: InboxOwner) -> None:
        """From here on what comes for this group goes to this queue."""
        if group in self._claims:
            raise UsageError(f"somebody else reads the group {group} of {owner.name}: one reader at a time")
        with self._lock:
            self._owner = owner
            self._claims[group] = queue

    def give_back(self, group: str) -> None:
        """It is for whoever reads the member, again."""
        with self._lock:
            self._claims.pop(group, None)

    def end(self, queue: GroupQueue) -> None:
        """Its reader has gone, and takes nothing more."""
        with self._lock:
            for group in [group for group, claimed in self._claims.items() if claimed is queue]:
                del self._claims[group]
            if unread := queue.end():
                self.took(unread)
            self._tell_changed()

    def pass_over(self, group: str) -> None:
        """What still comes for this group, up to the leave, is for nobody."""
        with self._lock:
            self._left.add(group)

    # What comes

    def put(self, piece: Piece, size: int) -> None:
        is_hidden = not self.shows_sinks and isinstance(piece, Batch) and sink_of(piece.groups) is not None
        if self._is_finished or is_hidden:
            self.pass_by(size)
        elif not self._claims and not self._left:
            super().put(piece, size)
        elif queues := self._queues_for(piece):
            self._put_into(queues, piece, size)
        else:
            self.pass_by(size)

    def pass_by(self, size: int) -> None:
        """Something of this size came that no reader gets."""
        self.size += size
        self.took(size)

    def finish(self) -> None:
        """End the stream behind what is here, though more may come."""
        with self._lock:
            self._is_finished = True
            self.close()
            self._tell_changed()

    def _tell_changed(self) -> None:
        if self._changed is not None:
            self._changed()

    def close(self, failure: BaseException | None = None) -> None:
        super().close(failure)
        for queue in self._claims.values():
            queue.wake()

    def _queues_for(self, piece: Piece) -> Collection[GroupQueue]:
        if isinstance(piece, Reconnected | Dropped):
            if isinstance(piece, Reconnected):
                self._left.clear()  # the leave that was awaited does not come
            queues = dict.fromkeys(self._claims.values())
            return [*queues, self.main] if self._is_main_read() else list(queues)
        groups = piece.groups if isinstance(piece, Batch) else (piece.group,)
        if isinstance(piece, Left) and piece.group in self._left:
            self._left.discard(piece.group)
            return ()
        return self._queues_of([group for group in groups if group not in self._left])

    def _queues_of(self, groups: list[str]) -> Collection[GroupQueue]:
        assert self._owner is not None
        queues: dict[GroupQueue, None] = {}
        for group in groups:
            if (queue := self._claims.get(group)) is not None:
                queues[queue] = None
            elif self._owner.is_in(group) or (group == self._owner.name and self.main.is_wanted):
                queues[self.main] = None
        return queues or ([self.main] if groups and self.main.is_wanted else ())

    def _is_main_read(self) -> bool:
        assert self._owner is not None
        return self.main.is_wanted or any(group not in self._claims for group in self._owner.joined)
