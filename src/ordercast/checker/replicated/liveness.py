"""What must happen in the end, when the network has healed and all has settled: if those who remember are a quorum,
there is a primary component, all who are in the group hold its state, and every request has been answered.

Those remember who held the state in a primary component and have missed nothing since. With weights they must have
more than half of them. Without, it is demanded only when nobody is missing who held the state in the last component or
was to hold it in one that was attempted since: whether fewer are enough is for the replicas to know.
"""

from __future__ import annotations

from collections.abc import Iterator

from ordercast.checker.replicated.base import ReplicaChecker
from ordercast.checker.replicated.history import ReplicaLife
from ordercast.checker.verdict import Witness
from ordercast.model.promises import ReplicaPromise


class Liveness(ReplicaChecker):
    promise = ReplicaPromise.LIVENESS
    rule = "a quorum that was there in the end went on, and all were loaded and answered"
    is_liveness = True

    def violations(self) -> Iterator[Witness]:
        present = [life for life in self.history.lives.values() if life.known is not None]
        if not present or not (self._is_quorum(present) or self._may_begin(present)):
            return
        first = present[0].known
        for life in present:
            known = life.known
            assert known is not None and first is not None
            name = life.started.life
            if not known.is_primary:
                yield self.witness("is in no primary component, though there is a quorum", name)
            elif not known.is_holder:
                yield self.witness("was not loaded", name)
            elif (known.count, known.chain) != (first.count, first.chain):
                yield self.witness(f"has {known.count} commands, {present[0]} has {first.count}", name)
            if known.waiting:
                yield self.witness(f"{known.waiting} requests have no answer", name)
            if known.pictures:
                yield self.witness(f"keeps {known.pictures} pictures for nobody", name)

    def _is_quorum(self, present: list[ReplicaLife]) -> bool:
        weights = dict(present[0].started.weights)
        if weights:
            remembered = sum(weights.get(life.started.name, 0) for life in present if life.remembers)
            return 2 * remembered > sum(weights.values())
        live = [decision.term for decision, _ in self.history.decisions if decision.term is not None]
        needed = [life for term, life in self.history.electors if live and term >= max(live)]
        return bool(needed) and all(life.known is not None and life.remembers for life in needed)

    def _may_begin(self, present: list[ReplicaLife]) -> bool:
        """Nobody has a state, nobody ever had one, and all are here who must be."""
        names = {life.started.name for life in present}
        return not self.history.electors and names.issuperset(present[0].started.founders) and self._are_first(present)

    def _are_first(self, present: list[ReplicaLife]) -> bool:
        """With weights a beginning is possible in any life."""
        founders = present[0].started.founders
        lives = [life for life in self.history.lives.values() if life.started.name in founders]
        return bool(present[0].started.weights) or len(lives) == len(founders)
