"""What an application is told, in one ordered stream: messages to its groups, and who is in them.

A view names everybody in a group, and with `transitional` those who came here with the reader from the same view
before: these have delivered exactly the same messages. A transition says that some members may be out of reach: what
comes between it and the next view has reached those who remain, and perhaps not the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from ordercast.model.ids import Position, RingId, Seq
from ordercast.model.service import Service


class Reason(Enum):
    """Why a group's view changed."""

    JOIN = "join"
    LEAVE = "leave"
    DISCONNECT = "disconnect"  # a client ended, or its connection broke, without leaving
    NETWORK = "network"  # daemons crashed, were cut off, or came together


class ViewId(NamedTuple):
    """The configuration of daemons in which the view was installed, and its place in the order there. The same at
    everybody who installs the view; a later view of a group is greater, at everybody."""

    configuration: RingId
    seq: Seq
    slot: int


class Message(NamedTuple):
    """One message. Its position is the same at everybody who delivers it."""

    groups: tuple[str, ...]  # all that it was sent to, members' names among them
    sender: str
    data: bytes
    position: Position
    service: Service


@dataclass(frozen=True, slots=True)
class View:
    """Who is in a group from here on."""

    group: str
    members: tuple[str, ...]  # by name, sorted
    transitional: tuple[str, ...]  # those who have the reader's own history: no others share all of it
    reason: Reason
    who: tuple[str, ...]  # whose joining, leaving or disconnection it was; nobody's when the network changed
    id: ViewId
    why: str = ""  # a sentence on what happened to the network


@dataclass(frozen=True, slots=True)
class Transition:
    """The group's view is about to change: what comes now has reached `remaining`, and perhaps not the other members.
    (The papers' transitional signal)"""

    group: str
    remaining: tuple[str, ...]
    view: ViewId  # the one that ends


@dataclass(frozen=True, slots=True)
class Left:
    """The reader is no longer in this group: from here on it gets nothing that is sent there."""

    group: str


GroupNews = View | Transition | Left
