"""SessionMember: a member through a daemon, whatever carries the bytes. See `client.py` and `direct.py`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any

from ordercast.api.client_state import ClientState
from ordercast.api.member import Member
from ordercast.api.target import DaemonTarget
from ordercast.groups.names import checked_group
from ordercast.model.errors import ConnectionLost, UsageError
from ordercast.session.addresses import Address
from ordercast.session.client_half import ClientHalf
from ordercast.session.frames import Listing, Members, encode_document
from ordercast.session.pieces import FrameKind

Question = Callable[[ClientHalf], bytes]  # put to the daemon, in the words of the session that there is then


class SessionMember(Member):
    def __init__(self, target: DaemonTarget, state: ClientState) -> None:
        super().__init__(None, state.joined, state.requests)  # the daemon knows how many groups it allows
        self.state = state
        self.inbox = state.inbox
        self.inbox.shows_sinks = target.sinks
        self.target = target

    def __repr__(self) -> str:
        if self.state.is_closed:
            return f"<{type(self).__name__} {self.name}, closed>"
        return super().__repr__()

    @property
    def name(self) -> str:
        return self.state.name

    @property
    def address(self) -> Address | None:
        """Where the daemon is."""
        return self.state.address

    async def groups(self) -> dict[str, int]:
        found: dict[str, int] = {}
        is_last = False
        while not is_last:
            page: Listing = await self._answer(partial(ClientHalf.list_groups, after=next(reversed(found), "")))
            found |= page.groups
            is_last = page.is_last
        return found

    async def members(self, group: str) -> tuple[str, ...]:
        checked_group(group)
        found: list[str] = []
        is_last = False
        while not is_last:
            after = found[-1] if found else ""
            page: Members = await self._answer(partial(ClientHalf.members_of, group=group, after=after))
            found += page.names
            is_last = page.is_last
        return tuple(found)

    async def manage(self, document: dict[str, Any]) -> dict[str, Any]:
        """Ask the daemon for something that an operator wants; see `daemon/management.py`. UsageError when it will
        not."""
        answer: dict[str, Any] = await self._answer(lambda _: encode_document(FrameKind.MANAGE, document))
        if "error" in answer:
            raise UsageError(str(answer["error"]))
        return answer

    @abstractmethod
    async def _answer(self, question: Question) -> Any:
        """Return what the daemon says; one question is asked after the other."""

    def check_open(self) -> None:
        """Raise UsageError when the client was closed: it does not open again."""
        if self.state.is_closed:
            raise UsageError("the client was closed: connect again")

    def _check_usable(self) -> None:
        if self.state.link is None and (self.state.is_closed or not self.target.reconnect):
            raise ConnectionLost("there is no connection to a daemon: connect again")
