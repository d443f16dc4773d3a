"""Sides: replicas that went on apart and have met, each side with a sequence of commands of its own. Pure.

Under `EverySide` every component applies commands. When several meet in a view, one replica, the uniter, fetches a
picture of every other side, and says in the order which of them are to be united: all but those whose commands another
one has too. If that leaves one, its state is the state of the view. If it leaves several, the uniter asks the
application for a state that unites them, and everybody else fetches that. Such work is in `uniting.py`; here is what
sides are, and which commands they have in common.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

from ordercast.model.lineage import Lineage, Term
from ordercast.replicated.effects import Point
from ordercast.replicated.sessions import Session, Sessions
from ordercast.replicated.track import DIGEST_SIZE, Rank, Sequenced


class Side(NamedTuple):
    """The replicas that have one sequence."""

    number: int  # from 1, the same at all members of the view
    sequence: Sequenced
    members: tuple[str, ...]  # sorted


def sides_of(sequences: dict[str, Sequenced]) -> tuple[Side, ...]:
    """Sort replicas by the sequence that each with a state has. The longest first. Who has applied nothing is no side,
    unless nobody has."""
    members: dict[Sequenced, list[str]] = {}
    for name, sequence in sorted(sequences.items()):
        members.setdefault(sequence, []).append(name)
    found = sorted(members, reverse=True)
    if len(found) > 1 and not found[-1].length:
        found.pop()
    return tuple(Side(number, sequence, tuple(members[sequence])) for number, sequence in enumerate(found, 1))


def side_of(name: str, sides: Sequence[Side]) -> Side | None:
    return next((side for side in sides if name in side.members), None)


def uniter_of(sides: Sequence[Side]) -> str:
    return sides[0].members[0]


def united_rank(term: Term, sides: Sequence[Side]) -> Rank:
    """Return the rank of the state that unites these. A digest that nobody else has: it depends on the term, too."""
    if len(sides) == 1:
        return Rank(Lineage(term), term, *sides[0].sequence)
    digest = hashlib.blake2b(repr(term).encode(), digest_size=DIGEST_SIZE)
    for side in sides:
        digest.update(side.sequence.digest)
    return Rank(Lineage(term), term, max(side.sequence.length for side in sides), digest.digest())


def picture_point(term: Term, side: Side) -> Point:
    """Under which the picture of a side is served."""
    return Point(term, side.number)


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
    """Unite sessions: of what was applied on several sides the first one's result is remembered."""
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
