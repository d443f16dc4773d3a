"""All judges on all evidence of one run: what daemons, clients and replicas saw.

    checkers = EvidenceCheckers()
    for event in events:  # of the daemons; then those of clients and of replicas
        checkers.observe(event)
    checkers.verdicts()

What the engine promises is in the daemons' evidence: feed it first. Groups and replicated states are judged when their
evidence was recorded, and not mentioned otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable

from ordercast.checker.groups.panel import GroupCheckers
from ordercast.checker.panel import Checkers
from ordercast.checker.replicated.states import StateCheckers
from ordercast.checker.verdict import Verdict
from ordercast.trace.client_records import ClientEvent
from ordercast.trace.records import DeliveredBatch, Event, Installed, Started
from ordercast.trace.replica_records import ReplicaEvent


class EvidenceCheckers:
    def __init__(self) -> None:
        self._order, self._groups, self._states = Checkers(), GroupCheckers(), StateCheckers()
        self.events = self.deliveries = 0  # of the daemons
        self.client_events = self.replica_events = 0

    def observe(self, event: Event) -> None:
        """Something of the daemons."""
        self._order.observe(event)
        self.events += 1
        if isinstance(event, DeliveredBatch):
            self.deliveries += len(event.messages)
        elif isinstance(event, Started):
            self._groups.observe(event)
            self._states.promised = event.promises.replicas
        elif isinstance(event, Installed):
            self._groups.observe(event)

    def observe_clients(self, events: Iterable[ClientEvent]) -> None:
        for event in events:
            self._groups.observe(event)
            self.client_events += 1

    def observe_replicas(self, events: Iterable[ReplicaEvent]) -> None:
        for event in events:
            self._states.observe(event)
            self.replica_events += 1

    def verdicts(self) -> list[Verdict]:
        """One per promise that was judged, in their order."""
        groups = self._groups.verdicts() if self.client_events else []
        return [*self._order.verdicts(), *groups, *(self._states.verdicts() if self.replica_events else [])]
