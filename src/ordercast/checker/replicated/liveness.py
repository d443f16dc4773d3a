"""What must happen in the end, when the network has healed and all has settled: if those who remember are a quorum,
there is a primary component, all who are in the group hold its state, every request has been answered, and nothing in
the state belongs to one who is gone.

With weights they must have more than half of them. Without, they must win every electorate that those who are here can
know of: that of the last component, and those of attempts of which nobody here can say that they failed. When they
know of no component at all, there must be a beginning if all are here who are needed for one; without weights, in their
first lives.
"""

from __future__ import annotations

from collections.abc import Iterator

from ordercast.checker.replicated.base import ReplicaChecker
from ordercast.checker.replicated.history import ReplicaLife
from ordercast.checker.replicated.matters import ReplicaMatter
from ordercast.checker.verdict import Witness
from ordercast.model.promises import ReplicaPromise


class Liveness(ReplicaChecker):
    promise = ReplicaPromise.LIVENESS
    rule = "a quorum that was there in the end went on, and all were loaded and answered"
    matter = ReplicaMatter.SURVIVOR
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
            if known.ghosts:
                yield self.witness(f"keeps what {known.ghosts} had who are gone", name)

    def _is_quorum(self, present: list[ReplicaLife]) -> bool:
        weights = dict(present[0].started.weights)
        if self.history.is_durable:
            return self._is_durable_quorum(present, weights)
        if weights:
            remembered = sum(weights.get(life.started.name, 0) for life in present if life.remembers)
            return 2 * remembered > sum(weights.values())
        electorates = self.history.electorates
        voters = {electorates.stint(life.started.life) for life in present if life.remembers}
        needed = electorates.of(life.started.life for life in present)
        return bool(needed) and all(electorate.is_won_by(voters) for electorate in needed)

    def _is_durable_quorum(self, present: list[ReplicaLife], weights: dict[str, int]) -> bool:
        """When anything was applied, a quorum has journals that know of it; and every journal that ever was in a
        primary component has a voice."""
        elected = self.history.elected
        voices = {
            life.started.name for life in present if life.memory and elected.get(life.started.name) == life.memory
        }
        have_most = 2 * sum(weights.get(name, 0) for name in voices) > sum(weights.values())
        return have_most and bool(self.history.reference)

    def _may_begin(self, present: list[ReplicaLife]) -> bool:
        names = {life.started.name for life in present}
        if self.history.is_durable:
            has_all = names.issuperset(present[0].started.founders)
            return has_all and not self.history.reference and not self._have_lost_journals(present)
        was_begun = bool(self.history.electorates.of(life.started.life for life in present))
        if was_begun or not names.issuperset(present[0].started.founders):
            return False
        return bool(present[0].started.weights) or self._are_first(present[0].started.founders)

    def _have_lost_journals(self, present: list[ReplicaLife]) -> bool:
        """Some held the state in a primary component with another journal than they have now: what that one knew nobody
        can say, though nothing was applied."""
        elected = self.history.elected
        return any(elected.get(life.started.name, life.memory) != life.memory for life in present)

    def _are_first(self, founders: tuple[str, ...]) -> bool:
        lives = [life for life in self.history.lives.values() if life.started.name in founders]
        return len(lives) == len(founders)
