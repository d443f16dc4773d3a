"""The judges read what was recorded: what daemons, clients and replicas did and were told, all in one folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ordercast.checker import Outcome, Verdict, combined
from ordercast.cli.check import judge
from ordercast.demo.dictionaries import Audit
from ordercast.model.promises import GroupPromise, Promise, ReplicaPromise


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


def judge_all(traces: Path, audit: Audit) -> list[Panel]:
    """As `ordercast check` does; and the dictionaries were looked at from outside."""
    judged = judge(traces)
    texts = {
        Promise: f"{judged.events:,} events of the daemons, {judged.deliveries:,} deliveries",
        GroupPromise: f"{judged.client_events:,} events of the clients",
        ReplicaPromise: f"{judged.replica_events:,} calls, answers and applied commands",
    }
    names = {Promise: "order and views", GroupPromise: "groups", ReplicaPromise: "replicated state"}
    panels = [
        Panel(names[kind], text, [verdict for verdict in judged.verdicts if isinstance(verdict.promise, kind)])
        for kind, text in texts.items()
    ]
    compared = f"{len(audit.digests)} of them, {audit.confirmed:,} confirmed entries"
    return [*panels, Panel("dictionaries", compared, audit.verdicts())]
