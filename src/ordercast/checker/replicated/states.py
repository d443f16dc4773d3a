"""The judges of replicas on several replicated states at once: a panel for each, and one verdict on each promise.

A group is a replicated state of its own. What is said of the whole cluster is told to all panels, and so is what cannot
be told to belong to one: then none of them can be judged.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ordercast.checker.replicated.panel import ReplicaCheckers
from ordercast.checker.verdict import NOT_BROKEN, Verdict
from ordercast.model.promises import ReplicaPromise
from ordercast.trace.client_records import Calm
from ordercast.trace.records import Ended, Healed, Unrecorded
from ordercast.trace.replica_records import ReplicaEvent, ReplicaStarted


class StateCheckers:
    def __init__(self, promised: Iterable[ReplicaPromise] | None = None) -> None:
        self.promised = promised
        self._panels: dict[str | None, ReplicaCheckers] = {}
        self._groups: dict[int, str | None] = {}  # by life

    def observe(self, event: ReplicaEvent) -> None:
        if isinstance(event, ReplicaStarted):
            self._groups[event.life] = event.group
            if event.group not in self._panels:
                self._panels[event.group] = ReplicaCheckers(self.promised)
        for panel in self._panels_of(event):
            panel.observe(event)

    def _panels_of(self, event: ReplicaEvent) -> list[ReplicaCheckers]:
        if not isinstance(event, Calm | Healed | Ended | Unrecorded) and event.life in self._groups:
            return [self._panels[self._groups[event.life]]]
        if not self._panels:
            self._panels[None] = ReplicaCheckers(self.promised)
        return list(self._panels.values())

    def verdicts(self) -> list[Verdict]:
        """One per promise, in their order: the worst of all states."""
        found = [[_named(group, verdict) for verdict in panel.verdicts()] for group, panel in self._panels.items()]
        return [max(verdicts, key=lambda verdict: verdict.outcome.severity) for verdicts in zip(*found, strict=True)]


def _named(group: str | None, verdict: Verdict) -> Verdict:
    """The verdict, with the name of the state in which something is wrong."""
    if group is None or verdict.outcome in NOT_BROKEN:
        return verdict
    return replace(verdict, sentence=f"{group}: {verdict.sentence}")
