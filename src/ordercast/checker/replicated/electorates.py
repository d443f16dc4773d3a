"""Whose majority is needed for a primary component, when no weights are configured: as every replica could know it.

At a view all say which primary component they know to have been the last, and which were attempted after it. When all
have been heard but those who are excluded, everybody knows what any of them knew. An attempt has failed when somebody
who was to hold the state in it does not know of it. Whoever forms a component has its holders as the last ones from
then on; whoever attempts one adds them. This is the rule of dynamic voting with attempts, followed here from the
records alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ordercast.model.events import ViewId
from ordercast.model.lineage import Term
from ordercast.trace.replica_records import ComponentChanged, Stage

Round = tuple[ViewId, int]  # of a view, in which its members say what they know


class Stint(NamedTuple):
    """A life, as far as it has missed nothing."""

    life: int
    cuts: int  # how often it had


class Electorate(NamedTuple):
    term: Term
    size: int  # of those who hold the state in a view there are ever more
    holders: tuple[Stint, ...]  # by name

    def is_won_by(self, voters: Collection[Stint]) -> bool:
        """More than half of them, or half with the first."""
        votes = sum(holder in voters for holder in self.holders)
        return 2 * votes > self.size or (2 * votes == self.size and self.holders[0] in voters)


class Known(NamedTuple):
    """What one replica knows."""

    last: Electorate | None = None  # that was formed for certain
    attempts: frozenset[Electorate] = frozenset()  # that may have been, after it

    def all(self) -> list[Electorate]:
        return [*([] if self.last is None else [self.last]), *sorted(self.attempts)]


@dataclass(slots=True)
class Electorates:
    cuts: dict[int, int] = field(default_factory=dict)  # by life
    known: dict[int, Known] = field(default_factory=dict)
    _said: dict[Round, dict[str, tuple[Stint, Known]]] = field(default_factory=dict)  # in each round, by name

    def stint(self, life: int) -> Stint:
        return Stint(life, self.cuts.get(life, 0))

    def cut(self, life: int) -> None:
        self.cuts[life] = self.cuts.get(life, 0) + 1

    def changed(self, event: ComponentChanged, name: str) -> None:
        if event.view is None:
            return
        said = self._said.setdefault((event.view, event.round), {})
        if event.stage is Stage.VIEW:
            said[name] = self.stint(event.life), self.known.get(event.life, Known())
        elif event.stage is Stage.DECISION:
            self.known[event.life] = together(said[member] for member in event.members if member not in event.excluded)
        if event.elects and event.stage in (Stage.DECISION, Stage.LOADED):
            self._elect(event, said)

    def _elect(self, event: ComponentChanged, said: Mapping[str, tuple[Stint, Known]]) -> None:
        assert event.view is not None
        holders = tuple(said[holder][0] for holder in sorted(event.holders))
        electorate = Electorate(Term(event.era, event.view), len(holders), holders)
        known = self.known[event.life]
        attempt = Known(known.last, known.attempts | {electorate})
        self.known[event.life] = Known(electorate) if event.is_primary else attempt

    def of(self, lives: Iterable[int]) -> list[Electorate]:
        """All of which these must win, when they are in one view."""
        return together((self.stint(life), self.known.get(life, Known())) for life in lives).all()


def together(words: Iterable[tuple[Stint, Known]]) -> Known:
    """What is known to all when everybody has said what it knows."""
    said = dict(words)
    last = max((known.last for known in said.values() if known.last is not None), default=None)
    attempts = {attempt for known in said.values() for attempt in known.attempts if last is None or attempt > last}
    failed = {
        attempt
        for attempt in attempts
        if any(attempt not in said[holder].attempts for holder in attempt.holders if holder in said)
    }
    return Known(last, frozenset(attempts - failed))
