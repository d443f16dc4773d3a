"""One file of a live trace: its name, what it says of itself, and the batches that can be read of it.

`live-<node name>-<incarnation>-<number>.arrows` is an Arrow IPC stream with the columns of `columns.py`; its messages
are in runs (`runs.py`), which this module gives as rows. Each batch holds whole events, and was written in one go; a
process that is killed leaves whole batches and perhaps a piece of one, which is no part of the trace. `n` and `idx`
number the events and rows of this process alone, over all its files; `t` is the monotonic clock of its host. `live.py`
writes such files, `folder.py` puts them together.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from ordercast.model.ids import ProcessId, incarnation_of
from ordercast.trace.arrow import FORMAT_KEY, TraceError, reason_of, schema_with, version_problem
from ordercast.trace.client_rows import CLIENTS
from ordercast.trace.columns import COLUMNS
from ordercast.trace.replica_rows import REPLICAS
from ordercast.trace.runs import RUN_COLUMNS, exploded

_LIVE_KEY = b"ordercast.live"
_NAME = re.compile(r"(?P<table>live|clients|replicas)-(?P<name>.+)-(?P<incarnation>\d+)-(?P<number>\d+)\.arrows")
_END_OF_STREAM = b"\xff\xff\xff\xff\0\0\0\0"
FULL, CONTROL = "full", "control"
ROWS_GATHERED = 16384
LIVE = "live"  # the table of the daemons
BLAKE2B, MULTILINEAR = "blake2b", "multilinear"  # `digest_of` in records.py; `digests.py`
RUNS_VERSION = 3  # of files with runs of messages
_COLUMNS = {LIVE: {**COLUMNS, **RUN_COLUMNS}, CLIENTS.name: CLIENTS.columns, REPLICAS.name: REPLICAS.columns}


@dataclass(frozen=True, slots=True)
class LiveInfo:
    """What a file says of itself."""

    name: str  # of the node, or of the program that records its clients or replicas
    process: ProcessId  # of such a program the incarnation alone
    level: str  # FULL or CONTROL
    number: int  # of the file among those of its process, from 1
    wall_offset_ns: int  # wall clock less monotonic clock when the file was begun
    table: str = LIVE  # whose evidence it is
    clock: str = ""  # names the monotonic clock: programs on one host have the same
    digest: str = BLAKE2B  # which digest its messages have

    def schema(self) -> pa.Schema:
        metadata = {_LIVE_KEY: json.dumps(asdict(self), sort_keys=True).encode()}
        if self.table == LIVE:
            metadata[FORMAT_KEY] = str(RUNS_VERSION).encode()
        return schema_with(metadata, _COLUMNS[self.table])


@dataclass(frozen=True, slots=True, order=True)
class FileName:
    """What the name alone says; sorted by age within a node."""

    name: str
    incarnation: int
    number: int
    table: str = LIVE

    def __str__(self) -> str:
        return f"{self.table}-{self.name}-{self.incarnation}-{self.number}.arrows"

    @property
    def journal(self) -> str:
        """Name of the file of the process's last submissions (`journal.py`), which lies beside."""
        return f"live-{self.name}-{self.incarnation}.submitted"


def file_name_from(path: Path) -> FileName | None:
    """None when it is not the name of a live trace."""
    match = _NAME.fullmatch(path.name)
    if match is None:
        return None
    return FileName(match["name"], int(match["incarnation"]), int(match["number"]), match["table"])


def stem_of(info: LiveInfo) -> str:
    """How the names of all files of one recording begin."""
    return f"{info.table}-{info.name}-{incarnation_of(info.process)}"


def journal_path(folder: Path, name: str, process: ProcessId) -> Path:
    return folder / FileName(name, incarnation_of(process), 0).journal


def read_info(path: Path) -> LiveInfo | None:
    """None when the file was cut before it could say anything."""
    with _opened(path) as file:
        schema = _schema_of(path, file)
    return None if schema is None else _info_from(path, schema)


def read_batches(path: Path) -> Iterator[pa.RecordBatch]:
    """Every whole batch; small ones in a row come as one, since whoever reads them pays for each. Where events are
    missing between two, a new one begins."""
    gathered: list[pa.RecordBatch] = []
    rows = following = 0
    for batch in whole_batches(path):
        first, last = pc.min_max(batch["n"]).as_py().values()
        if rows and (rows + len(batch) > ROWS_GATHERED or first != following):
            yield _joined(gathered)
            gathered, rows = [], 0
        gathered.append(batch)
        rows += len(batch)
        following = last + 1
    if gathered:
        yield _joined(gathered)


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    return pa.Table.from_batches(batches).combine_chunks().to_batches()[0]


def whole_batches(path: Path) -> Iterator[pa.RecordBatch]:
    """Every whole batch, each message a row of its own. They are counted first: what a crash left behind the last of
    them is no damage. Threads, which would read the columns of a batch side by side, take longer than that for small
    ones."""
    with _opened(path) as file:
        if _schema_of(path, file) is None:
            return
        count = 0
        while _next_message(file) is not None:
            count += 1
        file.seek(0)
        try:
            stream = pa.ipc.open_stream(file, options=pa.ipc.IpcReadOptions(use_threads=False))
            for _ in range(count):
                yield exploded(stream.read_next_batch())
        except (pa.ArrowException, OSError, StopIteration, ValueError) as error:
            raise TraceError(
                f"{path} is damaged ({reason_of(error)}): remove it, then what it held counts as missing"
            ) from error


def is_finished(path: Path) -> bool:
    """Its writer closed it: nothing is cut off. (A batch ends in these bytes by chance, once in billions; then the
    numbers of the events still show that some are missing.)"""
    with _opened(path) as file:
        size = file.size()
        if size < len(_END_OF_STREAM):
            return False
        file.seek(size - len(_END_OF_STREAM))
        return bool(file.read() == _END_OF_STREAM)


def _opened(path: Path) -> pa.NativeFile:
    try:
        return pa.OSFile(str(path))
    except OSError as error:
        raise TraceError(f"{path} cannot be read: {reason_of(error)}; check its permissions") from error


def _next_message(file: pa.NativeFile) -> pa.Message | None:
    """None at the end, be it that of the stream or that of a torn batch."""
    try:
        return pa.ipc.read_message(file)
    except (EOFError, pa.ArrowException, OSError):
        return None


def _schema_of(path: Path, file: pa.NativeFile) -> pa.Schema | None:
    message = _next_message(file)
    if message is None:
        if file.size() and not _is_torn_head(path):
            raise TraceError(f"{path} is no Arrow stream: remove it from the folder")
        return None
    try:
        return pa.ipc.read_schema(message)
    except (pa.ArrowException, OSError) as error:
        raise TraceError(f"{path} is no Arrow stream ({reason_of(error)}): remove it from the folder") from error


def _is_torn_head(path: Path) -> bool:
    """A file that begins as every stream does, and ends too soon."""
    with path.open("rb") as file:
        return _END_OF_STREAM.startswith(file.read(4))


def _info_from(path: Path, schema: pa.Schema) -> LiveInfo:
    metadata = schema.metadata or {}
    if FORMAT_KEY not in metadata or _LIVE_KEY not in metadata:
        raise TraceError(f"{path} is an Arrow stream but not a trace of Ordercast: remove it from the folder")
    problem = version_problem(metadata, RUNS_VERSION)
    if problem is not None:
        raise TraceError(f"{path} {problem}")
    try:
        return LiveInfo(**json.loads(metadata[_LIVE_KEY]))
    except (ValueError, TypeError) as error:
        raise TraceError(f"{path} has a damaged description of itself: remove it from the folder") from error
