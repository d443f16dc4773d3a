"""What only somebody outside knows of a live cluster: who was killed, when the network was whole, when all was over.

A test harness, or an operator, appends lines to `cluster.jsonl` in the folder of the traces, one JSON object each:

    {"event": "crashed", "at": 1760000000000000000, "process": "n2"}
    {"event": "healed", "at": …, "alive": ["n1", "n3"]}
    {"event": "saturated", "at": …, "senders": ["n1", "n3"], "begins": true}
    {"event": "calm", "at": …}
    {"event": "settled", "at": …}
    {"event": "ended", "at": …}

`at` is wall-clock time in nanoseconds. A process is named by its node's name, which means the life that ran at that
time, or by node's name and incarnation: `n2'1760000000000`. Without `alive`, those are alive that run by then.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from ordercast.trace.arrow import TraceError, reason_of
from ordercast.trace.private_files import make_private_folder, open_private

CLUSTER_FILE = "cluster.jsonl"


class ClusterEventKind(Enum):
    CRASHED = "crashed"
    HEALED = "healed"
    SATURATED = "saturated"
    CALM = "calm"
    SETTLED = "settled"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class ClusterEvent:
    kind: ClusterEventKind
    at: int
    processes: tuple[str, ...] | None = None  # who crashed, is alive, or sends without pause; None: not said
    begins: bool = True  # of a saturation


def append_cluster_event(
    folder: Path,
    event: str,
    *,
    at: int | None = None,
    process: str | None = None,
    alive: Sequence[str] | None = None,
    senders: Sequence[str] | None = None,
    begins: bool | None = None,
) -> None:
    """Say that something happened: now, unless `at` says when. TraceError when it would not be understood."""
    given = {"process": process, "alive": alive, "senders": senders, "begins": begins}
    document = {"event": event, "at": time.time_ns() if at is None else at}
    document.update({name: value for name, value in given.items() if value is not None})
    path = folder / CLUSTER_FILE
    line = json.dumps(document, default=list)
    _event_from(json.loads(line), str(path))
    try:
        make_private_folder(folder)
        file = open_private(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            os.write(file, f"{line}\n".encode())
        finally:
            os.close(file)
    except OSError as error:
        raise TraceError(f"{path} cannot be written: {reason_of(error)}; check its permissions") from error


def read_cluster_events(folder: Path) -> list[ClusterEvent]:
    """In the order of the file; none when there is no such file. A last line without an end was not finished, and is
    left out."""
    path = folder / CLUSTER_FILE
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise TraceError(f"{path} cannot be read: {reason_of(error)}; check its permissions") from error
    events = []
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        if line.strip() and line.endswith("\n"):
            where = f"{path}, line {number}"
            try:
                document = json.loads(line)
            except ValueError as error:
                raise TraceError(f"{where} is not JSON ({reason_of(error)}): correct or remove it") from error
            events.append(_event_from(document, where))
    return events


def _event_from(document: Any, where: str) -> ClusterEvent:
    try:
        kind = ClusterEventKind(document["event"])
        if type(document["at"]) is not int:
            raise ValueError("at is not a number of nanoseconds")
        return ClusterEvent(kind, document["at"], _processes_from(kind, document), _begins_from(kind, document))
    except KeyError as error:
        raise TraceError(f"{where}: {error.args[0]} is missing; see docs/reference/trace-records.md") from error
    except (ValueError, TypeError) as error:
        raise TraceError(f"{where}: {reason_of(error)}; see docs/reference/trace-records.md") from error


def _processes_from(kind: ClusterEventKind, document: Any) -> tuple[str, ...] | None:
    if kind is ClusterEventKind.CRASHED:
        names: Any = [document["process"]]
    elif kind is ClusterEventKind.SATURATED:
        names = document["senders"]
    elif kind is ClusterEventKind.HEALED and "alive" in document:
        names = document["alive"]
    else:
        return None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError("a process is named by a string")
    return tuple(names)


def _begins_from(kind: ClusterEventKind, document: Any) -> bool:
    begins = document["begins"] if kind is ClusterEventKind.SATURATED else True
    if not isinstance(begins, bool):
        raise ValueError("begins is neither true nor false")
    return begins
