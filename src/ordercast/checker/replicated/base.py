"""The shape that the judges of replicas share: violations make INVALID. As in `checker/groups/base.py`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import ClassVar

from ordercast.checker.base import WITNESSES_MAX, collected, sentence_of
from ordercast.checker.replicated.history import ReplicaHistory
from ordercast.checker.verdict import Outcome, Verdict, Witness
from ordercast.model.promises import ReplicaPromise
from ordercast.trace.replica_records import ReplicaEvent


class ReplicaChecker(ABC):
    promise: ClassVar[ReplicaPromise]
    rule: ClassVar[str]  # what held, when it did
    is_liveness: ClassVar[bool] = False  # it concludes from absence

    def __init__(self, history: ReplicaHistory | None = None) -> None:
        self.history = ReplicaHistory() if history is None else history

    def observe(self, event: ReplicaEvent) -> None:
        """For a checker that stands alone."""
        self.history.observe(event)

    @abstractmethod
    def violations(self) -> Iterator[Witness]: ...

    def verdict(self) -> Verdict:
        """May be asked at any time, and again after further events."""
        if self.history.faults:
            fault = self.history.faults[0]
            return Verdict(self.promise, Outcome.UNKNOWN, f"the history cannot be judged: {fault}", (Witness(fault),))
        if self.is_liveness and not (self.history.is_complete and self.history.healed):
            why = Witness("the record was cut short, or the network never healed: nothing follows from absence")
            return self._verdict_on(Outcome.UNKNOWN, [why])
        violations, failure = collected(self.violations)
        if violations:
            return self._verdict_on(Outcome.INVALID, violations)
        if failure is not None:
            return self._verdict_on(Outcome.UNKNOWN, [Witness(failure)])
        return Verdict(self.promise, Outcome.VALID, self.rule)

    def _verdict_on(self, outcome: Outcome, witnesses: list[Witness]) -> Verdict:
        return Verdict(self.promise, outcome, sentence_of(witnesses), tuple(witnesses[:WITNESSES_MAX]))

    def witness(self, what: str, life: int) -> Witness:
        return Witness(f"{self.history.lives[life]}: {what}")
