"""The shape that all checkers share: a checker yields violations and doubts, this class makes the verdict of them.

A violation is something in the history that the promise excludes. A doubt is a conclusion that would rest on absence in
a record that was cut short or never healed. One violation makes INVALID, else one doubt makes UNKNOWN. A fault of the
history itself, or an exception in the checker, makes UNKNOWN too. With neither, the verdict is VALID if the history
contains what the promise is about (`matters.py`), and NOT EXERCISED if it does not.

Live nodes may record no messages, or send some without a stamp. In the first case nothing is said of messages at all;
in the second the others are judged, and can be INVALID, but never VALID.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from itertools import islice
from typing import ClassVar

from ordercast.checker.history import History
from ordercast.checker.lost import Lost
from ordercast.checker.matters import Matter, has_matter
from ordercast.checker.owed import Owed
from ordercast.checker.verdict import Outcome, Verdict, Witness
from ordercast.model.ids import ConfigurationId, ProcessId, process_text
from ordercast.model.promises import Promise
from ordercast.trace.records import Event, Gap

WITNESSES_MAX = 8


class Checker(ABC):
    """One promise. Several checkers may read one history; then whoever owns it feeds it, once."""

    promise: ClassVar[Promise]
    rule: ClassVar[str]  # what held, when it did
    matter: ClassVar[Matter]  # what there must be before there is anything to judge
    needs_messages: ClassVar[bool] = True  # it says nothing when some process recorded none

    def __init__(self, history: History | None = None) -> None:
        self.history = History() if history is None else history
        self.owed = Owed(self.history)
        self.lost = Lost(self.history)

    def observe(self, event: Event) -> None:
        """For a checker that stands alone."""
        self.history.observe(event)

    @abstractmethod
    def violations(self) -> Iterator[Witness]: ...

    def doubts(self) -> Iterator[Witness]:
        return iter(())

    def is_exercised(self) -> bool:
        """Whether the history contains anything to judge. Asked when nothing is wrong."""
        return has_matter(self.history, self.matter)

    def is_asked(self) -> bool:
        """Whether anybody wants its verdict: not where something stronger is promised in its place."""
        return True

    def verdict(self) -> Verdict:
        """May be asked at any time, and again after further events."""
        fault = self.history.fault()
        if fault is not None:
            return Verdict(self.promise, Outcome.UNKNOWN, f"the history cannot be judged: {fault}", (Witness(fault),))
        if not self._is_promised():
            return Verdict(self.promise, Outcome.NOT_PROMISED, "the engine does not promise this")
        unrecorded = [Witness(gap.why) for gap in self.history.gaps if gap.gap is Gap.MESSAGES]
        if unrecorded and self.needs_messages:
            return self._verdict_on(Outcome.UNKNOWN, unrecorded)
        violations, failure = collected(self.violations)
        if violations:
            return self._verdict_on(Outcome.INVALID, violations)
        doubts, other_failure = collected(self.doubts)
        doubts = [Witness(failure) for failure in (failure, other_failure) if failure is not None] + doubts
        if self.needs_messages:
            doubts += self.unstamped()
        if doubts:
            return self._verdict_on(Outcome.UNKNOWN, doubts)
        if not self.is_exercised():
            return Verdict(self.promise, Outcome.NOT_EXERCISED, self.matter.value)
        return Verdict(self.promise, Outcome.VALID, self.rule)

    def _is_promised(self) -> bool:
        started = self.history.lives()[0].started
        return started is not None and self.promise in started.promises.promises

    def _verdict_on(self, outcome: Outcome, witnesses: list[Witness]) -> Verdict:
        return Verdict(self.promise, outcome, sentence_of(witnesses), tuple(witnesses[:WITNESSES_MAX]))

    def witness(
        self,
        what: str,
        process: ProcessId | None = None,
        number: int | None = None,
        view: ConfigurationId | None = None,
    ) -> Witness:
        message = None if number is None else self.history.identity(number)
        return Witness(what, process, message, view)

    def unstamped(self) -> list[Witness]:
        """Messages of live nodes that have no identity are seen by nobody: the doubt of every checker of messages."""
        return [
            Witness(f"{process_text(process)} does not record at level full, so its messages carry no identity")
            for process in self.history.unstamped
        ]

    def cut_short(self) -> Iterator[Witness]:
        """The doubt of every checker that concludes from absence."""
        endless = [Witness(gap.why) for gap in self.history.gaps if gap.gap is Gap.END]
        yield from endless
        if endless:
            return
        if self.history.ended is None:
            yield Witness("the record has no end, so nothing may be concluded from absence")
        elif not self.history.ended.complete:
            yield Witness("the record was cut short, so nothing may be concluded from absence")


def collected(find: Callable[[], Iterator[Witness]]) -> tuple[list[Witness], str | None]:
    """Some of what is found, and why the search failed, if it did: what was found before still counts."""
    witnesses: list[Witness] = []
    try:
        for witness in islice(find(), WITNESSES_MAX + 1):
            witnesses.append(witness)  # noqa: PERF402 (kept one by one, for the case that the next one raises)
    except Exception as error:
        return witnesses, f"the checker failed: {type(error).__name__}: {error}"
    return witnesses, None


def sentence_of(witnesses: list[Witness]) -> str:
    if len(witnesses) == 1:
        return str(witnesses[0])
    more = f"{len(witnesses) - 1} more" if len(witnesses) <= WITNESSES_MAX else "more"
    return f"{witnesses[0]} (and {more})"
