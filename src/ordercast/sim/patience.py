"""Patience of one simulated replica with those who do not say what they have: what a live one does with a timer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ordercast.replicated.facts import Round
    from ordercast.sim.replica import Replica


@dataclass(slots=True, eq=False)
class Patience:
    replica: Replica
    round: Round | None = None  # that is looked after

    def look(self) -> None:
        """After everything that happens: a round that has just begun is looked after."""
        waited_for = self.replica.core.round
        if waited_for is not None and waited_for != self.round:
            self._wait(waited_for)

    def _wait(self, waited_for: Round) -> None:
        self.round = waited_for
        self.replica.replicas.schedule(self.replica.replicas.patience_ns, lambda: self._is_over(waited_for))

    def _is_over(self, waited_for: Round) -> None:
        replica = self.replica
        if replica.is_dead or waited_for != replica.core.round or waited_for != self.round:
            return
        if not replica.is_hung:
            replica.lose_patience()
        self._wait(waited_for)
