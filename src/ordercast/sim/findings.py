"""What a witness of a run has found wrong, by promise, and the verdicts that follow."""

from __future__ import annotations

from collections import defaultdict

from ordercast.checker.verdict import Outcome, Verdict, Witness
from ordercast.model.ids import ConfigurationId, ProcessId
from ordercast.model.promises import AnyPromise

WITNESSES_MAX = 5


class Findings:
    def __init__(self) -> None:
        self._found: defaultdict[AnyPromise, list[Witness]] = defaultdict(list)

    def add(self, promise: AnyPromise, what: str, process: ProcessId, view: ConfigurationId | None = None) -> None:
        self._found[promise].append(Witness(what, process, view=view))

    def is_broken(self, promise: AnyPromise) -> bool:
        return bool(self._found[promise])

    def verdict(self, promise: AnyPromise) -> Verdict:
        found = self._found[promise]
        if found:
            return Verdict(promise, Outcome.INVALID, str(found[0]), tuple(found[:WITNESSES_MAX]))
        return Verdict(promise, Outcome.VALID, "")

    def broken(self) -> list[Verdict]:
        """Return a verdict on each promise that was broken."""
        return [self.verdict(promise) for promise, found in self._found.items() if found]
