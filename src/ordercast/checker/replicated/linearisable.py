"""Linearisability, within one sequence of commands: there is one order, so it is enough that this order respects real
time, and that results and what readers saw are those of doing one operation after the other.
"""

from __future__ import annotations

from collections.abc import Iterator

from ordercast.checker.replicated.base import ReplicaChecker
from ordercast.checker.replicated.matters import ReplicaMatter
from ordercast.checker.replicated.sequential import Caller, Model
from ordercast.checker.replicated.sequential_owned import model_of
from ordercast.checker.verdict import Witness
from ordercast.model.lineage import Lineage
from ordercast.model.promises import ReplicaPromise
from ordercast.trace.replica_records import Applied


class Linearisable(ReplicaChecker):
    promise = ReplicaPromise.LINEARISABLE
    rule = "the order of commands respects real time, results and reads are those of a sequential structure"
    matter = ReplicaMatter.APPLIED

    def violations(self) -> Iterator[Witness]:
        for lineage in self.history.lineages():
            yield from self._results(lineage)
            yield from self._real_time(lineage)
        for (where, position), looks in self.history.looks.items():
            if where is not None and position and (where, position) not in self.history.reference:
                yield self.witness(f"read a state of {position} commands, which nobody applied", looks[0].life)

    def _results(self, lineage: Lineage) -> Iterator[Witness]:
        model = model_of(next(iter(self.history.lives.values())).started.structure)
        yield from self._reads(model, lineage, 0)
        for step in self.history.sequence(lineage):
            caller = Caller(self.history.lives[step.caller].started.name, step.caller)
            expected = model.result(step.operation, caller, step.position)
            result = self._returned(step, lineage)
            if result != expected:
                what = f"{step.operation!r} in place {step.position} gave {result!r}, it should give {expected!r}"
                yield self.witness(what, step.caller)
            yield from self._reads(model, lineage, step.position)

    def _returned(self, step: Applied, lineage: Lineage) -> bytes:
        """What its caller was told, if it was."""
        returned = self.history.returns.get((step.caller, step.request))
        return step.result if returned is None or returned.lineage != lineage else returned.result

    def _reads(self, model: Model, lineage: Lineage, position: int) -> Iterator[Witness]:
        for look in self.history.looks.get((lineage, position), ()):
            expected = model.answer(look.question)
            if look.answer != expected:
                what = f"read {look.answer!r} after place {position}, it should be {expected!r}"
                yield self.witness(what, look.life)

    def _real_time(self, lineage: Lineage) -> Iterator[Witness]:
        """Whatever had returned before a call has a lower place. A read is behind the last place that it sees, and may
        share that with other reads."""
        done = []
        for call, returned in self.history.returns.items():
            if returned.lineage == lineage:
                called = self.history.calls[call]
                done.append((called.at, returned.at, 2 * returned.position + (not called.operation), call))
        by_return = sorted(done, key=lambda operation: operation[1])
        highest, next_one = 0, 0
        for called_at, _, place, (life, request) in sorted(done):
            while next_one < len(by_return) and by_return[next_one][1] < called_at:
                highest = max(highest, by_return[next_one][2])
                next_one += 1
            if place < highest or (place == highest and place % 2 == 0):
                what = (
                    f"request {request} has place {place // 2}, but place {highest // 2} had returned before its call"
                )
                yield self.witness(what, life)
