"""Self delivery: a process delivers what it submitted, unless it fails (Theorem 4.7).

A crashed process owes nothing, nor is waiting a fault while the network is not whole. But one that left in order must
have delivered all its own before; one that still runs at the end of a complete record with a healed network owes all;
and one that installs a later configuration than that in which others delivered its message, or one past its position
where views are not shared, can never deliver it any more.
"""

from __future__ import annotations

from collections.abc import Iterator

from ordercast.checker.base import Checker
from ordercast.checker.life import Life
from ordercast.checker.matters import Matter
from ordercast.checker.verdict import Witness
from ordercast.model.promises import Promise
from ordercast.model.service import Service


class SelfDelivery(Checker):
    promise = Promise.SELF_DELIVERY
    rule = "every process that did not crash delivered its own messages"
    matter = Matter.SENT

    def violations(self) -> Iterator[Witness]:
        for life in self.history.lives():
            for number in self._missing(life):
                what = self._broken(life, number)
                if what is not None:
                    yield self.witness(what, life.process, number)

    def _broken(self, life: Life, number: int) -> str | None:
        """Why this process should have delivered it, if it should."""
        home = self.history.placements().homes.get(number)
        is_bound = home is not None and not self.history.is_by_groups  # else it may be ordered again
        passed = self.history.passed(life, number) if is_bound else None
        if passed is not None:
            return f"delivered in {home}, but its submitter went on to view {passed} without delivering it"
        if life.departed:
            return "its submitter left without delivering it"
        if life.is_running and self.history.is_complete and self.history.healed is not None:
            return "never delivered by its submitter, which still runs"
        return None

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
        return self.owed.among(life, self.history.at_least(Service.RELIABLE, missing))
