"""No duplicates: a process delivers a message at most once in its life, whatever views lie between (Theorem 4.6)."""

from __future__ import annotations

from collections.abc import Iterator

from ordercast.checker.base import Checker
from ordercast.checker.life import Life
from ordercast.checker.matters import Matter
from ordercast.checker.verdict import Witness
from ordercast.model.promises import Promise


class NoDuplicates(Checker):
    promise = Promise.NO_DUPLICATES
    rule = "no process delivered a message twice"
    matter = Matter.DELIVERED

    def violations(self) -> Iterator[Witness]:
        for life in self.history.lives():
            if len(life.delivered) != life.delivered_count:
                yield from self._of(life)

    def _of(self, life: Life) -> Iterator[Witness]:
        first_in: dict[int, str] = {}
        for stay in life.stays:
            for number in stay.numbers:
                if number in first_in:
                    yield self.witness(f"delivered again, after view {first_in[number]}", life.process, number, stay.id)
                first_in[number] = str(stay.id)
