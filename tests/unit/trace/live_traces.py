"""Live traces made for tests: histories split by process and written as live nodes would, whole or killed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest

from ordercast.checker import Outcome, Verdict
from ordercast.checker.panel import Checkers
from ordercast.model.ids import ProcessId, incarnation_of, node_of
from ordercast.model.promises import AnyPromise, Promise
from ordercast.trace import live_writer
from ordercast.trace.cluster import append_cluster_event
from ordercast.trace.live import LiveTrace
from ordercast.trace.records import Crashed, Ended, Event, Healed, Saturated, Unrecorded

MIB = 1 << 20
BEGIN = 1_700_000_000_000_000_000  # wall-clock time of moment zero
LATE = 1 << 40  # monotonic time when writers close: after everything


def set_clocks(patch: pytest.MonkeyPatch, wall_offset_ns: int = BEGIN) -> None:
    """The monotonic clock stands still, late; the wall clock is this much ahead of it."""
    clock = SimpleNamespace(time_ns=lambda: LATE + wall_offset_ns, monotonic_ns=lambda: LATE)
    patch.setattr(live_writer, "time", clock)


def new_trace(
    folder: Path, process: ProcessId, *, full: bool = True, file_size_max: int = 64 * MIB, files_max: int = 0
) -> LiveTrace:
    name = f"n{node_of(process)}"
    return LiveTrace(folder, name, process, full=full, file_size_max=file_size_max, files_max=files_max)


def name_of(process: ProcessId) -> str:
    return f"n{node_of(process)}'{incarnation_of(process)}"


def files_of(folder: Path, process: ProcessId) -> list[Path]:
    paths = folder.rglob(f"live-n{node_of(process)}-{incarnation_of(process)}-*.arrows")
    return sorted(paths, key=lambda path: int(path.stem.split("-")[-1]))


def ends_of_batches(path: Path) -> list[int]:
    """Where the schema ends, and each batch after it."""
    ends: list[int] = []
    with pa.OSFile(str(path)) as file:
        while True:
            try:
                pa.ipc.read_message(file)
            except EOFError:
                return ends
            ends.append(file.tell())


def killed(path: Path) -> None:
    """Take back the last batch, in which the writer said that it closed, and the end of the stream."""
    data = path.read_bytes()
    path.write_bytes(data[: ends_of_batches(path)[-2]])


def write_history(
    folder: Path,
    events: Iterable[Event],
    patch: pytest.MonkeyPatch,
    *,
    skews: Sequence[int] = (0,),
    full: bool = True,
    is_told: bool = True,
    flush_every: int = 7,
) -> None:
    """Every process into its own trace, below a folder of its node; whoever crashes is killed. `skews` are the errors
    of the clocks of the nodes, in turn. `is_told`: `cluster.jsonl` says what the simulation knows."""
    traces: dict[ProcessId, LiveTrace] = {}
    crashed = []
    for number, event in enumerate(events):
        if isinstance(event, Healed | Saturated | Ended):
            if is_told:
                _tell(folder, event, max(skews))
            continue
        assert not isinstance(event, Unrecorded)
        process = event.process
        if process not in traces:
            set_clocks(patch, BEGIN + skews[node_of(process) % len(skews)])
            traces[process] = new_trace(folder / f"n{node_of(process)}", process, full=full)
        if isinstance(event, Crashed):
            crashed.append(process)
            if is_told:
                append_cluster_event(folder, "crashed", at=BEGIN + event.at, process=name_of(process))
            continue
        traces[process].record(event)
        if number % flush_every == 0:
            traces[process].flush()
    for process, trace in traces.items():
        trace.flush()
        trace.close()
        assert trace.error is None
        if process in crashed:
            killed(files_of(folder, process)[-1])


def _tell(folder: Path, event: Healed | Saturated | Ended, skew: int) -> None:
    at = BEGIN + event.at
    match event:
        case Healed():
            append_cluster_event(folder, "healed", at=at, alive=[name_of(process) for process in event.alive])
        case Saturated():
            senders = [name_of(process) for process in event.senders]
            append_cluster_event(folder, "saturated", at=at, senders=senders, begins=event.begins)
        case Ended():
            append_cluster_event(folder, "ended", at=at + 2 * skew + 1)


KEPT = {Outcome.VALID, Outcome.NOT_EXERCISED}
# What is judged of views alone.
VIEW_PROMISES = (
    Promise.TRANSITIONAL_SETS,
    Promise.TRUTHFUL_SETS,
    Promise.VIEW_AGREEMENT,
    Promise.VIEW_MONOTONY,
)


def verdicts_on(events: Iterable[Event]) -> dict[AnyPromise | None, Verdict]:
    checkers = Checkers()
    for event in events:
        checkers.observe(event)
    return {verdict.promise: verdict for verdict in checkers.verdicts()}


def outcomes_on(events: Iterable[Event]) -> dict[AnyPromise | None, Outcome]:
    return {promise: verdict.outcome for promise, verdict in verdicts_on(events).items()}
