"""The shape that the judges of replicas share: that of `checker/plain.py`, on a history of replicas."""

from __future__ import annotations

from typing import ClassVar

from ordercast.checker.plain import PlainChecker
from ordercast.checker.replicated.history import ReplicaHistory
from ordercast.checker.replicated.matters import ReplicaMatter, has_replica_matter
from ordercast.checker.verdict import Witness
from ordercast.model.promises import ReplicaPromise
from ordercast.trace.replica_records import ReplicaEvent


class ReplicaChecker(PlainChecker[ReplicaEvent]):
    promise: ClassVar[ReplicaPromise]
    matter: ClassVar[ReplicaMatter]

    def __init__(self, history: ReplicaHistory | None = None) -> None:
        self.history = ReplicaHistory() if history is None else history
        super().__init__(self.history)

    def is_exercised(self) -> bool:
        return has_replica_matter(self.history, self.matter)

    def witness(self, what: str, life: int) -> Witness:
        return Witness(f"{self.history.lives[life]}: {what}")
