"""Virtual synchrony: those who go together from one configuration to the next have delivered the same in the first
(Theorem 4.10). Both steps count: regular to transitional, and transitional to regular.
Judged are messages that asked for reliable or better. Services that the engine delivers early are judged over a regular
configuration and the transitional one that follows it together: a message may come before the change here and after it
there. So is everything where the order is one among those who share groups: a message of another group may hold back
here what a companion has delivered. What was ordered again a process may have delivered in an earlier one."""

from __future__ import annotations

from collections.abc import Iterator

from ordercast.checker.base import Checker
from ordercast.checker.life import Life, Stay
from ordercast.checker.matters import Matter
from ordercast.checker.verdict import Witness
from ordercast.model.configuration import Configuration
from ordercast.model.ids import NO_CONFIGURATION, ConfigurationId, process_text
from ordercast.model.promises import Promise
from ordercast.model.service import Service


class VirtualSynchrony(Checker):
    promise = Promise.VIRTUAL_SYNCHRONY
    rule = "all who went together from one configuration to the next had delivered the same messages in the first"
    matter = Matter.COMPANY

    def violations(self) -> Iterator[Witness]:
        references: dict[tuple[ConfigurationId, ...], tuple[Life, list[int]]] = {}
        for life in self.history.lives():
            for step, numbers in self._steps(life):
                other, reference = references.setdefault(step, (life, numbers))
                if numbers != reference:
                    yield from self._difference(step[0], (life, numbers), (other, reference))

    def _steps(self, life: Life) -> Iterator[tuple[tuple[ConfigurationId, ...], list[int]]]:
        return self._steps_of_both(life) if self.history.is_by_groups else self._single_steps(life)

    def _steps_of_both(self, life: Life) -> Iterator[tuple[tuple[ConfigurationId, ...], list[int]]]:
        before: Stay | None = None
        for left, entered in life.moves():
            if entered.is_regular:
                numbers = left.numbers if before is None else [*before.numbers, *left.numbers]
                first = NO_CONFIGURATION if before is None else before.id
                yield (first, left.id, entered.id), sorted(self.history.at_least(Service.RELIABLE, numbers))
            before = None if entered.is_regular else left

    def _single_steps(self, life: Life) -> Iterator[tuple[tuple[ConfigurationId, ...], list[int]]]:
        """Each step of a process from one configuration to the next, and what it had delivered in the first."""
        before: Stay | None = None
        for left, entered in life.moves():
            numbers = self.history.at_least(Service.RELIABLE, left.numbers)
            yield (left.id, entered.id), self.history.ordered(numbers)
            if self.history.early and entered.is_regular:
                both = numbers if before is None else [*before.numbers, *numbers]
                yield (NO_CONFIGURATION if before is None else before.id, left.id, entered.id), self._early(both)
            before = None if entered.is_regular else left

    def _early(self, numbers: list[int]) -> list[int]:
        services, early = self.history.columns.services, self.history.early
        return sorted(number for number in numbers if services[number] in early)

    def _difference(
        self, view: ConfigurationId, first: tuple[Life, list[int]], second: tuple[Life, list[int]]
    ) -> Iterator[Witness]:
        for (life, numbers), (other, others) in ((first, second), (second, first)):
            for number in self.owed.among(other, sorted(set(numbers).difference(others))):
                if self.history.is_again(number) and number in other.delivered:
                    continue
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
