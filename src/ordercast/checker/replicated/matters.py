"""What a history of replicas must contain before one of their judges has anything to judge."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ordercast.checker.replicated.history import ReplicaHistory

LOCKS = ("lock", "leader", "timed-lock")  # structures with a holder


class ReplicaMatter(Enum):
    """The value says what is missing where there is none."""

    APPLIED = "no command was applied"
    CONFIRMED = "no command was confirmed"
    REFUSED = "no command was refused"
    DECIDED = "no primary component was formed"
    HELD = "no lock or leader had a holder that anybody saw"
    BELIEF = "no replica called itself current"
    SURVIVOR = "no replica was left at the end"


def has_replica_matter(history: ReplicaHistory, matter: ReplicaMatter) -> bool:
    return _LOOKS[matter](history)


def _is_held(history: ReplicaHistory) -> bool:
    first = next(iter(history.lives.values()), None)
    if first is None or first.started.structure not in LOCKS:
        return False
    return any(look.answer for (lineage, place), looks in history.looks.items() if lineage and place for look in looks)


_LOOKS: Mapping[ReplicaMatter, Callable[[ReplicaHistory], bool]] = {
    ReplicaMatter.APPLIED: lambda history: bool(history.reference),
    ReplicaMatter.CONFIRMED: lambda history: any(history.calls[call].operation for call in history.returns),
    ReplicaMatter.REFUSED: lambda history: bool(history.refusals),
    ReplicaMatter.DECIDED: lambda history: bool(history.decisions),
    ReplicaMatter.HELD: _is_held,
    ReplicaMatter.BELIEF: lambda history: bool(history.claims or history.cut_beliefs),
    ReplicaMatter.SURVIVOR: lambda history: any(life.known is not None for life in history.lives.values()),
}
