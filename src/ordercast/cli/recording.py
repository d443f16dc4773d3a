"""One simulated run with everything that a command wants to know of it, even when the engine failed on the way."""

from __future__ import annotations

import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from ordercast.checker import Outcome, Verdict
from ordercast.cli.timeline import Timeline
from ordercast.model.errors import UsageError
from ordercast.sim.options import SimOptions
from ordercast.sim.run import Result, simulate
from ordercast.sim.run_options import options_json
from ordercast.trace.client_records import ClientEvent
from ordercast.trace.parquet import RunInfo, write_run
from ordercast.trace.records import Event
from ordercast.trace.replica_records import ReplicaEvent


@dataclass(slots=True)
class Recording:
    seed: int
    options: SimOptions
    command: str  # replays it
    timeline: Timeline = field(default_factory=Timeline)
    events: list[Event] = field(default_factory=list)
    client_events: list[ClientEvent] = field(default_factory=list)
    replica_events: list[ReplicaEvent] = field(default_factory=list)
    result: Result | None = None
    error: str | None = None  # the engine failed: the end of its traceback
    seconds: float = 0.0

    @property
    def is_valid(self) -> bool:
        return self.result is not None and self.result.is_valid

    @property
    def settled(self) -> bool:
        return self.result is not None and self.result.settled

    @property
    def verdict(self) -> Verdict:
        if self.result is None:
            last = (self.error or "").strip().split("\n")[-1]
            return Verdict(None, Outcome.UNKNOWN, f"the run ended early, the engine failed: {last}")
        return self.result.verdict

    @property
    def verdicts(self) -> list[Verdict]:
        return [] if self.result is None else self.result.verdicts

    @property
    def digest(self) -> str:
        return "" if self.result is None else self.result.digest

    @property
    def virtual_ns(self) -> int:
        if self.result is not None:
            return self.result.virtual_ns
        return self.timeline.entries[-1].at if self.timeline.entries else 0

    @property
    def inputs(self) -> int:
        return 0 if self.result is None else self.result.inputs

    @property
    def counts(self) -> Counter[str]:
        return Counter() if self.result is None else self.result.counts

    @property
    def submitted(self) -> int:
        return sum(tally.submitted for tally in self.timeline.tallies.values())

    @property
    def delivered(self) -> int:
        return sum(tally.delivered for tally in self.timeline.tallies.values())

    def info(self) -> RunInfo:
        return run_info(self.options, self.seed, self.command, self.digest)

    def write(self, folder: Path) -> Path:
        return write_run(folder, self.info(), self.events, self.client_events, self.replica_events)


def run_info(options: SimOptions, seed: int, command: str, digest: str = "") -> RunInfo:
    return RunInfo(seed, seed, options_json(options), command, digest)


def record(
    options: SimOptions,
    seed: int,
    command: str,
    *,
    keep_events: bool = False,
    watch: Callable[[Event], None] | None = None,
) -> Recording:
    """Run it; `command` replays it. A failure of the engine is a finding, not the end of the command."""
    recording = Recording(seed, options, command)

    def observe(event: Event) -> None:
        recording.timeline.observe(event)
        if keep_events:
            recording.events.append(event)
        if watch is not None:
            watch(event)

    began = time.perf_counter()
    try:
        recording.result = simulate(
            options,
            seed,
            observer=observe,
            client_observer=recording.client_events.append if keep_events else None,
            replica_observer=recording.replica_events.append if keep_events else None,
            on_fault=recording.timeline.strike,
        )
    except UsageError:
        raise
    except Exception:
        recording.error = traceback.format_exc(limit=-3)
    recording.seconds = max(time.perf_counter() - began, 1e-9)
    for at, process, alarm in recording.result.alarms if recording.result else ():
        recording.timeline.alarm(at, process, alarm)
    return recording
