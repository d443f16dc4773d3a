"""All judges of replicas on one history, which is indexed once for all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ordercast.checker.replicated.base import ReplicaChecker
from ordercast.checker.replicated.commands import Confirmations, Once, Refusals, SameCommands
from ordercast.checker.replicated.history import ReplicaHistory
from ordercast.checker.replicated.linearisable import Linearisable
from ordercast.checker.replicated.liveness import Liveness
from ordercast.checker.replicated.primaries import Durability, OnePrimary
from ordercast.checker.verdict import Verdict, combined
from ordercast.model.promises import ReplicaPromise
from ordercast.trace.replica_records import ReplicaEvent

REPLICA_CHECKERS: Mapping[ReplicaPromise, type[ReplicaChecker]] = {
    checker.promise: checker
    for checker in (
        SameCommands,
        Once,
        Confirmations,
        Refusals,
        Durability,
        OnePrimary,
        Linearisable,
        Liveness,
    )
}


class ReplicaCheckers:
    """The panel. Feed it the events of replicas in order, then ask; it never raises on account of a history."""

    def __init__(self) -> None:
        self._history = ReplicaHistory()
        self._checkers = [checker(self._history) for checker in REPLICA_CHECKERS.values()]

    def observe(self, event: ReplicaEvent) -> None:
        if self._history.faults:
            return
        try:
            self._history.observe(event)
        except Exception as error:
            self._history.faults.append(f"{type(event).__name__}: {type(error).__name__}: {error}")

    def verdicts(self) -> list[Verdict]:
        return [checker.verdict() for checker in self._checkers]

    def verdict(self) -> Verdict:
        return combined(self.verdicts())


def check_replicas(events: Iterable[ReplicaEvent]) -> list[Verdict]:
    panel = ReplicaCheckers()
    for event in events:
        panel.observe(event)
    return panel.verdicts()
