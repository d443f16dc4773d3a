"""What the judges get of a demo, beside the daemons' traces."""

from __future__ import annotations

from dataclasses import dataclass

from ordercast.demo.dictionaries import Audit
from ordercast.trace.client_records import ClientEvent
from ordercast.trace.replica_records import ReplicaEvent


@dataclass(frozen=True, slots=True)
class Evidence:
    clients: list[ClientEvent]
    replicas: list[ReplicaEvent]
    audit: Audit
