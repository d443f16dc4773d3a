"""The judges read what was recorded: the daemons' traces, what clients were told, what replicas did."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ordercast.checker import Outcome, Verdict, combined
from ordercast.checker.groups.panel import GroupCheckers
from ordercast.checker.replicated.panel import check_replicas
from ordercast.cli.check import judge
from ordercast.demo.dictionaries import Audit
from ordercast.demo.evidence import Evidence
from ordercast.trace.client_records import ClientEvent
from ordercast.trace.records import Event, Installed, Started
from ordercast.trace.replica_records import ReplicaEvent


@dataclass(frozen=True, slots=True)
class Panel:
    """Some judges and what they say."""

    name: str
    evidence: str  # what they have read
    verdicts: Sequence[Verdict]

    @property
    def verdict(self) -> Verdict:
        return combined(self.verdicts)

    @property
    def is_valid(self) -> bool:
        return self.verdict.outcome is Outcome.VALID


def judge_all(traces: Path, evidence: Evidence) -> list[Panel]:
    order, views = _judge_order(traces)
    return [
        order,
        _judge_groups(views, evidence.clients),
        _judge_replicas(evidence.replicas),
        _judge_dictionaries(evidence.audit),
    ]


def _judge_order(traces: Path) -> tuple[Panel, list[Started | Installed]]:
    """As `ordercast check` does. Return what the judges of the groups need to know of the daemons, too."""
    views: list[Started | Installed] = []

    def watch(event: Event) -> None:
        if isinstance(event, Started | Installed):
            views.append(event)

    judged = judge(traces, watch)
    evidence = f"{judged.events:,} events of the daemons, {judged.deliveries:,} deliveries"
    return Panel("order and views", evidence, judged.verdicts), views


def _judge_groups(views: Iterable[Started | Installed], events: Sequence[ClientEvent]) -> Panel:
    checkers = GroupCheckers()
    for event in (*views, *events):
        checkers.observe(event)
    return Panel("groups", f"{len(events):,} events of the clients", checkers.verdicts())


def _judge_replicas(events: Sequence[ReplicaEvent]) -> Panel:
    return Panel("replicated state", f"{len(events):,} calls, answers and applied commands", check_replicas(events))


def _judge_dictionaries(audit: Audit) -> Panel:
    return Panel(
        "dictionaries", f"{len(audit.digests)} of them, {audit.confirmed:,} confirmed entries", audit.verdicts()
    )
