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

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Literal, overload

from ordercast.api.group_inbox import GroupInbox, received
from ordercast.api.group_reader import GroupReader
from ordercast.api.pieces import GroupEvents, GroupPieces
from ordercast.groups.names import (
    MEMBERSHIPS_MAX,
    check_may_send,
    checked_destinations,
    checked_groups,
    checked_joinable,
)
from ordercast.model.errors import UsageError
from ordercast.model.events import Event
from ordercast.model.ids import Position
from ordercast.model.service import Service
from ordercast.session.payloads import Payload, checked_payloads, checked_service


class Member(ABC):
    """Somebody who joins groups, sends to groups, and reads one ordered stream."""

    inbox: GroupInbox

    def __init__(self, memberships_max: int | None = MEMBERSHIPS_MAX) -> None:
        self.joined: set[str] = set()  # groups that were asked for
        self._memberships_max = memberships_max
        self._on_loss: list[Callable[[str], None]] = []

    def __repr__(self) -> str:
        groups = f" in {', '.join(sorted(self.joined))}" if self.joined else ""
        return f"<{type(self).__name__} {self.name or 'not connected'}{groups}>"

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
        wanted = checked_groups(groups)
        for group in wanted:
            if group in self.joined:
                raise UsageError(f"{self.name} is in the group {group} already")
        most = self._memberships_max
        if most is not None and len(self.joined) + len(wanted) > most:
            raise UsageError(f"one member is in at most {most:,} groups: use several clients")
        self.joined.update(wanted)
        await self._ask(wanted, joins=True)

    async def leave(self, *groups: str) -> None:
        """Returns when the leave of each is in the stream: nothing comes from there any more."""
        self._check_usable()
        wanted = checked_groups(groups)
        for group in wanted:
            if group not in self.joined:
                raise UsageError(f"{self.name} is not in the group {group}")
        self.joined.difference_update(wanted)
        await self._ask(wanted, joins=False)

    # Sending

    @overload
    async def send(
        self,
        to: str | Iterable[str],
        data: Payload,
        service: Service = Service.AGREED,
        *,
        confirm: Literal[False] = False,
        self_discard: bool = False,
    ) -> None: ...

    @overload
    async def send(
        self,
        to: str | Iterable[str],
        data: Payload,
        service: Service = Service.AGREED,
        *,
        confirm: Literal[True],
        self_discard: bool = False,
    ) -> Position: ...

    @overload
    async def send(
        self,
        to: str | Iterable[str],
        data: Payload,
        service: Service = Service.AGREED,
        *,
        confirm: bool,
        self_discard: bool = False,
    ) -> Position | None: ...

    async def send(
        self,
        to: str | Iterable[str],
        data: Payload,
        service: Service = Service.AGREED,
        *,
        confirm: bool = False,
        self_discard: bool = False,
    ) -> Position | None:
        """Send one message to a group, to several, or to one member by name; nobody gets it twice, and the sender need
        not be a member. Returns when it is accepted; with `confirm` when it has its place in the order, and says which.
        """
        return await self.send_many(to, (data,), service, confirm=confirm, self_discard=self_discard)

    @overload
    async def send_many(
        self,
        to: str | Iterable[str],
        payloads: Sequence[Payload],
        service: Service = Service.AGREED,
        *,
        confirm: Literal[False] = False,
        self_discard: bool = False,
    ) -> None: ...

    @overload
    async def send_many(
        self,
        to: str | Iterable[str],
        payloads: Sequence[Payload],
        service: Service = Service.AGREED,
        *,
        confirm: Literal[True],
        self_discard: bool = False,
    ) -> Position | None: ...

    @overload
    async def send_many(
        self,
        to: str | Iterable[str],
        payloads: Sequence[Payload],
        service: Service = Service.AGREED,
        *,
        confirm: bool,
        self_discard: bool = False,
    ) -> Position | None: ...

    async def send_many(
        self,
        to: str | Iterable[str],
        payloads: Sequence[Payload],
        service: Service = Service.AGREED,
        *,
        confirm: bool = False,
        self_discard: bool = False,
    ) -> Position | None:
        """Several at once, which costs far less than one by one. What cannot be sent is refused before anything is.
        With `confirm` the place of the last."""
        groups = checked_destinations(to if isinstance(to, str) else tuple(to))
        checked_service(service)
        check_may_send(groups, self.joined)
        data = checked_payloads(payloads)
        if not data:
            return None
        return await self._send(groups, data, service, confirm=confirm, self_discard=self_discard)

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

    # Losing the stream

    def on_loss(self, tell: Callable[[str], None]) -> None:
        """From now on `tell` is called with the reason as soon as the stream is lost: the connection broke, or the
        member has ended. What was received before and not read yet stays in the stream; what comes after a loss, if
        anything, begins with a `Reconnected`."""
        self._on_loss.append(tell)

    def _tell_loss(self, why: str) -> None:
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
        self, groups: tuple[str, ...], data: list[bytes], service: Service, *, confirm: bool, self_discard: bool
    ) -> Position | None: ...
