"""The records of all replicas of a run put together into one history for each structure, and judged.

What is applied is found to be somebody's call by its bytes, which no life uses twice; what nobody called is a replica's
own news. A life ends where the next one of its name begins.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from ordercast.checker.replicated import ReplicaCheckers
from ordercast.checker.verdict import Verdict
from ordercast.model.ids import Instant
from ordercast.trace.records import Ended, Healed
from ordercast.trace.replica_records import (
    Applied,
    Called,
    ReplicaEnded,
    ReplicaEvent,
    ReplicaStarted,
    Returned,
)
from rig.replica_recorder import read_events


def history_of(folder: Path, kind: str, *, is_complete: bool) -> list[ReplicaEvent]:
    """In the order of time."""
    lives = [list(read_events(path)) for path in sorted(folder.glob(f"{kind}-*.events"))]
    lives = [life for life in lives if life]
    calls = {
        (event.life, event.operation): event.request for life in lives for event in life if isinstance(event, Called)
    }
    events = [_named(event, calls) for life in lives for event in life]
    events += _ends(lives)
    events.sort(key=_at)
    if is_complete and events:
        last = _at(events[-1])
        events += [Healed(Instant(last), ()), Ended(Instant(last), complete=True)]
    return events


def _named(event: ReplicaEvent, calls: dict[tuple[int, bytes], int]) -> ReplicaEvent:
    if isinstance(event, Applied):
        return replace(event, request=calls.get((event.caller, event.operation), 0))
    return event


def _ends(lives: list[list[ReplicaEvent]]) -> Iterator[ReplicaEvent]:
    starts = sorted(
        (life[0].name, life[0].at, life[0].life, _at(life[-1])) for life in lives if isinstance(life[0], ReplicaStarted)
    )
    for (name, _, life, last), (other, at, _, _) in pairwise(starts):
        if name == other:
            assert last < at, f"two lives of {name} at once"
            yield ReplicaEnded(Instant(at - 1), life)


def _at(event: ReplicaEvent) -> Instant:
    return event.at


def verdicts_on(folder: Path, kind: str, *, is_complete: bool) -> tuple[list[Verdict], dict[str, int]]:
    """And how much there was to judge."""
    events = history_of(folder, kind, is_complete=is_complete)
    checkers = ReplicaCheckers()
    for event in events:
        checkers.observe(event)
    counts = {
        "lives": sum(isinstance(event, ReplicaStarted) for event in events),
        "called": sum(isinstance(event, Called) for event in events),
        "confirmed": sum(isinstance(event, Returned) for event in events),
        "applied": max((event.position for event in events if isinstance(event, Applied)), default=0),
    }
    return checkers.verdicts(), counts
