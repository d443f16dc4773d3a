"""All judges of replicas on one history, which is indexed once for all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ordercast.checker.plain import PlainPanel
from ordercast.checker.replicated.base import ReplicaChecker
from ordercast.checker.replicated.beliefs import Beliefs
from ordercast.checker.replicated.commands import CallOrder, Confirmations, Once, Refusals, SameCommands
from ordercast.checker.replicated.exclusive import Exclusive
from ordercast.checker.replicated.history import ReplicaHistory
from ordercast.checker.replicated.linearisable import Linearisable
from ordercast.checker.replicated.liveness import Liveness
from ordercast.checker.replicated.primaries import Durability, OnePrimary
from ordercast.checker.verdict import Verdict
from ordercast.model.promises import ReplicaPromise
from ordercast.trace.replica_records import ReplicaEvent

REPLICA_CHECKERS: Mapping[ReplicaPromise, type[ReplicaChecker]] = {
    checker.promise: checker
    for checker in (
        SameCommands,
        Once,
        CallOrder,
        Confirmations,
        Refusals,
        Durability,
        OnePrimary,
        Linearisable,
        Exclusive,
        Beliefs,
        Liveness,
    )
}


class ReplicaCheckers(PlainPanel[ReplicaEvent]):
    def __init__(self, promised: Iterable[ReplicaPromise] | None = None) -> None:
        """`promised`: what replicated states on the engine promise; None: everything."""
        history = ReplicaHistory()
        history.promised = None if promised is None else frozenset(promised)
        super().__init__(history, [checker(history) for checker in REPLICA_CHECKERS.values()])


def check_replicas(events: Iterable[ReplicaEvent], promised: Iterable[ReplicaPromise] | None = None) -> list[Verdict]:
    panel = ReplicaCheckers(promised)
    for event in events:
        panel.observe(event)
    return panel.verdicts()
