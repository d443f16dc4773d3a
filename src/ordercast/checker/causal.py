"""Causal order (Theorems 4.11 and 4.12), in linear time.

m1 is causally before m2 when the submitter of m2 had delivered m1, or had submitted it as the same sender, and so on
through chains. Instead of following chains, three facts are checked from which the theorems follow:

1. no message is originated on a ring before that of something its submitter had delivered or sent before it;
2. no process delivers a message of a ring after messages of a later ring;
3. on one ring: whoever delivers m2 has delivered before it all that the submitter of m2 had delivered of that ring when
   it submitted m2, and the previous message of the same sender if that was originated on the same ring.

Chains only lead to the same or later rings (1), so for m1 and m2 of different rings (2) is enough; and for one ring the
whole chain lies on that ring, where (3) excludes holes. Judged are messages that asked for causal or better.

Fact 3 would compare processes in pairs. But when all deliver along one sequence, "the first k of what the submitter
delivered" are the first k of that sequence, and a number is all there is to compare; only where a process departs from
the sequence are sets looked at.

Where the engine prunes, a process need not have what it is not owed, and chains may lead through messages that it
lacks. So that it lacks nothing else, one more fact is checked: a message's place is above those of all that its
submitter had delivered of its ring.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

from ordercast.checker.base import Checker
from ordercast.checker.history import NONE
from ordercast.checker.life import Life
from ordercast.checker.sequences import common_length, longest
from ordercast.checker.verdict import Witness, message_text
from ordercast.model.ids import ConfigurationId, ProcessId
from ordercast.model.promises import Promise
from ordercast.model.service import Service

_NEVER = 1 << 62  # more than any sequence holds


@dataclass(slots=True)
class _OnRing:
    """What one process delivered of one ring, and how far that agrees with the longest such sequence."""

    numbers: list[int]
    shared: int = 0


class Causal(Checker):
    promise = Promise.CAUSAL
    rule = "no message was delivered before, or on its ring without, one that it may depend on"

    def violations(self) -> Iterator[Witness]:
        yield from self._origins()
        sequences = self._sequences()
        needs, priors = self._needs(), self._priors()
        if not self.owed.is_everything:
            yield from self._misplaced(sequences, needs)
        bounds = self._bounds(sequences, needs)
        for life in self.history.lives():
            yield from self._rings_of(life)
        for (process, ring), mine in sequences.items():
            cleared: dict[ProcessId, int] = {}  # of each submitter, how much of what it delivered was found here
            for number, done in _suspects(mine, bounds, priors):
                submitter = self.history.identity(number).process
                theirs = sequences.get((submitter, ring), _OnRing([])).numbers
                seen = [*theirs[cleared.get(submitter, 0) : needs[number]], priors[number]]
                lacked = (cause for cause in seen if cause not in done and self._is_owed(process, cause))
                missing = next(lacked, NONE)
                if missing == NONE:
                    cleared[submitter] = max(needs[number], cleared.get(submitter, 0))
                else:
                    text = message_text(self.history.identity(missing))
                    yield self.witness(f"delivered, but not before it {text}, on which it may depend", process, number)

    def _origins(self) -> Iterator[Witness]:
        """Fact 1."""
        columns, rings = self.history.columns, self.history.placements().rings
        highest: dict[int, ConfigurationId] = {}  # of each sender, the latest ring on which it had a message originated
        for number, seen in enumerate(columns.seen_rings):
            ring = rings.get(number)
            if ring is None or columns.services[number] < Service.CAUSAL:
                continue
            if self.history.gaps and not self.history.was_submitted(number):
                continue  # what a killed node sent last has no place among its submissions
            if seen > ring:
                yield self.witness(f"originated on {ring}, but its submitter had delivered of {seen}", number=number)
            sent = highest.get(columns.streams[number], ring)
            if sent > ring:
                yield self.witness(f"originated on {ring}, after one of its sender on {sent}", number=number)
            highest[columns.streams[number]] = max(sent, ring)

    def _is_owed(self, process: ProcessId, number: int) -> bool:
        return self.owed.is_everything or self.owed.is_owed(self.history.life(process), number)

    def _misplaced(
        self, sequences: dict[tuple[ProcessId, ConfigurationId], _OnRing], needs: list[int]
    ) -> Iterator[Witness]:
        """The fact that is added where the engine prunes."""
        placements = self.history.placements()
        rings, places = placements.rings, placements.places
        highest = {
            key: list(accumulate((places[number] for number in mine.numbers), max)) for key, mine in sequences.items()
        }
        for number, need in enumerate(needs):
            submitter = self.history.identity(number).process
            if need and highest[submitter, rings[number]][need - 1] > places[number]:
                yield self.witness("its place is below that of one that its submitter had delivered", number=number)

    def _rings_of(self, life: Life) -> Iterator[Witness]:
        """Fact 2."""
        highest: ConfigurationId | None = None
        for stay, run in life.runs():
            numbers = self.history.at_least(Service.CAUSAL, run.numbers)
            if highest is not None and run.ring < highest and numbers:
                what = f"delivered of ring {run.ring} after ring {highest}"
                yield self.witness(what, life.process, numbers[0], stay.id)
            if numbers:
                highest = run.ring if highest is None else max(highest, run.ring)

    # Fact 3.

    def _sequences(self) -> dict[tuple[ProcessId, ConfigurationId], _OnRing]:
        result: dict[tuple[ProcessId, ConfigurationId], _OnRing] = {}
        by_ring: dict[ConfigurationId, list[_OnRing]] = {}
        for life in self.history.lives():
            for ring, numbers in life.numbers_of_rings().items():
                mine = _OnRing(self.history.at_least(Service.CAUSAL, numbers))
                result[life.process, ring] = mine
                by_ring.setdefault(ring, []).append(mine)
        for on_ring in by_ring.values():
            reference = longest(each.numbers for each in on_ring)
            for each in on_ring:
                each.shared = common_length(each.numbers, reference)
        return result

    def _needs(self) -> list[int]:
        """Of each message, how many of its own ring its submitter had delivered."""
        columns, rings = self.history.columns, self.history.placements().rings
        needs = [
            count if count and rings.get(number) == seen else 0
            for number, (seen, count) in enumerate(zip(columns.seen_rings, columns.seen_counts, strict=True))
        ]
        if self.history.service_min < Service.CAUSAL:
            self._discount(needs)
        return needs

    def _discount(self, needs: list[int]) -> None:
        """Counts of all deliveries become counts of those that asked for causal or better."""
        services, rings = self.history.columns.services, self.history.placements().rings
        kept: dict[tuple[ProcessId, ConfigurationId], list[int]] = {}
        for life in self.history.lives():
            for ring, numbers in life.numbers_of_rings().items():
                strong = [index for index, number in enumerate(numbers) if services[number] >= Service.CAUSAL]
                kept[life.process, ring] = strong
        for number, need in enumerate(needs):
            if need:
                needs[number] = bisect_left(kept[self.history.identity(number).process, rings[number]], need)

    def _priors(self) -> list[int]:
        """Of each message, the one that its sender had submitted before it, if that was originated on the same ring."""
        services, rings = self.history.columns.services, self.history.placements().rings
        return [
            prior
            if prior in rings and services[prior] >= Service.CAUSAL and rings[prior] == rings.get(number)
            else NONE
            for number, prior in enumerate(self.history.columns.previous)
        ]

    def _bounds(self, sequences: dict[tuple[ProcessId, ConfigurationId], _OnRing], needs: list[int]) -> list[int]:
        """The needs, where the number alone says it all; `_NEVER` where the submitter departs from the sequence."""
        rings = self.history.placements().rings
        bounds = needs.copy()
        for number, need in enumerate(needs):
            if need and need > sequences[self.history.identity(number).process, rings[number]].shared:
                bounds[number] = _NEVER
        return bounds


def _suspects(mine: _OnRing, bounds: list[int], priors: list[int]) -> Iterator[tuple[int, set[int]]]:
    """Messages that the numbers alone do not clear, each with what had been delivered before it."""
    done = {NONE}
    shared = mine.shared
    for index, number in enumerate(mine.numbers):
        bound = bounds[number]
        if bound > index or bound > shared or priors[number] not in done:
            yield number, done
        done.add(number)
