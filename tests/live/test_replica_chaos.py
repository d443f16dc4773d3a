"""A few seconds of chaos with replicas; `make chaos-replicated` has more."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from rig import why_not
from rig.replica_chaos import replica_chaos

from ordercast.checker import Outcome, combined
from ordercast.checker.replicated.states import StateCheckers
from ordercast.trace.evidence_folder import history_in
from ordercast.trace.replica_records import Applied, ReplicaEvent, ReplicaStarted, Returned
from ordercast.trace.replica_rows import REPLICAS

pytestmark = pytest.mark.skipif(why_not() is not None, reason=why_not() or "")


def test_replicas_are_equal_and_nothing_confirmed_is_lost(tmp_path: Path) -> None:
    result = replica_chaos(3, 4.0, 3, tmp_path, None)
    assert result.is_valid, f"{result.error or result.verdict.sentence}\n{result.log}"
    assert sum(result.kills.values()) > 0
    assert all(counts["confirmed"] > 0 for counts in result.counts.values())
    _doctored_histories_are_rejected(tmp_path / "traces")


def _doctored_histories_are_rejected(traces: Path) -> None:
    """What was recorded is enough to find a fault, if there were one."""
    events = history_in(traces, REPLICAS)
    counters = {event.life for event in events if isinstance(event, ReplicaStarted) and event.group == "counter"}
    answers = [event for event in events if isinstance(event, Returned) and event.life in counters]
    returned = next(event for event in answers if event.result)
    told_wrong = [replace(event, result=b"\1") if event is returned else event for event in events]
    applied = next(event for event in events if isinstance(event, Applied) and event.position == 5)
    never_applied = [event for event in events if event is not applied]
    for doctored in (told_wrong, never_applied):
        assert outcome_of(doctored) is Outcome.INVALID


def outcome_of(events: list[ReplicaEvent]) -> Outcome:
    checkers = StateCheckers()
    for event in events:
        checkers.observe(event)
    return combined(checkers.verdicts()).outcome
