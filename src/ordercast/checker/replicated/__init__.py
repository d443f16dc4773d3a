"""Verdicts on replicated state: what replicas applied, and what their callers were told.

`ReplicaCheckers` is the panel. This package imports `model` and `trace` only, like all checkers: it has its own
sequential structures (`sequential.py`, `sequential_owned.py`), and does not ask the replicas how they decide.
"""

from __future__ import annotations

from ordercast.checker.replicated.base import ReplicaChecker
from ordercast.checker.replicated.panel import REPLICA_CHECKERS, ReplicaCheckers, check_replicas

__all__ = ["REPLICA_CHECKERS", "ReplicaChecker", "ReplicaCheckers", "check_replicas"]
