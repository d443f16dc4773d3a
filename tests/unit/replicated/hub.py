"""Members of groups without a network: one order for all, in one event loop. Sides are made by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from itertools import count

from ordercast.api.group_inbox import GroupInbox
from ordercast.api.member import Member
from ordercast.api.pieces import size_of
from ordercast.model.events import Batch, Left, Piece, Reason, Reconnected, Transition, View, ViewId
from ordercast.model.ids import ConfigurationId, Places, Position, ProcessId
from ordercast.model.service import Service


class Hub:
    def __init__(self) -> None:
        self.groups: dict[str, list[tuple[HubMember, ...]]] = {}  # the sides of each
        self.left: asyncio.Queue[tuple[str, str]] = asyncio.Queue()  # which group, and who
        self._views = count(1)

    def members(self, group: str) -> set[str]:
        return {member.name for side in self.groups.get(group, []) for member in side}

    def join(self, group: str, member: HubMember) -> None:
        first, *others = self.groups.get(group) or [()]
        self.groups[group] = [(*first, member), *others]
        self._view(group, self.groups[group][0])

    def leave(self, group: str, member: HubMember) -> None:
        member.tell(Left(group))
        self.groups[group] = [tuple(each for each in side if each is not member) for side in self.groups[group]]
        for side in self.groups[group]:
            self._view(group, side)
        self.left.put_nowait((group, member.name))

    def forget(self, group: str, member: HubMember) -> None:
        self.groups[group] = [tuple(each for each in side if each is not member) for side in self.groups[group]]
        for side in self.groups[group]:
            self._view(group, side)

    def part(self, group: str, *sides: Iterable[HubMember]) -> None:
        """Or meet: whoever is with whom from now on."""
        self.groups[group] = [tuple(side) for side in sides]
        for side in self.groups[group]:
            self._view(group, side)

    def send(self, groups: tuple[str, ...], sender: HubMember, data: list[bytes]) -> None:
        places = Places(ConfigurationId(0, ProcessId(1)), 1, 0, 1, 0)
        batch = Batch(groups, sender.name, data, [0] * len(data), places)
        sides = [side for group in groups for side in self.groups.get(group, []) if sender in side]
        for member in dict.fromkeys(member for side in sides for member in side):
            member.tell(batch)

    def _view(self, group: str, side: tuple[HubMember, ...]) -> None:
        ring = ConfigurationId(next(self._views), ProcessId(1))
        view = ViewId(ring, Position(ring, 0, 0))
        names = tuple(sorted(member.name for member in side))
        for member in side:
            member.tell(Transition(group, names, view))
            member.tell(View(group, names, names, Reason.NETWORK, (), view))


class HubMember(Member):
    def __init__(self, hub: Hub, name: str) -> None:
        super().__init__()
        self.hub = hub
        self.inbox = GroupInbox(1 << 20)
        self._name = name

    @property
    def name(self) -> str:
        return self._name

    def tell(self, piece: Piece) -> None:
        self.inbox.put(piece, size_of(piece))

    def lose(self, why: str) -> None:
        """The connection. The others see that it is gone."""
        self._tell_loss(why)
        for group in self._joined:
            self.hub.forget(group, self)

    def come_back(self) -> None:
        self.tell(Reconnected(self._name, tuple(self._joined), 0, None, "it broke"))
        for group in self._joined:
            self.hub.join(group, self)

    def end(self, error: BaseException) -> None:
        self._tell_loss(str(error))
        self.inbox.close(error)

    async def groups(self) -> dict[str, int]:
        return {group: len(self.hub.members(group)) for group in self.hub.groups}

    async def members(self, group: str) -> tuple[str, ...]:
        return tuple(sorted(self.hub.members(group)))

    def _check_usable(self) -> None:
        pass

    async def _ask(self, groups: tuple[str, ...], *, joins: bool) -> None:
        for group in groups:
            (self.hub.join if joins else self.hub.leave)(group, self)

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
        self.hub.send(groups, self, data)
        return None
