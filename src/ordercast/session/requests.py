"""What a client asks of its daemon, decoded and found in order."""

from __future__ import annotations

from typing import Any, NamedTuple

from ordercast.session.batches import Send
from ordercast.session.frames import DeniedSend, Hello, Refused


class JoinGroups(NamedTuple):
    groups: tuple[str, ...]


class LeaveGroups(NamedTuple):
    groups: tuple[str, ...]


class Bye(NamedTuple):
    """The client ends in order."""


class ListGroups(NamedTuple):
    """The client asks which groups there are."""

    after: str = ""  # those whose names come later in the alphabet


class ListMembers(NamedTuple):
    """The client asks who is in a group."""

    group: str
    after: str = ""


class Manage(NamedTuple):
    """An operator asks for something."""

    document: dict[str, Any]


class ShownToken(NamedTuple):
    """The client shows who it is, before it greets."""

    token: bytes


Request = (
    Hello
    | ShownToken
    | Send
    | DeniedSend
    | JoinGroups
    | LeaveGroups
    | Bye
    | ListGroups
    | ListMembers
    | Refused
    | Manage
)
