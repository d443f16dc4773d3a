"""FIFO: what one sender submitted is delivered in that order, and without a gap where none is allowed.

Order: at each process, the messages of one sender rise. Gap: a process delivers m3 but not m2, which the same sender
submitted just before m3. Such a gap is a violation when

- m2 and m3 were ordered in the same configuration (Theorem 4.12: m2 precedes m3 in its causal order); in a network of
  rings, whose processes may go through different ones, m2 was ordered since the process is in its configuration,
- or the process had delivered an earlier message of that sender, and the sender has been in its transitional set at
  each new configuration since: then both passed through the same ones together, and m2 was ordered in one of them.

Else they were apart in between, and m2 may have been ordered where this process was not, or dropped beyond a gap.
Where the engine prunes, m2 may be lost with its source (`lost.py`).
Judged are messages that asked for fifo or better.
"""

from __future__ import annotations

from collections.abc import Iterator

from ordercast.checker.base import Checker
from ordercast.checker.history import NONE
from ordercast.checker.life import Life, Stay, place_from
from ordercast.checker.matters import Matter
from ordercast.checker.verdict import Witness, message_text
from ordercast.model.ids import ProcessId
from ordercast.model.promises import Promise
from ordercast.model.service import Service


class Fifo(Checker):
    promise = Promise.FIFO
    rule = "the messages of each sender were delivered in its order, without a forbidden gap"
    matter = Matter.FIFO

    def violations(self) -> Iterator[Witness]:
        for life in self.history.lives():
            yield from self._of(life)

    def _of(self, life: Life) -> Iterator[Witness]:
        streams, previous = self.history.columns.streams, self.history.columns.previous
        nearest = None if self.owed.is_everything else {NONE: NONE}
        latest: dict[int, int] = {}  # of each sender, the newest message delivered
        where: dict[int, int] = {}  # and the index of the stay in which it was
        for index, stay in enumerate(life.stays):
            for number in self.history.at_least(Service.FIFO, stay.numbers):
                stream = streams[number]
                before, expected = latest.get(stream, NONE), previous[number]
                if nearest is not None:
                    expected = self._nearest(life, expected, nearest)
                if before != expected:
                    what = self._judge(life, (number, expected, before), where.get(stream, 0), index)
                    if what is not None:
                        yield self.witness(what, life.process, number, stay.id)
                    if before != NONE and self._is_older(number, before):
                        continue
                latest[stream] = number
                where[stream] = index

    def _nearest(self, life: Life, number: int, nearest: dict[int, int]) -> int:
        """Return a message, if this process must have it, or has it; else the last one that its sender submitted before
        it of which that is so. `nearest` knows the answers that were given."""
        previous = self.history.columns.previous
        passed: list[int] = []
        while number not in nearest:
            passed.append(number)
            if number in life.delivered or self.owed.is_owed(life, number):
                nearest[number] = number
                break
            number = previous[number]
        found = nearest[number]
        nearest.update(dict.fromkeys(passed, found))
        return found

    def _is_older(self, number: int, before: int) -> bool:
        return self.history.identity(number).counter <= self.history.identity(before).counter

    def _judge(self, life: Life, messages: tuple[int, int, int], stay_before: int, stay_now: int) -> str | None:
        """What is wrong with delivering a message, if anything is. `messages`: itself, the one that its sender
        submitted before it, the one that was delivered before it."""
        number, missing, before = messages
        message = self.history.identity(number)
        if before != NONE and self._is_older(number, before):
            newer = self.history.identity(before)
            return None if newer == message else f"delivered after {message_text(newer)} of the same sender"
        if missing == NONE:
            return None
        is_near = self._are_near(missing, number, life.stays[stay_now])
        if is_near or (before != NONE and _are_together(life.stays[stay_before + 1 : stay_now + 1], message.process)):
            if self.lost.is_lost(missing, life, number):
                return None
            return (
                f"delivered without {message_text(self.history.identity(missing))}, which its sender submitted before"
            )
        return None

    def _are_near(self, missing: int, number: int, stay: Stay) -> bool:
        """Whether two messages were ordered in one configuration; or, where those who deliver a message need not share
        one, whether the first lies behind the beginning of this one."""
        placements = self.history.placements()
        if missing not in placements.homes or self.history.is_again(missing) or self.history.is_again(number):
            return False
        if self.history.shares_views:
            return placements.homes[missing] == placements.homes[number]
        if stay.view is None:
            return False
        begun = stay.view.position
        return (placements.origins[missing], placements.places[missing]) > (
            begun.origin,
            place_from(begun.number, begun.slot),
        )


def _are_together(stays: list[Stay], process: ProcessId) -> bool:
    return all(process in stay.view.transitional for stay in stays if stay.view is not None and stay.is_regular)
