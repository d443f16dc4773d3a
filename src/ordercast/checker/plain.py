"""The shape that checkers of groups and of replicas share: violations make INVALID, and a panel asks them all.

As in `checker/base.py`, without records that lack something. Whoever makes a panel says what the engine's groups and
replicas promise. Liveness is judged when the record is complete and the network healed; else nothing can be said of it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import ClassVar, Generic, Protocol, TypeVar

from ordercast.checker.base import WITNESSES_MAX, collected, sentence_of
from ordercast.checker.verdict import Outcome, Verdict, Witness, combined
from ordercast.model.promises import GroupPromise, ReplicaPromise
from ordercast.trace.records import Healed

EventT = TypeVar("EventT")
EventT_contra = TypeVar("EventT_contra", contravariant=True)


class PlainHistory(Protocol[EventT_contra]):
    """Events, indexed once for all who judge them."""

    faults: list[str]  # why it cannot be judged
    healed: Healed | None
    promised: frozenset[GroupPromise | ReplicaPromise] | None  # None: everything

    @property
    def is_complete(self) -> bool: ...

    def observe(self, event: EventT_contra, /) -> None: ...


class PlainChecker(ABC, Generic[EventT]):
    promise: ClassVar[GroupPromise | ReplicaPromise]
    rule: ClassVar[str]  # what held, when it did
    matter: ClassVar[Enum]  # what there must be before there is anything to judge
    is_liveness: ClassVar[bool] = False  # it concludes from absence

    def __init__(self, history: PlainHistory[EventT]) -> None:
        self._facts = history

    def observe(self, event: EventT) -> None:
        """For a checker that stands alone."""
        self._facts.observe(event)

    @abstractmethod
    def violations(self) -> Iterator[Witness]: ...

    def is_asked(self) -> bool:
        """Whether the promise is judged at all: not where a stronger one is."""
        return True

    @abstractmethod
    def is_exercised(self) -> bool:
        """Whether the history contains anything to judge. Asked when nothing is wrong."""

    def verdict(self) -> Verdict:
        """May be asked at any time, and again after further events."""
        if self._facts.faults:
            fault = self._facts.faults[0]
            return Verdict(self.promise, Outcome.UNKNOWN, f"the history cannot be judged: {fault}", (Witness(fault),))
        if self._facts.promised is not None and self.promise not in self._facts.promised:
            return Verdict(self.promise, Outcome.NOT_PROMISED, "the engine does not promise this")
        if self.is_liveness and not (self._facts.is_complete and self._facts.healed):
            why = Witness("the record was cut short, or the network never healed: nothing follows from absence")
            return self._verdict_on(Outcome.UNKNOWN, [why])
        violations, failure = collected(self.violations)
        if violations:
            return self._verdict_on(Outcome.INVALID, violations)
        if failure is not None:
            return self._verdict_on(Outcome.UNKNOWN, [Witness(failure)])
        if not self.is_exercised():
            return Verdict(self.promise, Outcome.NOT_EXERCISED, str(self.matter.value))
        return Verdict(self.promise, Outcome.VALID, self.rule)

    def _verdict_on(self, outcome: Outcome, witnesses: list[Witness]) -> Verdict:
        return Verdict(self.promise, outcome, sentence_of(witnesses), tuple(witnesses[:WITNESSES_MAX]))


class PlainPanel(Generic[EventT]):
    """Feed it the events in order, then ask; it never raises on account of a history."""

    def __init__(self, history: PlainHistory[EventT], checkers: Iterable[PlainChecker[EventT]]) -> None:
        self._history = history
        self._checkers = list(checkers)

    def observe(self, event: EventT) -> None:
        try:
            self._history.observe(event)
        except Exception as error:
            what = f"{type(event).__name__}: {type(error).__name__}: {error}"
            self._history.faults.append(f"an event could not be read: {what}")

    def verdicts(self) -> list[Verdict]:
        """One per promise, in their order."""
        return [checker.verdict() for checker in self._checkers if checker.is_asked()]

    def verdict(self) -> Verdict:
        """All of them in one: the worst wins."""
        return combined(self.verdicts())
