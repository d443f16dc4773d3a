"""The events of replicas, as a driver of the replicated state records them and its judges read them. Pure.

A replica is one life: who starts again without memory is another. What it applies is recorded in the order in which it
applies, with a digest (`chain`) of its state, or better of all commands in it: equal ones are equal states. A place is
the number of a command among all commands of applications. Times are those of one clock: what is called after something
returned is later.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from ordercast.model.events import ViewId
from ordercast.model.ids import Instant
from ordercast.model.lineage import Lineage, Term
from ordercast.trace.client_records import Calm
from ordercast.trace.records import Ended, Healed, Unrecorded


@dataclass(frozen=True, slots=True)
class ReplicaStarted:
    at: Instant
    life: int
    name: str  # in full
    weights: tuple[tuple[str, int], ...]  # the configured voices; none when those count who held the state last
    founders: tuple[str, ...]  # who must be there at a beginning
    structure: str = "dictionary"  # what is replicated: its name, and what it was made with
    group: str | None = None  # whose replicas are judged together; None: there is one replicated state


@dataclass(frozen=True, slots=True)
class JournalKept:
    """The replica keeps a journal, said when it begins. Who begins with the journal of an earlier life has forgotten
    nothing of what that one made safe."""

    at: Instant
    life: int
    memory: int  # what the journal is called


@dataclass(frozen=True, slots=True)
class Called:
    """The application asked for something. `request` is the number of the call in this life. An empty operation asks
    for nothing but a place in the order, to read there."""

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
    lineage: Lineage | None
    position: int  # its place; of a read, the last place that it sees
    result: bytes


@dataclass(frozen=True, slots=True)
class Refused:
    at: Instant
    life: int
    request: int
    is_certain: bool  # nobody has applied it, and nobody will


@dataclass(frozen=True, slots=True)
class Applied:
    """The state of this replica changed. `caller` and `request` say whose command it was; request 0 is none that
    anybody waits for, such as the news that somebody is gone: it may come again, and does no harm."""

    at: Instant
    life: int
    lineage: Lineage | None
    term: Term | None
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
    lineage: Lineage | None
    position: int  # of the last command in it
    chain: int


@dataclass(frozen=True, slots=True)
class Looked:
    """The copy that is here was read."""

    at: Instant
    life: int
    lineage: Lineage | None
    position: int  # of the last command in it
    question: bytes
    answer: bytes


class Stage(Enum):
    """How far a view of the group has come at one replica."""

    VIEW = "view"  # it came: who has what is being asked
    DECISION = "decision"  # all have answered
    LOADED = "loaded"  # one more has the state
    EXCLUDED = "excluded"  # this replica was silent for long, and the others go on without it
    SIGNAL = "signal"  # it is ending
    CUT_OFF = "cut off"  # this replica is in no view


@dataclass(frozen=True, slots=True)
class ComponentChanged:
    """What the replica knows of its component. `decided`: it is a primary component by a decision of just now, made
    before a signal (`is_primary`) or after it. `elects`: it is one, or was attempted to be, so that its holders are
    those whose majority is asked for next when no weights are configured."""

    at: Instant
    life: int
    stage: Stage
    view: ViewId | None
    is_primary: bool
    decided: bool
    elects: bool
    is_holder: bool
    holders: tuple[str, ...]
    members: tuple[str, ...]
    lineage: Lineage | None
    term: Term | None
    count: int  # commands of applications in its state
    why: str
    era: int = 0  # of the replica
    excluded: tuple[str, ...] = ()  # members that have not answered: what is decided is decided without them
    round: int = 0  # of asking who has what, in this view


@dataclass(frozen=True, slots=True)
class StreamCut:
    """The replica lives on, but has missed something of the group's stream, or gets nothing of it any more."""

    at: Instant
    life: int


@dataclass(frozen=True, slots=True)
class StreamBack:
    """The replica gets the group's stream again: views of a new membership follow."""

    at: Instant
    life: int


@dataclass(frozen=True, slots=True)
class Believed:
    """What the replica says of itself when the application asks."""

    at: Instant
    life: int
    is_current: bool  # the copy here is the state of a primary component
    holds: bool  # the lock, or the lead: of what it was granted


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
    ghosts: int = 0  # owners of parts of its state who are not in the group


ReplicaEvent = (
    ReplicaStarted
    | JournalKept
    | Called
    | Returned
    | Refused
    | Applied
    | GotPicture
    | Looked
    | ComponentChanged
    | StreamCut
    | StreamBack
    | Believed
    | ReplicaEnded
    | ReplicaKnown
    | Healed
    | Calm
    | Ended
    | Unrecorded
)
