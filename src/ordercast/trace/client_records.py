"""The events of clients, as a driver of the groups records them and the checkers of the groups read them. Pure.

A client is a connection: who connects again under the same name is another client. What it is told is recorded when it
is told, and what it asks for when it asks, so that the order of a client's events is the order of its own doing.

The configurations of the daemons are told too, as in `records.py`: a judge wants to know who was in reach.

A message says inside its data who it is, as in `records.py`: `MessageId(process, session, counter)`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from ordercast.model.events import Transition, View
from ordercast.model.ids import Instant, Position, ProcessId, process_text
from ordercast.trace.records import Ended, Healed, Installed, MessageId, Started, Unrecorded


class ClientId(NamedTuple):
    """One connection to one life of a daemon."""

    process: ProcessId
    session: int

    def __str__(self) -> str:
        return f"{process_text(self.process)}/{self.session}"


class End(Enum):
    """How a client ended."""

    ORDERLY = "orderly"  # it disconnected
    CRASHED = "crashed"  # its connection broke
    DAEMON_CRASHED = "daemon crashed"
    DAEMON_LEFT = "daemon left"
    SENT_AWAY = "sent away"  # by its daemon: it was too slow, or wrong


@dataclass(frozen=True, slots=True)
class Connected:
    at: Instant
    client: ClientId
    name: str  # in full: alice@n1


@dataclass(frozen=True, slots=True)
class AskedJoin:
    at: Instant
    client: ClientId
    groups: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AskedLeave:
    at: Instant
    client: ClientId
    groups: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Sent:
    """The client handed a message over. `groups`: all it is for, private names among them."""

    at: Instant
    client: ClientId
    message: MessageId
    groups: tuple[str, ...]
    service: int
    digest: int
    self_discard: bool = False
    confirm: bool = False  # the client wants to know its place in the order


@dataclass(frozen=True, slots=True)
class GotMessage:
    at: Instant
    client: ClientId
    message: MessageId | None  # None: the data carry no identity at all
    sender: str
    groups: tuple[str, ...]
    service: int
    digest: int
    position: Position


@dataclass(frozen=True, slots=True)
class GotConfirmation:
    """The client's own message has its place in the order."""

    at: Instant
    client: ClientId
    message: MessageId | None
    position: Position


@dataclass(frozen=True, slots=True)
class GotView:
    at: Instant
    client: ClientId
    view: View


@dataclass(frozen=True, slots=True)
class GotTransition:
    at: Instant
    client: ClientId
    transition: Transition


@dataclass(frozen=True, slots=True)
class GotLeft:
    at: Instant
    client: ClientId
    group: str


@dataclass(frozen=True, slots=True)
class GotDropped:
    """The client was too slow, and had chosen to lose messages then: so many would be here."""

    at: Instant
    client: ClientId
    messages: int


@dataclass(frozen=True, slots=True)
class GotRefusal:
    """The client had asked to join these groups, and is in none of them: it may not be in so many."""

    at: Instant
    client: ClientId
    groups: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Disconnected:
    at: Instant
    client: ClientId
    how: End


@dataclass(frozen=True, slots=True)
class Calm:
    """From here on all daemons are in one configuration to the end: whatever is sent now reaches all it is for."""

    at: Instant


@dataclass(frozen=True, slots=True)
class KnownGroups:
    """What a daemon that runs at the end knows: the members of each group, by name."""

    at: Instant
    process: ProcessId
    groups: tuple[tuple[str, tuple[str, ...]], ...]


ClientEvent = (
    Started
    | Connected
    | AskedJoin
    | AskedLeave
    | Sent
    | GotMessage
    | GotConfirmation
    | GotView
    | GotTransition
    | GotLeft
    | GotDropped
    | GotRefusal
    | Disconnected
    | Installed
    | Healed
    | Calm
    | KnownGroups
    | Ended
    | Unrecorded
)
