"""Causal order (Theorems 4.11 and 4.12), in linear time.

m1 is causally before m2 when the submitter of m2 had delivered m1, or had submitted it as the same sender, and so on
through chains. Instead of following chains, three facts are checked from which the theorems follow:

1. no message is ordered in a configuration before that of something its submitter had delivered or sent before it;
2. no process delivers a message of a configuration after messages of a later one;
3. in one configuration: whoever delivers m2 has delivered before it all that the submitter of m2 had delivered there
   when it submitted m2, and the previous message of the same sender if that was ordered there, too.

The configuration of a message is the regular one in which, or after which, it was delivered first. Chains only lead to
the same or later configurations (1), so for m1 and m2 of different ones (2) is enough; and for one configuration the
whole chain lies in it, where (3) excludes holes. Judged are messages that asked for causal or better.

Fact 3 would compare processes in pairs. But when all deliver along one sequence, "the first k of what the submitter
delivered" are the first k of that sequence, and a number is all there is to compare; only where a process departs from
the sequence are sets looked at.

Where a message may be delivered in several configurations, places alone are compared.

Where the engine prunes, a process need not have what it is not owed, and chains may lead through messages that it
lacks. So that it lacks nothing else, one more fact is checked: a message's place is above those of all that its
submitter had delivered in its configuration. Where positions are only names, nothing may come before what it depends on
over any chain (`causes.py`); what was ordered again, or lost with its source (`lost.py`), is
left out.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, groupby

from ordercast.checker.base import Checker
from ordercast.checker.causes import Pasts
from ordercast.checker.history import NONE
from ordercast.checker.life import Life
from ordercast.checker.linear import extensions_of
from ordercast.checker.matters import Matter
from ordercast.checker.sequences import common_length, longest
from ordercast.checker.verdict import Witness, message_text
from ordercast.model.ids import NO_CONFIGURATION, ConfigurationId, ProcessId
from ordercast.model.promises import Promise
from ordercast.model.service import Service

_NEVER = 1 << 62  # more than any sequence holds


@dataclass(slots=True)
class _Share:
    """What one process delivered in one configuration, and how far that agrees with the longest such sequence."""

    numbers: list[int]
    shared: int = 0


class Causal(Checker):
    promise = Promise.CAUSAL
    rule = "no message was delivered before, or without, one that it may depend on"
    matter = Matter.CAUSAL

    def violations(self) -> Iterator[Witness]:
        if not self.history.shares_views:
            yield from self._out_of_place()
            return
        yield from self._origins()
        sequences = self._sequences()
        needs, priors = self._needs(), self._priors()
        if self.history.is_by_groups:
            yield from self._contradicted()
        elif not self.owed.is_everything:
            yield from self._misplaced(sequences, needs)
        bounds = self._bounds(sequences, needs)
        for life in self.history.lives() if not self.history.is_by_groups else ():
            yield from self._falling(life)
        past: dict[ProcessId, set[int]] = {}  # what each process has delivered in earlier configurations
        for (process, home), mine in sequences.items():
            cleared: dict[ProcessId, int] = {}  # of each submitter, how much of what it delivered was found here
            before = past.setdefault(process, set())
            for number, done in _suspects(mine, bounds, priors):
                submitter = self.history.identity(number).process
                theirs = sequences.get((submitter, home), _Share([])).numbers
                seen = [*theirs[cleared.get(submitter, 0) : needs[number]], priors[number]]
                absent = (cause for cause in seen if cause not in done and cause not in before)
                lacked = (cause for cause in absent if self._is_due(process, cause, number))
                missing = next(lacked, NONE)
                if missing == NONE:
                    cleared[submitter] = max(needs[number], cleared.get(submitter, 0))
                else:
                    text = message_text(self.history.identity(missing))
                    yield self.witness(f"delivered, but not before it {text}, on which it may depend", process, number)
            if self.history.is_by_groups:
                before.update(mine.numbers)  # its submitter may have delivered it again, in a later one

    def _origins(self) -> Iterator[Witness]:
        """Fact 1."""
        columns, homes = self.history.columns, self.history.placements().homes
        highest: dict[int, ConfigurationId] = {}  # of each sender, the latest one in which a message of it was ordered
        for number, seen in enumerate(columns.seen_homes):
            home = homes.get(number)
            if home is None or columns.services[number] < Service.CAUSAL:
                continue
            if self.history.gaps and not self.history.was_submitted(number):
                continue  # what a killed node sent last has no place among its submissions
            if self.history.is_again(number):
                continue
            if seen > home:
                yield self.witness(f"ordered in {home}, but its submitter had delivered of {seen}", number=number)
            sent = highest.get(columns.streams[number], home)
            if sent > home and not self.history.is_by_groups:
                yield self.witness(f"ordered in {home}, after one of its sender in {sent}", number=number)
            highest[columns.streams[number]] = max(sent, home)

    def _out_of_place(self) -> Iterator[Witness]:
        """For an engine that does not have each message in one configuration: no message lies below something that its
        submitter had delivered, or sent, before it. All who deliver both then deliver them in that order; what somebody
        lacks is a matter of agreed delivery, among those who go through the same configurations."""
        columns, placements = self.history.columns, self.history.placements()
        places = {number: (placements.origins[number], place) for number, place in placements.places.items()}
        delivered = {life.process: life.numbers_of_homes() for life in self.history.lives()}
        for number, (seen, count) in enumerate(zip(columns.seen_homes, columns.seen_counts, strict=True)):
            if number not in places or columns.services[number] < Service.CAUSAL:
                continue
            submitter = self.history.identity(number).process
            before = delivered[submitter][seen][count - 1 : count] if count else []
            for cause in (*before, columns.previous[number]):
                if cause != NONE and cause in places and places[cause] >= places[number]:
                    text = message_text(self.history.identity(cause))
                    yield self.witness(f"its place is not above that of {text}, on which it may depend", number=number)

    def _contradicted(self) -> Iterator[Witness]:
        history = self.history
        for home, extension in extensions_of(history, with_causes=True).items():
            if not extension.contradicted:
                continue
            pasts = self._pasts(home, extension.contradicted)
            for life in history.lives():
                for number, cause in pasts.overtaken(life.numbers_of_homes().get(home, [])):
                    if not history.is_again(number) and not history.is_again(cause):
                        text = message_text(history.identity(cause))
                        yield self.witness(
                            f"delivered before {text}, on which it may depend", life.process, number, home
                        )

    def _pasts(self, home: ConfigurationId, numbers: list[int]) -> Pasts:
        """Gather what these messages may depend on: all that their submitters had delivered in the configuration, and
        what their senders had sent before."""
        columns, pasts = self.history.columns, Pasts(numbers)
        known: dict[ProcessId, tuple[int, int]] = {}  # how much of what it delivered is gathered, and all of that
        delivered = {life.process: life.numbers_of_homes().get(home, []) for life in self.history.lives()}
        for number, (seen, count) in enumerate(zip(columns.seen_homes, columns.seen_counts, strict=True)):
            submitter = self.history.identity(number).process
            if seen == home:
                done, past = known.get(submitter, (0, 0))
                for cause in delivered.get(submitter, [])[done:count]:
                    past |= pasts.with_itself(cause)
                known[submitter] = max(done, count), past
                pasts.depends(number, past)
            if columns.previous[number] != NONE:
                pasts.depends(number, pasts.with_itself(columns.previous[number]))
        return pasts

    def _is_due(self, process: ProcessId, cause: int, number: int) -> bool:
        """Whether a process had to deliver one message before another."""
        life = self.history.life(process)
        if self.owed.is_everything or life is None:
            return self.owed.is_everything
        return self.owed.is_owed(life, cause) and not self.lost.is_lost(cause, life, number)

    def _misplaced(
        self, sequences: dict[tuple[ProcessId, ConfigurationId], _Share], needs: list[int]
    ) -> Iterator[Witness]:
        """The fact that is added where the engine prunes."""
        placements = self.history.placements()
        homes = placements.homes
        places = {number: (placements.origins[number], place) for number, place in placements.places.items()}
        highest = {
            key: list(accumulate((places[number] for number in mine.numbers), max)) for key, mine in sequences.items()
        }
        for number, need in enumerate(needs):
            submitter = self.history.identity(number).process
            if need and highest[submitter, homes[number]][need - 1] > places[number]:
                yield self.witness("its place is below that of one that its submitter had delivered", number=number)

    def _falling(self, life: Life) -> Iterator[Witness]:
        """Fact 2."""
        homes = self.history.placements().homes
        highest = NO_CONFIGURATION
        for stay, run in life.runs():
            for home, numbers in groupby(self.history.at_least(Service.CAUSAL, run.numbers), homes.__getitem__):
                if home < highest:
                    what = f"delivered of configuration {home} after {highest}"
                    yield self.witness(what, life.process, next(numbers), stay.id)
                highest = max(highest, home)

    # Fact 3.

    def _sequences(self) -> dict[tuple[ProcessId, ConfigurationId], _Share]:
        result: dict[tuple[ProcessId, ConfigurationId], _Share] = {}
        by_home: dict[ConfigurationId, list[_Share]] = {}
        for life in self.history.lives():
            for home, numbers in life.numbers_of_homes().items():
                mine = _Share(self.history.at_least(Service.CAUSAL, numbers))
                result[life.process, home] = mine
                by_home.setdefault(home, []).append(mine)
        for shares in by_home.values():
            reference = longest(each.numbers for each in shares)
            for each in shares:
                each.shared = common_length(each.numbers, reference)
        return result

    def _needs(self) -> list[int]:
        """Return for each message how many of its own configuration its submitter had delivered."""
        columns, homes = self.history.columns, self.history.placements().homes
        needs = [
            count if count and homes.get(number) == seen and not self.history.is_again(number) else 0
            for number, (seen, count) in enumerate(zip(columns.seen_homes, columns.seen_counts, strict=True))
        ]
        if self.history.service_min < Service.CAUSAL:
            self._discount(needs)
        return needs

    def _discount(self, needs: list[int]) -> None:
        """Counts of all deliveries become counts of those that asked for causal or better."""
        services, homes = self.history.columns.services, self.history.placements().homes
        kept: dict[tuple[ProcessId, ConfigurationId], list[int]] = {}
        for life in self.history.lives():
            for home, numbers in life.numbers_of_homes().items():
                strong = [index for index, number in enumerate(numbers) if services[number] >= Service.CAUSAL]
                kept[life.process, home] = strong
        for number, need in enumerate(needs):
            if need:
                needs[number] = bisect_left(kept[self.history.identity(number).process, homes[number]], need)

    def _priors(self) -> list[int]:
        """Return for each message the one that its sender had submitted before it, if that was ordered in the same
        configuration."""
        services, homes = self.history.columns.services, self.history.placements().homes
        return [
            prior
            if prior in homes
            and services[prior] >= Service.CAUSAL
            and homes[prior] == homes.get(number)
            and not (self.history.is_again(prior) or self.history.is_again(number))
            else NONE
            for number, prior in enumerate(self.history.columns.previous)
        ]

    def _bounds(self, sequences: dict[tuple[ProcessId, ConfigurationId], _Share], needs: list[int]) -> list[int]:
        """The needs, where the number alone says it all; `_NEVER` where the submitter departs from the sequence."""
        homes = self.history.placements().homes
        bounds = needs.copy()
        for number, need in enumerate(needs):
            if need and need > sequences[self.history.identity(number).process, homes[number]].shared:
                bounds[number] = _NEVER
        return bounds


def _suspects(mine: _Share, bounds: list[int], priors: list[int]) -> Iterator[tuple[int, set[int]]]:
    """Messages that the numbers alone do not clear, each with what had been delivered before it."""
    done = {NONE}
    shared = mine.shared
    for index, number in enumerate(mine.numbers):
        bound = bounds[number]
        if bound > index or bound > shared or priors[number] not in done:
            yield number, done
        done.add(number)
