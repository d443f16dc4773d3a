"""Whole messages: all of a message or nothing, however many packets it took.

Size and bytes of every delivered message are those submitted. And a message too large for one packet, cut by a change
of view, is delivered by all or none of those who go together from the old configuration to the new: counted over the
old regular and the transitional configuration, since the last packet decides where it is delivered. (Virtual synchrony
asks this of each configuration alone; here a message counts once, wherever its end came.)
"""

from __future__ import annotations

from collections.abc import Iterator

from ordercast.checker.base import Checker
from ordercast.checker.life import Life
from ordercast.checker.matters import Matter
from ordercast.checker.verdict import Witness
from ordercast.model.ids import ConfigurationId, process_text
from ordercast.model.promises import Promise
from ordercast.model.service import Service

LARGE_SIZE = 1_200  # bytes; more may need a second packet


class WholeMessages(Checker):
    promise = Promise.WHOLE_MESSAGES
    rule = "every delivered message was whole, and large ones reached all or none of those who moved together"
    matter = Matter.DELIVERED

    def violations(self) -> Iterator[Witness]:
        yield from self._torn()
        columns = self.history.columns
        large = {
            number
            for number, submission in enumerate(columns.submissions)
            if submission.size > LARGE_SIZE and submission.service >= Service.RELIABLE
        }
        if large:
            yield from self._partly_delivered(large)

    def _torn(self) -> Iterator[Witness]:
        for oddity in self.history.oddities:
            delivered, expected = oddity.delivered, oddity.expected
            if expected is None:
                continue
            if delivered.size < expected.size:
                what = f"cut off: {delivered.size} of {expected.size} bytes"
            elif delivered.size > expected.size:
                what = f"too long: {delivered.size} bytes for {expected.size}"
            elif delivered.digest != expected.digest:
                what = f"put together wrongly: {expected.size} bytes, but not those submitted"
            else:
                continue
            yield Witness(what, oddity.process, delivered.message, oddity.view)

    def _partly_delivered(self, large: set[int]) -> Iterator[Witness]:
        references: dict[tuple[ConfigurationId, ConfigurationId, ConfigurationId], tuple[Life, set[int]]] = {}
        for life in self.history.lives():
            stays = life.stays[1:]
            for old, transitional, new in zip(stays, stays[1:], stays[2:], strict=False):
                if not old.is_regular:
                    continue
                here = large.intersection(old.numbers) | large.intersection(transitional.numbers)
                other, known = references.setdefault((old.id, transitional.id, new.id), (life, here))
                for number in sorted(here ^ known):
                    had, lacked = (life, other) if number in here else (other, life)
                    if not self.owed.is_owed(lacked, number) or self._had_before(lacked, number):
                        continue
                    what = f"large, and not delivered by {process_text(lacked.process)}, which moved along"
                    yield self.witness(what, had.process, number, old.id)

    def _had_before(self, life: Life, number: int) -> bool:
        """Whether a message was ordered again, and this process had delivered it in another configuration."""
        return self.history.is_again(number) and number in life.delivered
