"""Virtual synchrony: those who go together from one configuration to the next have delivered the same in the first
(Theorem 4.10). Both steps count: regular to transitional, and transitional to regular.
Judged are messages that asked for reliable or better."""

from __future__ import annotations

from collections.abc import Iterator

from ordercast.checker.base import Checker
from ordercast.checker.life import Life
from ordercast.checker.matters import Matter
from ordercast.checker.verdict import Witness
from ordercast.model.configuration import Configuration
from ordercast.model.ids import ConfigurationId, process_text
from ordercast.model.promises import Promise
from ordercast.model.service import Service


class VirtualSynchrony(Checker):
    promise = Promise.VIRTUAL_SYNCHRONY
    rule = "all who went together from one configuration to the next had delivered the same messages in the first"
    matter = Matter.COMPANY

    def violations(self) -> Iterator[Witness]:
        references: dict[tuple[ConfigurationId, ConfigurationId], tuple[Life, list[int]]] = {}
        for life in self.history.lives():
            for left, entered in life.moves():
                numbers = self.history.at_least(Service.RELIABLE, left.numbers)
                other, reference = references.setdefault((left.id, entered.id), (life, numbers))
                if numbers != reference:
                    yield from self._difference(left.id, (life, numbers), (other, reference))

    def _difference(
        self, view: ConfigurationId, first: tuple[Life, list[int]], second: tuple[Life, list[int]]
    ) -> Iterator[Witness]:
        for (life, numbers), (other, others) in ((first, second), (second, first)):
            for number in sorted(set(numbers).difference(others)):
                what = f"not delivered by {process_text(other.process)}, which went on to the same configuration"
                yield self.witness(what, life.process, number, view)

    def doubts(self) -> Iterator[Witness]:
        """In a record that was cut short: one who may yet follow those who went on."""
        if self.history.is_complete:
            return
        onward: dict[ConfigurationId, list[Configuration]] = {}
        for life in self.history.lives():
            for left, entered in life.moves():
                if entered.view is not None:
                    onward.setdefault(left.id, []).append(entered.view)
        for life in self.history.running():
            here = life.stays[-1].id
            if any(life.process in view.members for view in onward.get(here, ())):
                yield self.witness("others went on from here, and the record was cut short", life.process, view=here)
