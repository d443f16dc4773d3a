"""Runs on disk: one Parquet file per run, written whole or not at all.

`write_run` puts a history into a folder as `run-<number>.parquet`; `read_run` gives exactly the same events back. The
file's metadata holds the format version and what is known of the run (`RunInfo`): its seed, its options and the command
that replays it. Rows are sorted by (run, process, idx), so that Spark reads a process as a range and a run as a file.
Numbers that rise are kept as differences (DELTA_BINARY_PACKED), the rest as dictionaries, everything under zstd.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ordercast.trace.arrow import FORMAT_KEY, TraceError, reason_of, rows_of, schema_with, table_from, version_problem
from ordercast.trace.columns import COLUMNS
from ordercast.trace.from_rows import events_from
from ordercast.trace.private_files import make_private_folder, open_private
from ordercast.trace.records import Event
from ordercast.trace.to_rows import rows_from

RUN_MAX = (1 << 63) - 1
_RUN_KEY = b"ordercast.run"
ROW_GROUP_SIZE = 1 << 20


@dataclass(frozen=True, slots=True)
class RunInfo:
    """What a file says of its run beside the events."""

    run: int  # number of the run within its folder; a simulation uses its seed
    seed: int | None = None  # None: a live run
    options: Mapping[str, Any] = field(default_factory=dict)  # as JSON can carry them
    command: str = ""  # replays the run
    digest: str = ""  # of the whole history, as the recorder computed it


@dataclass(frozen=True, slots=True)
class Run:
    info: RunInfo
    events: list[Event]


def run_path(folder: Path, run: int) -> Path:
    return folder / f"run-{run}.parquet"


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
        raise TraceError(f"the folder {folder} holds no traces (run-*.parquet): record one with sim --trace {folder}")
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


def write_run(folder: Path, info: RunInfo, events: Iterable[Event]) -> Path:
    """Replaces an earlier recording of the same run; refuses to replace another run."""
    prepare_folder(folder, info)
    path = run_path(folder, info.run)
    unfinished = folder / f".{path.name}.{os.getpid()}.unfinished"
    try:
        table = table_from(rows_from(events), run_schema(info), info.run)
        table = table.sort_by([("process", "ascending"), ("idx", "ascending")])
        _write_table(table, unfinished)
        unfinished.replace(path)
    except (OSError, pa.ArrowException, OverflowError) as error:
        raise TraceError(f"{path} cannot be written: {reason_of(error)}; make room or choose another folder") from error
    finally:
        unfinished.unlink(missing_ok=True)
    return path


def run_schema(info: RunInfo) -> pa.Schema:
    """The columns, and in the metadata what is known of the run."""
    return schema_with({_RUN_KEY: json.dumps(asdict(info), sort_keys=True).encode()})


def parquet_options() -> dict[str, Any]:
    """How the columns are kept."""
    return {
        "compression": "zstd",
        "use_dictionary": [_path(name) for name, column in COLUMNS.items() if column.repeats],
        "column_encoding": _encodings(),
        "write_page_checksum": True,
    }


def _write_table(table: pa.Table, path: Path) -> None:
    with open(path, "wb", opener=open_private) as file:
        pq.write_table(table, file, row_group_size=ROW_GROUP_SIZE, **parquet_options())
        file.flush()
        os.fsync(file.fileno())


def _encodings() -> dict[str, str]:
    encodings = {"flag": "PLAIN"}  # single bits
    for name, column in COLUMNS.items():
        if not column.repeats and name not in encodings:
            encodings[_path(name)] = "DELTA_BINARY_PACKED"
    return encodings


def _path(name: str) -> str:
    """Return what Parquet calls the values of a column."""
    return f"{name}.list.element" if COLUMNS[name].type in ("processes", "names") else name


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
    try:
        table = pq.read_table(path, partitioning=None, page_checksum_verification=True)
        events = events_from(rows_of(table))
    except (OSError, pa.ArrowException) as error:
        raise TraceError(_unreadable(path, error)) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise TraceError(f"{path} is not a sound history ({reason_of(error)}): record the run again") from error
    return Run(info, events)


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
