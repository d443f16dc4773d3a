"""Sides: replicas that went on apart and have met, each side with a sequence of commands of its own. Pure.

Under `EverySide` every component applies commands. When several meet in a view, one replica, the uniter, fetches a
picture of every other side, and says in the order which of them are to be united: all but those whose commands another
one has too. If that leaves one, its state is the state of the view. If it leaves several, the uniter asks the
application for a state that unites them, and everybody else fetches that.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ordercast.model.errors import WireError
from ordercast.model.events import ViewId
from ordercast.model.lineage import Lineage
from ordercast.replicated.effects import Point
from ordercast.replicated.sessions import Session, Sessions
from ordercast.replicated.track import DIGEST_SIZE, Rank, Sequenced
from ordercast.replicated.wire import decode_preface


class Side(NamedTuple):
    """Those who have one sequence."""

    number: int  # from 1, the same at all members of the view
    sequence: Sequenced
    members: tuple[str, ...]  # sorted


class Fetched(NamedTuple):
    """A side as its picture tells it."""

    sessions: Sessions
    pieces: Iterable[bytes] | None  # None: the state that is here


def sides_of(sequences: dict[str, Sequenced]) -> tuple[Side, ...]:
    """Of each replica that has a state, its sequence. The longest first. Who has applied nothing is no side, unless
    nobody has."""
    members: dict[Sequenced, list[str]] = {}
    for name, sequence in sorted(sequences.items()):
        members.setdefault(sequence, []).append(name)
    found = sorted(members, reverse=True)
    if len(found) > 1 and not found[-1].length:
        found.pop()
    return tuple(Side(number, sequence, tuple(members[sequence])) for number, sequence in enumerate(found, 1))


def uniter_of(sides: Sequence[Side]) -> str:
    return sides[0].members[0]


def united_rank(view: ViewId, sides: Sequence[Side]) -> Rank:
    """Of the state that unites these. A digest that nobody else has: it depends on the view, too."""
    if len(sides) == 1:
        return Rank(Lineage(view), view, *sides[0].sequence)
    digest = hashlib.blake2b(repr(view).encode(), digest_size=DIGEST_SIZE)
    for side in sides:
        digest.update(side.sequence.digest)
    return Rank(Lineage(view), view, max(side.sequence.length for side in sides), digest.digest())


@dataclass(slots=True)
class Uniting:
    """What the uniter has of the sides so far: its own, and those that it fetched."""

    view: ViewId
    sides: Sequence[Side]
    fetched: dict[int, Fetched] = field(default_factory=dict)  # by number

    @property
    def wanted(self) -> Side | None:
        """The one to be fetched now."""
        return next((side for side in self.sides if side.number not in self.fetched), None)

    @property
    def point(self) -> Point | None:
        return None if self.wanted is None else picture_point(self.view, self.wanted)

    def have(self, side: Side, sessions: Sessions) -> None:
        """It is the one that is here."""
        self.fetched[side.number] = Fetched(sessions, None)

    def take(self, preface: bytes, pieces: Iterable[bytes]) -> None:
        """The picture of the side that is wanted. WireError when it is another."""
        wanted = self.wanted
        assert wanted is not None
        applied, digest, sessions, held = decode_preface(preface)
        if held or (applied, digest) != wanted.sequence:
            raise WireError(f"a picture of {applied} commands, one of {wanted.sequence.length} was wanted")
        self.fetched[wanted.number] = Fetched(sessions, pieces)

    def needed(self) -> list[Side]:
        """Those that are to be united. Of two that have the same commands, in two orders, the first is enough."""
        needed: list[Side] = []
        for side in reversed(self.sides):
            others = (*needed, *self.sides[: side.number - 1])
            mine = self.fetched[side.number].sessions
            if not any(covers(self.fetched[other.number].sessions, mine) for other in others):
                needed.append(side)
        return needed[::-1]

    def sessions(self, sides: Sequence[Side]) -> Sessions:
        return united_sessions([self.fetched[side.number].sessions for side in sides])


def picture_point(view: ViewId, side: Side) -> Point:
    """Under which the picture of a side is served."""
    return Point(view, side.number)


def covers(one: Sessions, other: Sessions) -> bool:
    """Everything that was applied in the other was applied in this one too. Sessions that were forgotten for others
    leave it in doubt: then it says no."""
    return not other.forgotten and all(
        (mine := one.by_life.get(life)) is not None and _covers(mine, session)
        for life, session in other.by_life.items()
    )


def _covers(one: Session, other: Session) -> bool:
    """Whose sender has an answer has that command in its own state, and so has every side that it belongs to."""
    return one.settled >= other.settled and all(
        request <= one.settled or request in one.outcomes for request in other.outcomes
    )


def united_sessions(parts: Sequence[Sessions]) -> Sessions:
    """Of what was applied on several sides the first one's result is remembered."""
    united = Sessions(forgotten=sum(part.forgotten for part in parts))
    for part in parts:
        for life, session in part.by_life.items():
            known = united.by_life.setdefault(life, Session())
            known.settled = max(known.settled, session.settled)
            known.outcomes = {**session.outcomes, **known.outcomes}
    for session in united.by_life.values():
        session.outcomes = {
            request: outcome for request, outcome in sorted(session.outcomes.items()) if request > session.settled
        }
    united.forget_old()
    return united
