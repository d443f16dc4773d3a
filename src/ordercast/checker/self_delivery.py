"""Self delivery: a process delivers what it submitted, unless it fails (Theorem 4.7).

A crashed process owes nothing. One that left in order must have delivered all its own before. One that still runs at
the end of a complete record owes all, provided that the network had healed; before that, waiting is no fault.
"""

from __future__ import annotations

from collections.abc import Iterator

from ordercast.checker.base import Checker
from ordercast.checker.life import Life
from ordercast.checker.verdict import Witness
from ordercast.model.promises import Promise
from ordercast.model.service import Service


class SelfDelivery(Checker):
    promise = Promise.SELF_DELIVERY
    rule = "every process that did not crash delivered its own messages"

    def violations(self) -> Iterator[Witness]:
        for life in self.history.lives():
            if life.departed:
                for number in self._missing(life):
                    yield self.witness("its submitter left without delivering it", life.process, number)
        if self.history.is_complete and self.history.healed is not None:
            for life in self.history.running():
                for number in self._missing(life):
                    yield self.witness("never delivered by its submitter, which still runs", life.process, number)

    def doubts(self) -> Iterator[Witness]:
        if not self.history.is_complete:
            yield from self.cut_short()
        elif self.history.healed is None:
            for life in self.history.running():
                for number in self._missing(life):
                    yield self.witness(
                        "not delivered by its submitter, but the network never healed", life.process, number
                    )

    def _missing(self, life: Life) -> list[int]:
        if life.delivered.issuperset(life.submitted):
            return []
        missing = [number for number in life.submitted if number not in life.delivered]
        return self.history.at_least(Service.RELIABLE, missing)
