"""What a client of a daemon and an embedded node have in common: the names that an application uses.

    async with ordercast.connect() as me:           # or ordercast.Node()
        await me.join("orders")
        await me.send("orders", b"buy 3")
        async for event in me:
            match event:
                case ordercast.Message(groups, sender, data, position): ...
                case ordercast.View(group, members, transitional, reason): ...

Everything comes in one ordered stream: what is read event by event and what `batches()` gives is the same stream. A
group that is read apart, with `group()`, is missing there.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Literal, overload

from ordercast.api.group_inbox import GroupInbox, received
from ordercast.api.group_reader import GroupReader
from ordercast.api.pieces import GroupEvents, GroupPieces
from ordercast.api.requests import Inquiries, reply_content
from ordercast.groups.names import (
    GROUPS_MAX,
    MEMBERSHIPS_MAX,
    RESERVED,
    check_may_send,
    checked_destinations,
    checked_groups,
    checked_joinable,
)
from ordercast.model.arguments import check_timeout, given
from ordercast.model.errors import ConnectionLost, UsageError
from ordercast.model.events import Event, Message
from ordercast.model.ids import Position
from ordercast.model.service import Service
from ordercast.session.counters import CallbackCounters
from ordercast.session.payloads import Sendable, checked_contents, checked_service


class Member(ABC):
    """Somebody who joins groups, sends to groups, and reads one ordered stream."""

    inbox: GroupInbox

    def __init__(
        self,
        memberships_max: int | None = MEMBERSHIPS_MAX,
        joined: set[str] | None = None,
        requests: Inquiries | None = None,
    ) -> None:
        self._joined = set() if joined is None else joined  # groups that were asked for
        self._memberships_max = memberships_max
        self._on_loss: list[Callable[[str], None]] = []
        self._requests = requests or Inquiries()
        self._is_draining = False
        self.callback: CallbackCounters | None = None  # of on_message, where there is one

    def __repr__(self) -> str:
        groups = f" in {', '.join(sorted(self._joined))}" if self._joined else ""
        return f"<{type(self).__name__} {self.name or 'not connected'}{groups}>"

    @property
    def joined(self) -> frozenset[str]:
        """The groups that were asked for."""
        return frozenset(self._joined)

    def is_in(self, group: str) -> bool:
        """Whether this group was asked for."""
        return group in self._joined

    @property
    @abstractmethod
    def name(self) -> str:
        """In full, as the others see it: alice@n1."""

    # Groups

    async def join(self, *groups: str) -> None:
        """Returns when the first view of each is in the stream."""
        for group in groups:
            checked_joinable(group)
        await self.meet(*groups)

    async def meet(self, *groups: str) -> None:
        """As `join`, for the parts of Ordercast itself: replicas and archivers meet in groups that others cannot join
        (`groups/names.py`)."""
        self._check_usable()
        if self._is_draining:
            raise UsageError(f"{self.name} is draining, and joins nothing any more: connect again")
        wanted = checked_groups(groups)
        for group in wanted:
            if group in self._joined:
                raise UsageError(f"{self.name} is in the group {group} already")
        most = self._memberships_max
        if most is not None and len(self._joined) + len(wanted) > most:
            raise UsageError(f"one member is in at most {most:,} groups: use several clients")
        self._joined.update(wanted)
        await self._ask(wanted, joins=True)

    async def leave(self, *groups: str) -> None:
        """Returns when the leave of each is in the stream: nothing comes from there any more."""
        self._check_usable()
        wanted = checked_groups(groups)
        for group in wanted:
            if group not in self._joined:
                raise UsageError(f"{self.name} is not in the group {group}")
        self._joined.difference_update(wanted)
        await self._ask(wanted, joins=False)

    async def leave_within(self, seconds: float, group: str) -> None:
        """TimeoutError when the leave took longer; it was asked for all the same."""
        async with asyncio.timeout(seconds):
            await self.leave(group)

    # Sending

    @overload
    async def send(
        self,
        to: str | Iterable[str],
        data: Sendable,
        service: Service = Service.AGREED,
        *,
        confirm: Literal[False] = False,
        self_discard: bool = False,
        headers: Mapping[str, str] | None = None,
    ) -> None: ...

    @overload
    async def send(
        self,
        to: str | Iterable[str],
        data: Sendable,
        service: Service = Service.AGREED,
        *,
        confirm: Literal[True],
        self_discard: bool = False,
        headers: Mapping[str, str] | None = None,
    ) -> Position: ...

    @overload
    async def send(
        self,
        to: str | Iterable[str],
        data: Sendable,
        service: Service = Service.AGREED,
        *,
        confirm: bool,
        self_discard: bool = False,
        headers: Mapping[str, str] | None = None,
    ) -> Position | None: ...

    async def send(
        self,
        to: str | Iterable[str],
        data: Sendable,
        service: Service = Service.AGREED,
        *,
        confirm: bool = False,
        self_discard: bool = False,
        headers: Mapping[str, str] | None = None,
    ) -> Position | None:
        """Send one message to a group, to several, or to one member by name; nobody gets it twice, and the sender need
        not be a member. Returns when it is accepted; with `confirm` when it has its place in the order, and says which.
        `headers`: short texts by name, beside the data.
        """
        return await self.send_many(to, (data,), service, confirm=confirm, self_discard=self_discard, headers=headers)

    @overload
    async def send_many(
        self,
        to: str | Iterable[str],
        payloads: Sequence[Sendable],
        service: Service = Service.AGREED,
        *,
        confirm: Literal[False] = False,
        self_discard: bool = False,
        headers: Mapping[str, str] | None = None,
    ) -> None: ...

    @overload
    async def send_many(
        self,
        to: str | Iterable[str],
        payloads: Sequence[Sendable],
        service: Service = Service.AGREED,
        *,
        confirm: Literal[True],
        self_discard: bool = False,
        headers: Mapping[str, str] | None = None,
    ) -> Position | None: ...

    @overload
    async def send_many(
        self,
        to: str | Iterable[str],
        payloads: Sequence[Sendable],
        service: Service = Service.AGREED,
        *,
        confirm: bool,
        self_discard: bool = False,
        headers: Mapping[str, str] | None = None,
    ) -> Position | None: ...

    async def send_many(
        self,
        to: str | Iterable[str],
        payloads: Sequence[Sendable],
        service: Service = Service.AGREED,
        *,
        confirm: bool = False,
        self_discard: bool = False,
        headers: Mapping[str, str] | None = None,
    ) -> Position | None:
        """Several at once, which costs far less than one by one. What cannot be sent is refused before anything is.
        With `confirm` the place of the last. `headers`: of each of them, beside its own."""
        groups = checked_destinations(to)
        checked_service(service)
        check_may_send(groups, self._joined)
        data, headed = checked_contents(payloads, headers)
        if not data:
            return None
        return await self._send(groups, data, service, confirm=confirm, self_discard=self_discard, headed=headed)

    # Asking somebody

    async def request(
        self,
        to: str | Iterable[str],
        data: Sendable,
        service: Service = Service.AGREED,
        *,
        timeout: float | None,
        headers: Mapping[str, str] | None = None,
    ) -> Message:
        """Send a message that wants a reply, and return the first one. TimeoutError when none came within so many
        seconds: nobody may be there; with None it waits without end. Replies do not come in the stream."""
        check_timeout(timeout)
        number, payload, future = self._requests.new(data, headers)
        try:
            async with asyncio.timeout(timeout):
                await self._send_request(to, payload, service)
                return await future
        except TimeoutError:
            assert timeout is not None, "nothing else is bounded in time"
            raise no_reply((to,) if isinstance(to, str) else to, timeout) from None
        finally:
            self._requests.forget(number)

    async def _send_request(self, to: str | Iterable[str], payload: bytes, service: Service) -> None:
        groups = checked_destinations(to)
        checked_service(service)
        check_may_send(groups, self._joined)
        await self._send(groups, [payload], service, confirm=False, self_discard=False, headed=True)

    async def reply(
        self,
        message: Message,
        data: Sendable,
        service: Service = Service.AGREED,
        *,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Answer a message of which `wants_reply` is true. Returns when the reply is accepted."""
        given(message, Message, "message", "one of which `wants_reply` is true")
        payload = reply_content(message, data, headers)
        checked_service(service)
        await self._send((message.sender,), [payload], service, confirm=False, self_discard=False, headed=True)

    # Receiving

    def __aiter__(self) -> GroupEvents:
        return self.inbox.events()

    def __anext__(self) -> Awaitable[Event]:
        return self.inbox.main.next_event()

    async def receive(self, timeout: float | None = None) -> Event | None:
        """The next event; None at the end of the stream. TimeoutError when nothing came within so many seconds; nothing
        is lost by it."""
        return await received(self.inbox.main, timeout)

    def batches(self) -> GroupPieces:
        """The same stream with messages in batches, for those who count microseconds. One reader at a time."""
        return self.inbox.pieces()

    def group(self, group: str) -> GroupReader:
        """Reads one group apart from the others: enter it with `async with`, and iterate. The group is joined, and left
        at the end, unless this member was in it before."""
        return GroupReader(self, group)

    @abstractmethod
    async def groups(self) -> dict[str, int]:
        """All groups there are, and how many members each has."""

    @abstractmethod
    async def members(self, group: str) -> tuple[str, ...]:
        """Who is in a group, by name; nobody in one that does not exist. One need not be in it to ask."""

    # Ending

    async def drain(self) -> None:
        """Leave all groups, and return when everything that was sent before has its place in the order. What has come
        is still to be read, and can be replied to; then the stream ends. Nothing can be joined any more. A replica has
        to be closed first."""
        self._check_usable()
        if parts := sorted(group for group in self._joined if group.startswith(RESERVED)):
            raise UsageError(f"{self.name} carries {parts[0].lstrip(RESERVED)}: close the replica first, then drain")
        self._is_draining = True
        left = sorted(self._joined)
        for start in range(0, len(left), GROUPS_MAX):
            await self.leave(*left[start : start + GROUPS_MAX])
        await self._send((self.name,), [b""], Service.AGREED, confirm=True, self_discard=True, headed=False)
        self.inbox.finish()

    # Losing the stream

    def on_loss(self, tell: Callable[[str], None]) -> None:
        """From now on `tell` is called with the reason as soon as the stream is lost: the connection broke, or the
        member has ended. What was received before and not read yet stays in the stream; what comes after a loss, if
        anything, begins with a `Reconnected`."""
        self._on_loss.append(tell)

    def _tell_loss(self, why: str) -> None:
        self._requests.fail(ConnectionLost(f"no reply can come any more: {why}"))
        for tell in list(self._on_loss):
            tell(why)

    # How it is done

    @abstractmethod
    def _check_usable(self) -> None:
        """Raises what tells why nothing can be asked for."""

    @abstractmethod
    async def _ask(self, groups: tuple[str, ...], *, joins: bool) -> None:
        """Returns when all are in the stream. Whoever is cancelled has asked all the same."""

    @abstractmethod
    async def _send(
        self,
        groups: tuple[str, ...],
        data: list[bytes],
        service: Service,
        *,
        confirm: bool,
        self_discard: bool,
        headed: bool,
    ) -> Position | None:
        """`headed`: the data of each begins with headers."""


def no_reply(to: Iterable[str], seconds: float) -> TimeoutError:
    return TimeoutError(f"no reply from {', '.join(to)} within {seconds:g} s: is anybody there who replies?")
