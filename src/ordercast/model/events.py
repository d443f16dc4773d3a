"""What an application is told, in one ordered stream: messages to its groups, and who is in them.

A view names everybody in a group, and with `transitional` those who came here with the reader from the same view
before: these have delivered exactly the same messages. A transition says that some members may be out of reach: what
comes between it and the next view has reached those who remain, and perhaps not the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from ordercast.model.headers import CONTENT_TYPE, NO_HEADERS, REQUEST, Headers, headers_and_data
from ordercast.model.ids import ConfigurationId, Places, Position
from ordercast.model.service import Service


class Reason(Enum):
    """Why a group's view changed."""

    JOIN = "join"
    LEAVE = "leave"
    DISCONNECT = "disconnect"  # a client ended, or its connection broke, without leaving
    NETWORK = "network"  # daemons crashed, were cut off, or came together


class ViewId(NamedTuple):
    """The configuration of daemons in which the view was installed, and its place in the order. The same at everybody
    who installs the view, and never again that of another. A later view of a group is greater, at everybody whose
    daemon remembers its configurations (for others, `lineage.py`)."""

    configuration: ConfigurationId
    position: Position

    def __str__(self) -> str:
        """Return the place of the view as people read it."""
        return str(self.position)


class Message(NamedTuple):
    """One message. Its position is the same at everybody who delivers it."""

    groups: tuple[str, ...]  # all that it was sent to, members' names among them
    sender: str
    data: bytes
    position: Position
    service: Service
    headers: Headers = NO_HEADERS  # what its sender says beside the data

    @property
    def content_type(self) -> str | None:
        """What the data is, as its sender says: `application/json`. None: nothing is said."""
        return self.headers.get(CONTENT_TYPE)

    @property
    def wants_reply(self) -> bool:
        """Whether its sender waits for a reply: it came from `request()`."""
        return REQUEST in self.headers


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


class Dropped(NamedTuple):
    """The reader was too slow, and has chosen to lose messages then: so many, of so many bytes, would be here."""

    messages: int
    size: int


@dataclass(frozen=True, slots=True)
class Reconnected:
    """The connection to the daemon broke and there is a new one. What was sent to the reader's groups in between is
    missed; new views of the groups that were joined again follow."""

    name: str  # the reader's, in full, from here on
    joined: tuple[str, ...]  # the groups that are being joined again
    unconfirmed: int  # messages sent with `confirm` of which it is not known whether they have a place in the order
    last: Position | None  # of the last message that came over the broken connection
    why: str  # it broke


GroupNews = View | Transition | Left


class Batch:
    """Messages in a row from one sender to the same groups, in columns: for those who count microseconds. Iterating
    gives them one by one. Either none of them has headers, or each has a block of them ahead of its data."""

    __slots__ = ("data", "groups", "headers", "places", "raw", "sender", "services")

    def __init__(
        self,
        groups: tuple[str, ...],
        sender: str,
        raw: Sequence[bytes],
        services: Sequence[int],
        places: Places,
        is_headed: bool = False,
    ) -> None:
        self.groups = groups
        self.sender = sender
        self.raw = self.data = raw  # as they were sent; `data` is without the headers
        self.headers: Sequence[Headers] = ()  # of each, unless none of them has any
        self.services = services
        self.places = places
        if is_headed:
            taken = [headers_and_data(payload) for payload in raw]
            self.headers, self.data = [headers for headers, _ in taken], [data for _, data in taken]

    @property
    def is_headed(self) -> bool:
        return bool(self.headers)

    def __len__(self) -> int:
        return len(self.data)

    def __iter__(self) -> Iterator[Message]:
        at = self.places.at
        if self.headers:
            for index, (data, service) in enumerate(zip(self.data, self.services, strict=True)):
                yield Message(self.groups, self.sender, data, at(index), _SERVICES[service], self.headers[index])
            return
        for index, (data, service) in enumerate(zip(self.data, self.services, strict=True)):
            yield Message(self.groups, self.sender, data, at(index), _SERVICES[service])

    @property
    def last(self) -> Position:
        return self.places.last(len(self.data))

    def after(self, count: int) -> Batch:
        """Return the batch without so many messages at its beginning."""
        return self.part(count, len(self.data))

    def part(self, start: int, end: int) -> Batch:
        """Return a batch of some of the messages, numbered from 0."""
        places = self.places.after(start)
        services = self.services[start:end]
        return Batch(self.groups, self.sender, self.raw[start:end], services, places, self.is_headed)


_SERVICES = tuple(Service)
Event = Message | View | Transition | Left | Dropped | Reconnected
Piece = Batch | View | Transition | Left | Dropped | Reconnected  # the same stream, messages in batches
