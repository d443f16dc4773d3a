"""Which side of a partition may go on: pure rules, the same answer at everybody who asks the same.

A voter is a life of a replica that has been a holder in a primary view: it has forgotten nothing that it knew. Only
voters among those who have the best state count. A rule answers two questions: are these voters a quorum, and who of
these replicas, none of which has a state, begins.

`Majority` counts configured weights. `LastMajority` counts those who held the state in the last primary component
(dynamic linear voting: Jajodia and Mutchler, with the attempts of Yeger Lotem, Keidar and Dolev): a component that was
decided by some and perhaps not by others binds both, until it is known which it was.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from ordercast.model.arguments import given
from ordercast.model.errors import UsageError
from ordercast.replicated.effects import Point


class Life(NamedTuple):
    """One life of a replica, as far as it has seen everything: after a gap in its stream it counts as another."""

    name: str
    life: int
    stint: int


class Electorate(NamedTuple):
    """The members who held the state in a primary component, from this place in the order on."""

    point: Point
    lives: tuple[Life, ...]  # sorted

    def is_won_by(self, voters: Collection[Life]) -> bool:
        """More than half of it, or half with the first by name."""
        present = [life for life in self.lives if life in voters]
        if 2 * len(present) == len(self.lives):
            return present[:1] == list(self.lives[:1])
        return 2 * len(present) > len(self.lives)


class Rule(Protocol):
    @property
    def goes_on(self) -> bool:
        """Does every side of a partition go on, quorum or not? Then the rest is not asked."""
        ...

    def is_quorum(self, voters: Collection[Life], electorates: Sequence[Electorate]) -> bool:
        """`electorates`: of the last primary component that is known, and of those that may have been decided since."""
        ...

    def beginners(self, fresh: Mapping[str, bool]) -> Collection[str]:
        """Who of the members of a view, none of which has a state, begins with the empty one: all who must be here for
        that, and nobody if one of them is not. For each member, whether it is founding: in the first life that it ever
        had. Others fetch it like any other state: were they to begin, too, a beginning could come to count, or to be
        remembered, by those alone who need not be here when another one is made."""
        ...

    def needed(self) -> tuple[str, ...]:
        """All who must be here for a beginning, sorted."""
        ...

    def missing(self, fresh: Mapping[str, bool]) -> tuple[str, ...]:
        """Who of those is not here, or not as it must be, sorted."""
        ...

    def absent(self, voters: Collection[Life], electorates: Sequence[Electorate]) -> tuple[str, ...]:
        """Who has a voice and is not among these, sorted."""
        ...

    def weight(self, name: str) -> int:
        """How much its voice counts between states that have nothing in common."""
        ...


@dataclass(frozen=True)
class Majority:
    """More than half of the configured weights. To begin, all who have a weight above zero must be here, not only most
    of them: then nobody is elsewhere who might know more. The same holds after all have lost their memory, as in a
    power cut: one host that stays away keeps the others waiting for it, until an operator says `Replica.force()`."""

    weights: Mapping[str, int]  # by full name; who is not named has a copy, and no voice

    @property
    def goes_on(self) -> bool:
        return False

    def __post_init__(self) -> None:
        if not isinstance(self.weights, Mapping):
            raise UsageError('Majority takes the weight of each by full name, such as {"kv@n1": 1, "kv@n2": 1}')
        for name, weight in self.weights.items():
            given(weight, int, f"weight of {name}", "a whole number")
        if any(weight < 0 for weight in self.weights.values()) or not sum(self.weights.values()):
            raise UsageError("weights must not be negative, and some must be above zero")

    def is_quorum(self, voters: Collection[Life], electorates: Sequence[Electorate]) -> bool:
        names = {life.name for life in voters}
        return 2 * sum(self.weight(name) for name in sorted(names)) > sum(self.weights.values())

    def beginners(self, fresh: Mapping[str, bool]) -> Collection[str]:
        return () if self.missing(fresh) else self.needed()

    def needed(self) -> tuple[str, ...]:
        return tuple(sorted(name for name, weight in self.weights.items() if weight))

    def missing(self, fresh: Mapping[str, bool]) -> tuple[str, ...]:
        return tuple(name for name in self.needed() if name not in fresh)

    def absent(self, voters: Collection[Life], electorates: Sequence[Electorate]) -> tuple[str, ...]:
        names = {life.name for life in voters}
        return tuple(name for name in self.needed() if name not in names)

    def weight(self, name: str) -> int:
        return self.weights.get(name, 0)


@dataclass(frozen=True)
class LastMajority:
    """More than half of those who held the state in the last primary component, or half with the first by name. To
    begin, all founders must be here in their first lives: nobody can have begun without them."""

    founders: frozenset[str]  # full names

    @property
    def goes_on(self) -> bool:
        return False

    def __post_init__(self) -> None:
        if not self.founders:
            raise UsageError("name at least one founder: without one nobody would ever begin")

    def is_quorum(self, voters: Collection[Life], electorates: Sequence[Electorate]) -> bool:
        return bool(electorates) and all(electorate.is_won_by(voters) for electorate in electorates)

    def beginners(self, fresh: Mapping[str, bool]) -> Collection[str]:
        return () if self.missing(fresh) else self.founders

    def needed(self) -> tuple[str, ...]:
        return tuple(sorted(self.founders))

    def missing(self, fresh: Mapping[str, bool]) -> tuple[str, ...]:
        return tuple(name for name in self.needed() if not fresh.get(name, False))

    def absent(self, voters: Collection[Life], electorates: Sequence[Electorate]) -> tuple[str, ...]:
        return tuple(sorted({life.name for each in electorates for life in each.lives if life not in voters}))

    def weight(self, name: str) -> int:
        return 1


StateT = TypeVar("StateT")


@dataclass(frozen=True)
class Side(Generic[StateT]):
    """One of the sides that have met, for the application."""

    members: tuple[str, ...]  # who was on it, by full name
    commands: int  # how many were applied, since the beginning
    state: StateT  # the structure with its state
    is_here: bool  # it is the state of this replica


@dataclass(frozen=True)
class EverySide:
    """Every side of a partition goes on by itself. When sides meet that have both gone on, `on_merge` gets them and
    gives the structure with the state that all have from then on: one of theirs, changed or not, or another. It is
    called at one of the replicas, and the others fetch what it gave."""

    on_merge: Callable[[Sequence[Side[Any]]], Any]

    @property
    def goes_on(self) -> bool:
        return True

    def is_quorum(self, voters: Collection[Life], electorates: Sequence[Electorate]) -> bool:
        return True

    def beginners(self, fresh: Mapping[str, bool]) -> Collection[str]:
        return fresh.keys()

    def needed(self) -> tuple[str, ...]:
        return ()

    def missing(self, fresh: Mapping[str, bool]) -> tuple[str, ...]:
        return ()

    def absent(self, voters: Collection[Life], electorates: Sequence[Electorate]) -> tuple[str, ...]:
        return ()

    def weight(self, name: str) -> int:
        return 1


def mark_of(rule: Rule) -> int:
    """Return a number, 64 bits, that tells rules apart under which replicas of one state would decide otherwise; 0: it
    cannot be told. Founders matter at the beginning alone."""
    if not isinstance(rule, Majority):
        return {LastMajority: 1, EverySide: 2}.get(type(rule), 0)
    weights = sorted((name, weight) for name, weight in rule.weights.items() if weight)
    return int.from_bytes(hashlib.blake2b(repr(weights).encode(), digest_size=8).digest(), "big") | 1 << 63


def voices_of(rule: Rule) -> tuple[tuple[tuple[str, int], ...], tuple[str, ...]]:
    """The configured weights, and who must be there at a beginning."""
    weights = tuple(sorted(rule.weights.items())) if isinstance(rule, Majority) else ()
    return weights, rule.needed()
