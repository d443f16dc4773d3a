"""The events of replicas, as a driver of the replicated state records them and its judges read them. Pure.

A replica is one life: who starts again without memory is another. What it applies is recorded in the order in which it
applies, with a digest chained over all commands in its state, so that equal chains are equal histories. Times are those
of one clock: what is called after something returned is later.
"""

from __future__ import annotations

from dataclasses import dataclass

from ordercast.model.events import ViewId
from ordercast.model.ids import Instant
from ordercast.trace.client_records import Calm
from ordercast.trace.records import Ended, Healed


@dataclass(frozen=True, slots=True)
class ReplicaStarted:
    at: Instant
    life: int
    name: str  # in full
    weights: tuple[tuple[str, int], ...]  # the configured voices; none when those count who held the state last
    founders: tuple[str, ...]  # who must be there at a beginning


@dataclass(frozen=True, slots=True)
class Called:
    """The application asked for something. An empty operation is a linearised read of nothing: a place in the order."""

    at: Instant
    life: int
    request: int
    operation: bytes


@dataclass(frozen=True, slots=True)
class Returned:
    """It was confirmed."""

    at: Instant
    life: int
    request: int
    lineage: ViewId | None
    position: int
    result: bytes


@dataclass(frozen=True, slots=True)
class Refused:
    at: Instant
    life: int
    request: int
    is_certain: bool  # nobody has applied it, and nobody will


@dataclass(frozen=True, slots=True)
class Read:
    """A linearised read returned: it saw the state after `count` commands, and has no place of its own."""

    at: Instant
    life: int
    called_at: Instant
    operation: bytes
    lineage: ViewId | None
    count: int
    result: bytes


@dataclass(frozen=True, slots=True)
class Applied:
    """The state of this replica changed. `caller` and `request` say whose command it was."""

    at: Instant
    life: int
    lineage: ViewId | None
    term: ViewId | None
    position: int
    caller: int
    request: int
    operation: bytes
    result: bytes
    chain: int  # over all commands up to this one


@dataclass(frozen=True, slots=True)
class GotPicture:
    """The state of this replica was replaced by another's."""

    at: Instant
    life: int
    lineage: ViewId | None
    position: int  # of the last command in it
    chain: int


@dataclass(frozen=True, slots=True)
class ComponentChanged:
    """What the replica knows of its component. `decided`: it is a primary component by a decision of just now, made
    before a signal (`is_primary`) or after it."""

    at: Instant
    life: int
    is_primary: bool
    decided: bool
    is_holder: bool
    holders: tuple[str, ...]
    members: tuple[str, ...]
    lineage: ViewId | None
    term: ViewId | None
    count: int  # commands in its state
    why: str


@dataclass(frozen=True, slots=True)
class StreamCut:
    """The replica lives on, but has missed something of the group's stream."""

    at: Instant
    life: int


@dataclass(frozen=True, slots=True)
class ReplicaEnded:
    at: Instant
    life: int


@dataclass(frozen=True, slots=True)
class ReplicaKnown:
    """What a replica that runs and is in the group at the end knows."""

    at: Instant
    life: int
    is_primary: bool
    is_holder: bool
    count: int
    chain: int
    waiting: int  # requests without an answer
    pictures: int  # kept for others


ReplicaEvent = (
    ReplicaStarted
    | Called
    | Returned
    | Refused
    | Read
    | Applied
    | GotPicture
    | ComponentChanged
    | StreamCut
    | ReplicaEnded
    | ReplicaKnown
    | Healed
    | Calm
    | Ended
)
