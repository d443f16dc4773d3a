"""Nothing that was confirmed is lost, and there is one primary component at a time: confirmed sequences are one chain.

A primary component that was decided must have, from its first moment on, everything that was confirmed in those before
it. A sequence may begin anew only when nobody who has a voice has the old one: then it is lost for good, as when all
hosts of a cluster without disks lose their power. Where journals are kept it never may, after anything was confirmed.
"""

from __future__ import annotations

from collections.abc import Iterator

from ordercast.checker.replicated.base import ReplicaChecker
from ordercast.checker.replicated.matters import ReplicaMatter
from ordercast.checker.verdict import Witness
from ordercast.model.lineage import Lineage, Term
from ordercast.model.promises import ReplicaPromise
from ordercast.trace.replica_records import ComponentChanged


class Durability(ReplicaChecker):
    promise = ReplicaPromise.DURABILITY
    rule = "every primary component had what was confirmed in those before it"
    matter = ReplicaMatter.DECIDED

    def violations(self) -> Iterator[Witness]:
        confirmed = sorted(
            (self.history.terms[place], step.position, step.lineage)
            for step in self.history.returns.values()
            if (place := (step.lineage, step.position)) in self.history.terms
        )
        for decision, others in self.history.decisions:
            assert decision.term is not None
            lost = [
                position
                for term, position, lineage in confirmed
                if lineage == decision.lineage and term < decision.term and position > decision.count
            ]
            if lost:
                what = f"is in a primary component with {decision.count} commands, {max(lost)} were confirmed before it"
                yield self.witness(what, decision.life)
            for other in () if self.history.is_durable else others:
                if self._has_voice(other.started.name):
                    yield self.witness(f"began anew while {other} has another sequence", decision.life)

        for decision, lineage in self.history.anew:
            what = f"began anew although commands of {lineage} had been confirmed, and journals are kept"
            yield self.witness(what, decision.life)

    def _has_voice(self, name: str) -> bool:
        weights = dict(next(iter(self.history.lives.values())).started.weights)
        return not weights or bool(weights.get(name))


class OnePrimary(ReplicaChecker):
    promise = ReplicaPromise.ONE_PRIMARY
    rule = "commands were applied by one primary component after the other, each with most of the weights"
    matter = ReplicaMatter.DECIDED

    def violations(self) -> Iterator[Witness]:
        latest: dict[Lineage | None, tuple[Term, int]] = {}
        for (lineage, position), term in sorted(self.history.terms.items(), key=lambda item: item[0][1]):
            before, place = latest.get(lineage, (term, position))
            if term < before:
                life = self.history.reference[lineage, position].life
                yield self.witness(f"applied place {position} in an earlier view than others place {place}", life)
            latest[lineage] = max(before, term), position
        for decision, _ in self.history.decisions:
            if not self._have_most(decision):
                holders = ", ".join(decision.holders)
                yield self.witness(
                    f"is in a primary component of {holders}, who have not most of the weights", decision.life
                )

    def _have_most(self, decision: ComponentChanged) -> bool:
        """Where weights are configured, unless an operator has forced it: then it has a branch of its own."""
        weights = dict(self.history.lives[decision.life].started.weights)
        if not weights or (decision.lineage is not None and decision.lineage.side):
            return True
        return 2 * sum(weights.get(name, 0) for name in decision.holders) > sum(weights.values())
