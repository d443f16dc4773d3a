"""What the core asks its desk to do, what the desk asks its driver to do, in order, and the values in it.

Every effect is about one group, and is carried out in the order of the list. The core (`Effect`) needs no answer but to
`Fetch`, which is answered by `Core.loaded` when the whole picture is here, and `GoOn`. The desk (`DeskEffect`) hands
some of them on to its driver, live or simulated, and has others of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, Protocol

from ordercast.model.lineage import Lineage, Term
from ordercast.replicated.machine import Frozen


class Point(NamedTuple):
    """The place of a decision in the order: pictures of the state are taken there."""

    term: Term
    step: int  # 0: the round of the view; else the number of those loaded since, or of a side (`sides.py`)


class Standing(Enum):
    """How this replica stands."""

    FRESH = "fresh"  # it has no state in this life
    STALE = "stale"  # it has a state, and not the best one that is known
    HOLDER = "holder"  # its state is the best one


class Why(Enum):
    """A command was refused."""

    NOT_PRIMARY = "not primary"  # this side is no primary component: nobody has applied it and nobody will
    UNCERTAIN = "uncertain"  # the same, but an earlier copy of it may have been applied, or may be later
    BUSY = "busy"  # too many are waiting already; it was not sent


class Reason(Enum):
    """Why what is known of the primary component changed."""

    VIEW = "a new view: who has which state is being asked"
    SPOKEN = "one who was silent has said what it has: all are asked once more"
    WITHOUT = "one who was to be united with does not answer, and is left out: all others are asked once more"
    EXCLUDED = "the others have waited long enough for this replica's word, and go on without it until it comes"
    ERA = "not all are in one era, since a daemon lost its memory: who has which state is asked once more"
    BOOTSTRAP = "nobody had a state, and all who must be here were: the empty state is the first"
    QUORUM = "those who have the best state are a quorum"
    LOADED = "a replica was loaded, and with it there is a quorum"
    NO_QUORUM = "those who have the best state are no quorum"
    NO_STATE = "nobody has a state, and some who must be here for a beginning are not"
    JOINED = "a replica was loaded"
    FORCED = "an operator said so: what others had confirmed and is not here is given up"
    ONE_SIDE = "every side goes on, and here is one"
    SIDES = "several sides have met: their states are being united"
    UNITED = "the sides were united: all who were on them are being loaded"
    SIGNAL = "the view is ending: nothing is applied before the next one is decided"
    CUT_OFF = "this replica is not in the group"
    LOST = "the connection to the group is lost: the copy here may be old, and nothing is confirmed until it is back"


class Ticket(Protocol):
    """Whoever waits for the answer to a call."""

    def done(self) -> bool:
        """Does nobody wait for it any more?"""


class Donor(NamedTuple):
    name: str
    life: int
    address: bytes  # what it put into its STATE: the transfer's own


@dataclass(frozen=True, slots=True)
class Send:
    """To the group, with service SAFE. Payloads in order."""

    payloads: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Confirm:
    """The command with this request number has been applied here, and no primary component will ever be without it."""

    request: int
    position: int  # its number in the sequence of all commands, from 1
    result: bytes


@dataclass(frozen=True, slots=True)
class Refuse:
    request: int
    why: Why


@dataclass(frozen=True, slots=True)
class Fetch:
    """Get the picture taken at `point` from one of these, tried in this order, and then call `Core.loaded`. The latest
    Fetch counts: one of the same point goes on with what has come so far, with these donors; one of another point
    starts anew, and what came for the old one is worthless."""

    point: Point
    donors: tuple[Donor, ...]


@dataclass(frozen=True, slots=True)
class StopFetching:
    """What is being fetched is no longer wanted."""

    point: Point


@dataclass(frozen=True, slots=True)
class Freeze:
    """Serve this picture to whoever asks for `point`, until its Release: `preface` first, then the pieces."""

    point: Point
    preface: bytes  # the core's own part: who sent what last, commands that are held
    frozen: Frozen

    def pieces(self) -> Iterator[bytes]:
        yield self.preface
        yield from self.frozen.pieces()


@dataclass(frozen=True, slots=True)
class Release:
    point: Point


@dataclass(frozen=True, slots=True)
class Changed:
    """What this replica knows of its component."""

    is_primary: bool  # commands are applied and confirmed
    standing: Standing
    holders: tuple[str, ...]  # by name, sorted; nobody while it is not known
    members: tuple[str, ...]
    term: Term | None  # the primary component in which the state here was last decided current
    count: int  # commands applied here, with those that a primary component still has to apply
    reason: Reason
    lineage: Lineage | None  # of the state here
    missing: tuple[str, ...] = ()  # for whom is waited: to say what they have, for a quorum, or for a beginning
    needed: tuple[str, ...] = ()  # all who must be there at a beginning, while nobody has a state
    excluded: tuple[str, ...] = ()  # members that are silent: what is decided is decided without them
    round: int = 0  # of the view, in which members say what they have
    note: str = ""  # what the driver knows beside it

    @property
    def sentence(self) -> str:
        """The reason, with the names of those for whom is waited, and what can be done."""
        match self.reason:
            case Reason.NO_STATE:
                waited = ", ".join(map(self._absence, self.missing))
                text = (
                    f"nobody has a state; waiting for {waited}: all who must be there at a beginning are "
                    f"{', '.join(self.needed)}; force() begins without"
                )
            case Reason.NO_QUORUM | Reason.JOINED if self.missing and not self.is_primary:
                text = f"{Reason.NO_QUORUM.value}; {self._votes_missing()}"
            case Reason.VIEW | Reason.ERA | Reason.SPOKEN | Reason.WITHOUT if self.missing:
                text = f"{self.reason.value}; not heard yet: {', '.join(self.missing)}"
            case _:
                text = self.reason.value
        silent = f"; silent, and left out: {', '.join(self.excluded)}" if self.excluded else ""
        return f"{text}{silent}{f'; {self.note}' if self.note else ''}"

    def _votes_missing(self) -> str:
        """Tell whose votes there are not, and what can be done."""
        here = [name for name in self.missing if name in self.members]
        away = [name for name in self.missing if name not in self.members]
        parts = [f"here without a vote: {', '.join(here)}"] if here else []
        parts += [f"waiting for {', '.join(away)}"] if away else []
        parts.append(f"force() goes on {'without, and gives up what only they have' if away else 'with those here'}")
        return "; ".join(parts)

    def _absence(self, name: str) -> str:
        return f"{name} (it is here, but not in its first life)" if name in self.members else name


@dataclass(frozen=True, slots=True)
class GoOn:
    """Call `go_on` when others have had their turn: there is more to apply than should be applied at once, or (of the
    desk) there are commands to submit, with those that come in the same turn."""


@dataclass(frozen=True, slots=True)
class Spoilt:
    """The application raised this while it changed the copy, which may be anything now: it counts as none, for good.
    Leave the group. What waits has no answer, and may have been applied by others."""

    error: Exception


class Note(NamedTuple):
    """What a journal is to remember: what the replica stands for, or commands that have their places (`journal.py`)."""

    kind: int
    body: bytes


Effect = Send | Confirm | Refuse | Fetch | StopFetching | Freeze | Release | Changed | GoOn | Spoilt


# What the desk asks its driver for, besides


@dataclass(frozen=True, slots=True)
class Answered:
    """The commands of a batch are confirmed; or, of a call that only waits for that, everything that was confirmed
    anywhere before it is in the copy here."""

    tickets: Sequence[Ticket | None]  # who waits for each; None: nobody
    first: int  # position of the first of them; of such a call, of the last command in the copy
    results: Sequence[bytes]


@dataclass(frozen=True, slots=True)
class Refusal:
    tickets: Sequence[Ticket]
    why: Why


@dataclass(frozen=True, slots=True)
class Abandoned:
    """The replica has ended, and these calls will have no answer."""

    sent: Sequence[Ticket]  # of commands that may have been applied, or may be yet
    others: Sequence[Ticket]


@dataclass(frozen=True, slots=True)
class Dial:
    """Connect to this donor, instead of any other, and send it the request (`arrival.py`)."""

    donor: Donor
    request: bytes


@dataclass(frozen=True, slots=True)
class HangUp:
    """Give up the connection to a donor, if there is one."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a transfer has come."""

    donor: str
    pieces: int
    size: int  # bytes so far
    is_done: bool = False
    trouble: str = ""  # why the donor before was given up


@dataclass(frozen=True, slots=True)
class Write:
    """Append these to the journal, in one write, and call `Desk.written` with its number when they are safe."""

    number: int
    notes: tuple[Note, ...]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Write a new file of the journal that begins with this picture, and call `Desk.pictured` when it counts. Other
    writes go on meanwhile. With a number it takes the place of everything that is there: it is answered as a `Write`
    with that number is, and then so."""

    stance: bytes
    frozen: Freeze
    number: int = 0


DeskEffect = (
    Answered
    | Refusal
    | Abandoned
    | Dial
    | HangUp
    | Progress
    | Freeze
    | Release
    | Changed
    | GoOn
    | Spoilt
    | Write
    | Snapshot
)
