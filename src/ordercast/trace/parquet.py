"""Runs on disk: one Parquet file per run and sort of evidence, written whole or not at all.

`write_run` puts a history into a folder as `run-<number>.parquet`, what clients and replicas saw beside it
(`clients-<number>.parquet`, `replicas-<number>.parquet`); `read_run` gives exactly the same events back. The file's
metadata holds the format version and what is known of the run (`RunInfo`): its seed, its options and the command
that replays it. Rows are sorted by (run, process, idx), so that Spark reads a process as a range and a run as a file.
Numbers that rise are kept as differences (DELTA_BINARY_PACKED), the rest as dictionaries, everything under zstd.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ordercast.trace.arrow import (
    FORMAT_KEY,
    TraceError,
    evidence_events,
    evidence_table,
    reason_of,
    rows_of,
    schema_with,
    table_from,
    version_problem,
)
from ordercast.trace.client_records import ClientEvent
from ordercast.trace.client_rows import CLIENTS
from ordercast.trace.columns import COLUMNS, Column
from ordercast.trace.event_rows import EventT, EventTable
from ordercast.trace.from_rows import events_from
from ordercast.trace.private_files import make_private_folder, open_private
from ordercast.trace.records import Event, Installed, Started
from ordercast.trace.replica_records import ReplicaEvent
from ordercast.trace.replica_rows import REPLICAS
from ordercast.trace.to_rows import rows_from

RUN_MAX = (1 << 63) - 1
_RUN_KEY = b"ordercast.run"
ROW_GROUP_SIZE = 1 << 20
_ENCODINGS = {"bool": "PLAIN", "binary": "DELTA_LENGTH_BYTE_ARRAY"}  # the rest are numbers


@dataclass(frozen=True, slots=True)
class RunInfo:
    """What a file says of its run beside the events."""

    run: int  # number of the run within its folder; a simulation uses its seed
    seed: int | None = None  # None: a live run
    options: Mapping[str, Any] = field(default_factory=dict)  # as JSON can carry them
    command: str = ""  # replays the run
    digest: str = ""  # of the whole history, as the recorder computed it
    evidence: list[str] = field(default_factory=list)  # tables beside that of the daemons: clients, replicas


@dataclass(frozen=True, slots=True)
class Run:
    info: RunInfo
    events: list[Event]
    clients: list[ClientEvent] = field(default_factory=list)
    replicas: list[ReplicaEvent] = field(default_factory=list)


def run_path(folder: Path, run: int) -> Path:
    return folder / f"run-{run}.parquet"


def evidence_path(run: Path, table: EventTable[Any]) -> Path:
    """Where the clients or replicas of a run are."""
    return run.with_name(f"{table.name}-{run.name.removeprefix('run-')}")


def runs_in(folder: Path) -> list[Path]:
    """The runs of a folder, by number. `folder` may also be the file of one run."""
    if folder.is_file():
        return [folder]
    if not folder.is_dir():
        raise TraceError(f"there is no folder {folder}: give the folder that was named by --trace")
    try:
        paths = [path for path in folder.iterdir() if path.name.startswith("run-") and path.suffix == ".parquet"]
    except OSError as error:
        raise TraceError(f"the folder {folder} cannot be read: {error.strerror}; check its permissions") from error
    if not paths:
        raise TraceError(
            f"the folder {folder} holds no traces (run-*.parquet): record one with --trace of `ordercast sim`, `up` or "
            "`daemon`"
        )
    return sorted(paths, key=lambda path: (len(path.name), path.name))


# Writing


def prepare_folder(folder: Path, info: RunInfo) -> None:
    """Create the folder and make sure that this run has its place in it; cheap, so ask before a long run."""
    try:
        make_private_folder(folder)
    except OSError as error:
        raise TraceError(f"the folder {folder} cannot be made: {error.strerror}; choose another") from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise TraceError(f"the folder {folder} cannot be written to: check its permissions, or choose another")
    path = run_path(folder, info.run)
    if path.exists():
        try:
            there = read_info(path)
        except TraceError as error:
            raise TraceError(f"{path} is there and no readable trace: remove it, or choose another folder") from error
        if (there.seed, there.options) != (info.seed, _plain(info.options)):
            raise TraceError(f"{path} holds another run of this number: remove it, or choose another folder")


def write_run(
    folder: Path,
    info: RunInfo,
    events: Iterable[Event],
    clients: Sequence[ClientEvent] = (),
    replicas: Sequence[ReplicaEvent] = (),
) -> Path:
    """Replaces an earlier recording of the same run; refuses to replace another run. The file of the daemons comes
    last: where it is, the others are."""
    prepare_folder(folder, info)
    path = run_path(folder, info.run)
    told = [event for event in clients if not isinstance(event, Started | Installed)]  # the daemons' own words
    tables: list[tuple[EventTable[Any], Sequence[Any]]] = [(CLIENTS, told), (REPLICAS, replicas)]
    beside = {table: found for table, found in tables if found}
    info = replace(info, evidence=[table.name for table in beside])
    for table, found in beside.items():
        made = partial(_evidence_table, table, found, info)
        _write_whole(evidence_path(path, table), made, table.order, parquet_options(table.columns))
    made = partial(_run_table, events, info)
    _write_whole(path, made, ("process", "idx"), parquet_options())
    return path


def _run_table(events: Iterable[Event], info: RunInfo) -> pa.Table:
    return table_from(rows_from(events), run_schema(info), info.run)


def _evidence_table(table: EventTable[EventT], events: Sequence[EventT], info: RunInfo) -> pa.Table:
    return evidence_table(events, table, run_schema(info, table.columns), info.run)


def _write_whole(
    path: Path, table_of: Callable[[], pa.Table], order: Sequence[str], options: Mapping[str, Any]
) -> None:
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.unfinished")
    try:
        _write_table(table_of().sort_by([(name, "ascending") for name in order]), unfinished, options)
        unfinished.replace(path)
    except (OSError, pa.ArrowException, OverflowError) as error:
        raise TraceError(f"{path} cannot be written: {reason_of(error)}; make room or choose another folder") from error
    finally:
        unfinished.unlink(missing_ok=True)


def run_schema(info: RunInfo, columns: Mapping[str, Column] = COLUMNS) -> pa.Schema:
    """The columns, and in the metadata what is known of the run."""
    return schema_with({_RUN_KEY: json.dumps(asdict(info), sort_keys=True).encode()}, columns)


def parquet_options(columns: Mapping[str, Column] = COLUMNS) -> dict[str, Any]:
    """How the columns of a table are kept."""
    return {
        "compression": "zstd",
        "use_dictionary": [_path(name, column) for name, column in columns.items() if column.repeats],
        "column_encoding": {
            _path(name, column): _ENCODINGS.get(column.type, "DELTA_BINARY_PACKED")
            for name, column in columns.items()
            if not column.repeats
        },
        "write_page_checksum": True,
    }


def _write_table(table: pa.Table, path: Path, options: Mapping[str, Any]) -> None:
    with open(path, "wb", opener=open_private) as file:
        pq.write_table(table, file, row_group_size=ROW_GROUP_SIZE, **options)
        file.flush()
        os.fsync(file.fileno())


def _path(name: str, column: Column) -> str:
    """Return what Parquet calls the values of a column."""
    return f"{name}.list.element" if column.type in ("processes", "names") else name


def _plain(options: Mapping[str, Any]) -> Any:
    return json.loads(json.dumps(options))


# Reading


def read_info(path: Path) -> RunInfo:
    """What the file says of its run, without reading the events."""
    try:
        metadata = pq.read_schema(path).metadata or {}
    except (OSError, pa.ArrowException) as error:
        raise TraceError(_unreadable(path, error)) from error
    return _info_from(path, metadata)


def read_run(path: Path) -> Run:
    info = read_info(path)
    return Run(info, read_events(path), read_evidence(path, info, CLIENTS), read_evidence(path, info, REPLICAS))


def read_events(path: Path) -> list[Event]:
    """What the daemons of a run did, in order."""
    return _read(path, lambda table: events_from(rows_of(table)))


def evidence_file(run: Path, info: RunInfo, table: EventTable[Any]) -> Path:
    """The file beside that of a run; TraceError when it is of another one."""
    path = evidence_path(run, table)
    if (replace(read_info(path), digest="")) != replace(info, digest=""):
        raise TraceError(f"{path} is not of the same run as {run.name}: record the run again")
    return path


def read_evidence(run: Path, info: RunInfo, table: EventTable[EventT]) -> list[EventT]:
    """What the clients or the replicas of a run saw, in order; nothing when it was not recorded."""
    return read_evidence_file(evidence_file(run, info, table), table) if table.name in info.evidence else []


def read_evidence_file(path: Path, table: EventTable[EventT]) -> list[EventT]:
    """The events of one file of clients or replicas, in order."""

    def events(rows: pa.Table) -> list[EventT]:
        found = evidence_events(rows, table)
        if found and max(found) >= len(found):
            raise ValueError("events are missing")
        return [found[n] for n in sorted(found)]

    return _read(path, events)


def _read(path: Path, events: Callable[[pa.Table], list[EventT]]) -> list[EventT]:
    try:
        return events(pq.read_table(path, partitioning=None, page_checksum_verification=True))
    except (OSError, pa.ArrowException) as error:
        raise TraceError(_unreadable(path, error)) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise TraceError(f"{path} is not a sound history ({reason_of(error)}): record the run again") from error


def _info_from(path: Path, metadata: Mapping[bytes, bytes]) -> RunInfo:
    if FORMAT_KEY not in metadata or _RUN_KEY not in metadata:
        raise TraceError(f"{path} is a Parquet file but not a trace of Ordercast: remove it from the folder")
    problem = version_problem(metadata)
    if problem is not None:
        raise TraceError(f"{path} {problem}")
    try:
        return RunInfo(**json.loads(metadata[_RUN_KEY]))
    except (ValueError, TypeError) as error:
        raise TraceError(f"{path} has a damaged description of its run: record the run again") from error


def _unreadable(path: Path, error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{path} cannot be read: {error.strerror}; check that it exists and its permissions"
    return f"{path} cannot be read, it is cut short or not a Parquet file ({reason_of(error)}): record the run again"
