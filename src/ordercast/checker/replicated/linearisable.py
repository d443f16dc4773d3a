"""Linearisability, within one sequence of commands: there is one order, so it is enough that this order respects real
time, and that the results are those of doing one operation after the other.

A read has no place of its own: it comes after as many commands as it saw, and before the next.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from ordercast.checker.replicated.base import ReplicaChecker
from ordercast.checker.replicated.sequential import SequentialDictionary
from ordercast.checker.verdict import Witness
from ordercast.model.events import ViewId
from ordercast.model.promises import ReplicaPromise
from ordercast.trace.replica_records import Read

Spot = tuple[int, bool]  # after so many commands, the own one included; and whether it is a read


class Linearisable(ReplicaChecker):
    promise = ReplicaPromise.LINEARISABLE
    rule = "the order of commands respects real time, and results are those of a sequential dictionary"

    def violations(self) -> Iterator[Witness]:
        for lineage in self.history.lineages():
            yield from self._results(lineage)
            yield from self._real_time(lineage)

    def _results(self, lineage: ViewId) -> Iterator[Witness]:
        dictionary = SequentialDictionary()
        reads: dict[int, list[Read]] = defaultdict(list)
        for read in self.history.reads:
            if read.lineage == lineage:
                reads[read.count].append(read)
        yield from self._seen(reads.pop(0, []), dictionary)
        for step in self.history.sequence(lineage):
            expected = dictionary.result(step.operation)
            returned = self.history.returns.get((step.caller, step.request))
            result = step.result if returned is None or returned.lineage != lineage else returned.result
            if result != expected:
                what = f"{step.operation!r} in place {step.position} gave {result!r}, it should give {expected!r}"
                yield self.witness(what, step.caller)
            if step.position in reads:
                yield from self._seen(reads.pop(step.position), dictionary)
        for read in (read for left in reads.values() for read in left):
            yield self.witness(f"{read.operation!r} saw {read.count} commands, which nobody applied", read.life)

    def _seen(self, reads: list[Read], dictionary: SequentialDictionary) -> Iterator[Witness]:
        for read in reads:
            expected = dictionary.result(read.operation)
            if read.result != expected:
                what = f"{read.operation!r} after place {read.count} gave {read.result!r}, it should give {expected!r}"
                yield self.witness(what, read.life)

    def _real_time(self, lineage: ViewId) -> Iterator[Witness]:
        """Whatever had returned before a call comes before it."""
        done: list[tuple[int, int, Spot, int, str]] = [
            (self.history.calls[call].at, returned.at, (returned.position, False), call[0], f"request {call[1]}")
            for call, returned in self.history.returns.items()
            if returned.lineage == lineage
        ]
        done += [
            (read.called_at, read.at, (read.count, True), read.life, f"the read {read.operation!r}")
            for read in self.history.reads
            if read.lineage == lineage
        ]
        by_return = sorted(done, key=lambda operation: operation[1])
        highest, next_one = (0, False), 0
        for called, _, spot, life, name in sorted(done):
            while next_one < len(by_return) and by_return[next_one][1] < called:
                highest = max(highest, by_return[next_one][2])
                next_one += 1
            is_read = spot[1]
            if spot < highest or (spot == highest and not is_read):
                what = f"{name} has place {spot[0]}, but place {highest[0]} had returned before its call"
                yield self.witness(what, life)
