"""Multiple group order: any two messages come in one order at all who deliver both, and no circle of processes
contradicts itself (thesis, section 2.1; that it holds around a circle is more than the thesis asks).

It takes the place of total order on engines whose processes see only what they share. Judged for each configuration,
with the transitional one that ends it, whatever the engine says of places: the union of all sequences is acyclic. And
what is not bound to one configuration is bound otherwise: a message has one position in a configuration; it is
delivered in a second one only if nobody had delivered it as safe, in the regular part of the first.
"""

from __future__ import annotations

from collections.abc import Iterator

from ordercast.checker.base import Checker
from ordercast.checker.life import place_text
from ordercast.checker.linear import extensions_of
from ordercast.checker.matters import Matter
from ordercast.checker.verdict import Witness
from ordercast.model.ids import ConfigurationId
from ordercast.model.promises import Promise
from ordercast.model.service import Service


class MultipleGroupOrder(Checker):
    promise = Promise.MULTIPLE_GROUP_ORDER
    rule = "all who delivered two messages of a configuration did so in one order, around any circle of them too"
    matter = Matter.DELIVERED

    def is_asked(self) -> bool:
        return self.history.is_by_groups

    def violations(self) -> Iterator[Witness]:
        for home, extension in extensions_of(self.history).items():
            for number in extension.contradicted:
                yield self.witness(
                    "is before and after itself, around processes that share messages", None, number, home
                )
        yield from self._differing()
        yield from self._safe_again()

    def _differing(self) -> Iterator[Witness]:
        """Messages with two positions in a configuration, and positions with two messages."""
        places: dict[tuple[ConfigurationId, int], tuple[ConfigurationId, int]] = {}
        numbers: dict[tuple[ConfigurationId, int], int] = {}
        for life in self.history.lives():
            for stay, run in life.runs():
                for number, place in zip(run.numbers, run.places, strict=True):
                    here = run.origin, place
                    if places.setdefault((stay.home, number), here) != here:
                        yield self.witness(f"has another position elsewhere: {place_text(place)}", life.process, number)
                    if numbers.setdefault(here, number) != number:
                        yield self.witness(f"has the position of another: {place_text(place)}", life.process, number)

    def _safe_again(self) -> Iterator[Witness]:
        """Safe messages of a regular configuration that were delivered in a later one as well."""
        services, homes = self.history.columns.services, self.history.homes_of_all()
        for life in self.history.lives():
            for stay in life.stays:
                for number in stay.numbers if stay.is_regular else ():
                    if services[number] >= Service.SAFE and max(homes[number]) > stay.home:
                        what = "delivered as safe, and in a later configuration as well"
                        yield self.witness(what, life.process, number, stay.id)
