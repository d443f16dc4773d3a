"""Linearisability, within one sequence of commands: there is one order, so it is enough that this order respects real
time, and that the results are those of doing one operation after the other.
"""

from __future__ import annotations

from collections.abc import Iterator

from ordercast.checker.replicated.base import ReplicaChecker
from ordercast.checker.replicated.sequential import SequentialDictionary
from ordercast.checker.verdict import Witness
from ordercast.model.lineage import Lineage
from ordercast.model.promises import ReplicaPromise


class Linearisable(ReplicaChecker):
    promise = ReplicaPromise.LINEARISABLE
    rule = "the order of commands respects real time, and results are those of a sequential dictionary"

    def violations(self) -> Iterator[Witness]:
        for lineage in self.history.lineages():
            yield from self._results(lineage)
            yield from self._real_time(lineage)

    def _results(self, lineage: Lineage) -> Iterator[Witness]:
        dictionary = SequentialDictionary()
        for step in self.history.sequence(lineage):
            expected = dictionary.result(step.operation)
            returned = self.history.returns.get((step.caller, step.request))
            result = step.result if returned is None or returned.lineage != lineage else returned.result
            if result != expected:
                what = f"{step.operation!r} in place {step.position} gave {result!r}, it should give {expected!r}"
                yield self.witness(what, step.caller)

    def _real_time(self, lineage: Lineage) -> Iterator[Witness]:
        """Whatever had returned before a call has a lower place."""
        done = [
            (self.history.calls[call].at, returned.at, returned.position, call)
            for call, returned in self.history.returns.items()
            if returned.lineage == lineage
        ]
        by_return = sorted(done, key=lambda operation: operation[1])
        highest, next_one = 0, 0
        for called, _, position, (life, request) in sorted(done):
            while next_one < len(by_return) and by_return[next_one][1] < called:
                highest = max(highest, by_return[next_one][2])
                next_one += 1
            if position <= highest:
                what = f"request {request} has place {position}, but place {highest} had returned before its call"
                yield self.witness(what, life)
