"""What the tree engine promises and serves, and everything that can happen to it: its part of the catalogue."""

from __future__ import annotations

from ordercast.model.effects import AlarmKind
from ordercast.model.notes import Occurrence
from ordercast.model.promises import GroupPromise, Promise, ReplicaPromise
from ordercast.model.service import Service

ENGINE = "tree"
# Whoever was cut off when the control stream ended a configuration does not come along, though it is back.
NOT_PROMISED = {Promise.TOTAL_ORDER, Promise.TRANSITIONAL_SETS, Promise.FAIRNESS}
PROMISED = frozenset(Promise) - NOT_PROMISED
SERVICES = frozenset(Service) - {Service.UNRELIABLE}
GROUPS = frozenset(GroupPromise) - {GroupPromise.TOTAL_ORDER}
REPLICAS = frozenset(ReplicaPromise)
OCCURRENCES = tuple(what for what in Occurrence if what.name.startswith("TREE_"))
ALARMS: frozenset[AlarmKind] = frozenset({AlarmKind.IMPLAUSIBLE})
