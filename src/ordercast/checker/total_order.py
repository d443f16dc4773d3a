"""Total order: there is one order of all messages, and every process delivers along it (Theorems 4.5, 4.17, 4.18).

Each message is ranked by the position of its first delivery. Then

- whoever delivers the message must give it the same position,
- no two messages may have one position,
- at each process the positions of messages and views must strictly rise, over its whole life.

The first makes positions a function of identity, the second makes it one to one; so the third says that the sequence of
message identities at each process rises in one common rank: no two processes can disagree on the order of any messages,
even through a chain of others. Judged are messages that asked for agreed or better.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, repeat
from operator import is_, lt

from ordercast.checker.base import Checker
from ordercast.checker.life import Life, Run, Stay, place_from, place_text
from ordercast.checker.matters import Matter
from ordercast.checker.verdict import Witness, message_text
from ordercast.model.ids import ConfigurationId
from ordercast.model.promises import Promise
from ordercast.model.service import Service


class TotalOrder(Checker):
    promise = Promise.TOTAL_ORDER
    rule = "all processes delivered along one order of all agreed and safe messages, and of views"
    matter = Matter.AGREED

    def violations(self) -> Iterator[Witness]:
        for life in self.history.lives():
            yield from self._differing(life)
        yield from self._shared()
        for life in self.history.lives():
            yield from self._falling(life)

    def _differing(self, life: Life) -> Iterator[Witness]:
        """Messages to which this process gives another position than the first who delivered them."""
        placements = self.history.placements()
        origins, places = placements.origins, placements.places
        for stay, run in life.runs():
            origin = run.origin
            if list(map(places.__getitem__, run.numbers)) == run.places and all(
                map(is_, map(origins.__getitem__, run.numbers), repeat(origin))
            ):
                continue
            for number, place in zip(*self._ordered(run), strict=True):
                if (places[number], origins[number]) != (place, origin):
                    there = f"{origins[number]} {place_text(places[number])}"
                    what = f"at {origin} {place_text(place)} here, at {there} elsewhere"
                    yield self.witness(what, life.process, number, stay.id)

    def _shared(self) -> Iterator[Witness]:
        """Positions that name two messages."""
        placements = self.history.placements()
        services = self.history.columns.services
        named: dict[tuple[ConfigurationId, int], int] = {}
        for number, place in sorted(placements.places.items()):
            if services[number] < Service.AGREED:
                continue
            other = named.setdefault((placements.origins[number], place), number)
            if other != number:
                text = message_text(self.history.identity(other))
                yield self.witness(f"has the position of {text}: {place_text(place)}", number=number)

    def _falling(self, life: Life) -> Iterator[Witness]:
        """Positions that do not rise at this process."""
        last: tuple[ConfigurationId, int] | None = None
        for stay in life.stays:
            if stay.view is not None:
                position = stay.view.position
                here = (position.origin, place_from(position.number, position.slot))
                if last is not None and here <= last:
                    yield self.witness(f"view at {_text(here)}, after {_text(last)}", life.process, view=stay.id)
                last = here
            for run in stay.runs:
                numbers, places = self._ordered(run)
                if places:
                    if (last is not None and (run.origin, places[0]) <= last) or not _rises(places):
                        yield from self._places(life, stay, run.origin, (numbers, places, last))
                    last = (run.origin, places[-1])

    def _places(
        self,
        life: Life,
        stay: Stay,
        origin: ConfigurationId,
        sequence: tuple[list[int], list[int], tuple[ConfigurationId, int] | None],
    ) -> Iterator[Witness]:
        numbers, places, last = sequence
        for number, place in zip(numbers, places, strict=True):
            here = (origin, place)
            if last is not None and here <= last:
                yield self.witness(f"delivered at {_text(here)}, after {_text(last)}", life.process, number, stay.id)
            last = here

    def _ordered(self, run: Run) -> tuple[list[int], list[int]]:
        if self.history.service_min >= Service.AGREED:
            return run.numbers, run.places
        services = self.history.columns.services
        kept = [index for index, number in enumerate(run.numbers) if services[number] >= Service.AGREED]
        return [run.numbers[index] for index in kept], [run.places[index] for index in kept]


def _rises(places: list[int]) -> bool:
    return all(map(lt, places, islice(places, 1, None)))


def _text(position: tuple[ConfigurationId, int]) -> str:
    return f"{position[0]} {place_text(position[1])}"
