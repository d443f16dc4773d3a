"""GroupReader: reads one group of a member, beside whoever reads the others.

    async with me.group("orders") as orders:
        async for event in orders: ...

Entering joins the group, unless the member is in it already; leaving the block leaves the group that it has joined.
"""

from __future__ import annotations

from collections.abc import Awaitable
from contextlib import suppress
from typing import Protocol, Self

from ordercast.api.group_inbox import GroupInbox, GroupQueue, InboxOwner, received
from ordercast.api.pieces import GroupEvents, GroupPieces
from ordercast.groups.names import checked_group
from ordercast.model.errors import Error, UsageError
from ordercast.model.events import Event

LEAVE_S = 5.0  # who has no connection does not wait for one in order to leave


class Reader(InboxOwner, Protocol):
    """The member."""

    inbox: GroupInbox

    async def join(self, *groups: str) -> None: ...
    async def leave_within(self, seconds: float, group: str) -> None: ...


class GroupReader:
    def __init__(self, member: Reader, group: str) -> None:
        self.group = checked_group(group)
        self.queue: GroupQueue = GroupQueue(member.inbox)
        self.member = member
        self._is_used = False
        self._has_joined = False

    async def __aenter__(self) -> Self:
        if self._is_used:
            raise UsageError("a group is read in one block: call group() again")
        self._is_used = True
        self.member.inbox.claim(self.group, self.queue, self.member)
        if not self.member.is_in(self.group):
            self._has_joined = True
            try:
                await self.member.join(self.group)
            except BaseException:
                await self._end()
                raise
        return self

    async def __aexit__(self, *how: object) -> None:
        await self._end()

    def __repr__(self) -> str:
        return f"<GroupReader {self.group} of {self.member.name}>"

    def __aiter__(self) -> GroupEvents:
        return self.queue.events()

    def __anext__(self) -> Awaitable[Event]:
        return self.queue.next_event()

    async def receive(self, timeout: float | None = None) -> Event | None:
        """The next event; None at the end. TimeoutError when nothing came within so many seconds."""
        return await received(self.queue, timeout)

    def batches(self) -> GroupPieces:
        """The same with messages in batches. One reader at a time."""
        return self.queue.pieces()

    async def _end(self) -> None:
        self.member.inbox.end(self.queue)
        if self._has_joined and self.member.is_in(self.group):
            self.member.inbox.pass_over(self.group)
            with suppress(Error, TimeoutError):  # a stream that has ended is left already
                await self.member.leave_within(LEAVE_S, self.group)
