"""One view of the group: what its members said, what was decided of it, and who has the state by now."""

from __future__ import annotations

from dataclasses import dataclass, field

from ordercast.model.events import View
from ordercast.replicated.decision import Decision, life_of
from ordercast.replicated.effects import Point
from ordercast.replicated.quorum import Electorate, Life
from ordercast.replicated.track import Held, Rank
from ordercast.replicated.wire import Loaded, State


@dataclass(slots=True)
class Component:
    view: View
    states: dict[str, State] = field(default_factory=dict)
    pending: list[Held] = field(default_factory=list)  # commands that came before the decision
    decision: Decision | None = None
    holders: set[str] = field(default_factory=set)  # since the decision, those who were loaded included
    has_best: bool = False  # the state of this replica is the component's
    is_primary: bool = False
    step: int = 0  # how many were loaded since the decision
    is_signalled: bool = False

    @property
    def is_complete(self) -> bool:
        return len(self.states) == len(self.view.members)

    @property
    def is_settled(self) -> bool:
        """It is decided, and nobody can be loaded in it any more: it stays what it is."""
        return self.decision is not None and len(self.holders) in (0, len(self.view.members))

    @property
    def is_live(self) -> bool:
        """Commands are applied at delivery."""
        return self.is_primary and not self.is_signalled

    def add(self, sender: str, state: State) -> None:
        if sender in self.view.members and state.view == self.view.id:
            self.states.setdefault(sender, state)

    def admits(self, sender: str, loaded: Loaded) -> bool:
        """It is news of this view: one who lacked the state has it."""
        if self.decision is None or loaded.view != self.view.id or sender in self.holders or sender not in self.states:
            return False
        return self.life(sender) == Life(sender, loaded.life, loaded.stint)

    def settle(self, decision: Decision) -> None:
        self.decision = decision
        self.holders = set(decision.holders)
        self.is_primary = decision.is_primary

    def electorate(self) -> Electorate:
        """Those who hold the state at this point."""
        lives = tuple(self.life(name) for name in sorted(self.holders))
        return Electorate(Point(self.view.id, self.step), lives)

    def voters(self) -> list[Life]:
        """Among the holders: who came with a vote keeps it, unless that was about another state altogether."""
        best = None if self.decision is None else self.decision.best
        return [self.life(name) for name in sorted(self.holders) if best is not None and self._votes(name, best)]

    def _votes(self, name: str, best: Rank) -> bool:
        state = self.states[name]
        return state.voter and state.rank is not None and state.rank.lineage == best.lineage

    def life(self, name: str) -> Life:
        return life_of(name, self.states[name])
