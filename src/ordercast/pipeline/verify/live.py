"""A folder of live traces as one finished run, merged by columns: no message becomes an object on the way.

`merged_run` reads the streams of the daemons twice: once for the order of events (`live_order.py`), once to write the
rows with their numbers, process by process. What the survey of the folder says (how lives ended, what is missing, what
`cluster.jsonl` tells) are few events, and stay events. In memory are the numbers of events and submissions, and one row
group. Clients and replicas: `live_evidence.py`.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ordercast.model.ids import NOBODY
from ordercast.pipeline.verify.live_evidence import write_evidence
from ordercast.pipeline.verify.live_order import LiveOrder, Stretch, batches_of, ints
from ordercast.pipeline.verify.rows import Ints
from ordercast.trace.arrow import TraceError, table_from
from ordercast.trace.columns import signed
from ordercast.trace.folder import LiveRun, read_live
from ordercast.trace.parquet import ROW_GROUP_SIZE, RunInfo, parquet_options, run_path, run_schema
from ordercast.trace.private_files import FOLDER_MODE
from ordercast.trace.records import Ended
from ordercast.trace.to_rows import rows_from

_RUN = 1


@contextmanager
def finished(traces: Sequence[str], spread: Callable[..., list[Any]]) -> Iterator[dict[str, str]]:
    """Make the folders of live traces among these into runs, a task for each, and give their files, by folder. They lie
    in the folder itself, which the executors see, and are removed at the end. A folder that cannot be read, or written
    to, is left as it is: whoever judges it says why."""
    folders = [trace for trace in traces if Path(trace).is_dir()]
    made = {folder: Path(folder) / f".merged-{os.getpid()}" for folder in folders}
    try:
        runs = spread(_finish, list(made.items()))
        yield {folder: run for folder, run in zip(made, runs, strict=True) if run is not None}
    finally:
        for out in made.values():
            shutil.rmtree(out, ignore_errors=True)


def _finish(task: tuple[str, Path]) -> str | None:
    folder, out = task
    try:
        out.mkdir(FOLDER_MODE)
        return str(merged_run(read_live(Path(folder)), out))
    except (TraceError, OSError, pa.ArrowException):
        return None


def merged_run(live: LiveRun, out: Path) -> Path:
    """Write the history, with what clients and replicas saw, as run 1 of the folder `out`."""
    order = LiveOrder(live)
    evidence = write_evidence(live.folder, out, _RUN, live.info.options)
    return _write(order, out, RunInfo(_RUN, None, live.info.options, evidence=evidence))


def _write(order: LiveOrder, out: Path, info: RunInfo) -> Path:
    numbers, count, is_complete, at = order.numbers()
    path, schema = run_path(out, info.run), run_schema(info)
    placed: dict[int, list[tuple[Stretch, Ints]]] = {}  # by process, as its number is in files
    for sequence, each in zip(order.lines, numbers, strict=True):
        first = 0
        for stretch in sequence.stretches:
            end = first + len(stretch.times)
            placed.setdefault(signed(stretch.process), []).append((stretch, each[first:end]))
            first = end
    end_event = Stretch(NOBODY, np.array([at]), [Ended(at, is_complete)])
    placed.setdefault(0, []).append((end_event, np.array([count])))
    quickly = parquet_options() | {"compression": "lz4", "write_page_checksum": False}  # it is read once, at once
    with pq.ParquetWriter(path, schema, **quickly) as writer:
        groups = _RowGroups(writer)
        for process in sorted(placed):
            idx = 0
            inorder = sorted(placed[process], key=lambda pair: int(pair[1][0]) if len(pair[1]) else -1)
            for stretch, own in inorder:
                for table in _tables(stretch, own, schema):
                    groups.add(_with_idx(table, idx))
                    idx += len(table)
        groups.flush()
    return path


def _tables(stretch: Stretch, numbers: Ints, schema: pa.Schema) -> Iterator[pa.Table]:
    """The rows of a stretch, in order, with their numbers in the history."""
    if stretch.events is not None:
        yield _placed(_inorder(table_from(rows_from(stretch.events), schema, _RUN)), numbers, 0)
        return
    assert stretch.life is not None
    first = 0
    for rows, offset in batches_of(stretch.life, None):
        rows = _inorder(rows)
        local = ints(rows["n"])
        rows = _set(rows, "n", local - local.min())
        count = int(local.max() - local.min()) + 1
        yield (
            _placed(rows, numbers[first : first + count], offset).replace_schema_metadata(schema.metadata).cast(schema)
        )
        first += count


def _inorder(rows: pa.Table) -> pa.Table:
    """The rows of one process, event by event."""
    if (np.diff(ints(rows["idx"])) > 0).all():
        return rows
    return rows.sort_by([("idx", "ascending")])


def _placed(rows: pa.Table, numbers: Ints, offset: int) -> pa.Table:
    """The rows that count, with the numbers of their events in the history; `n` counts the events from 0."""
    own = numbers[ints(rows["n"])]
    rows = _set(_set(rows, "n", own), "t", ints(rows["t"]) + offset)
    rows = _set(rows, "run", np.full(len(rows), _RUN))
    return rows if (own >= 0).all() else rows.filter(pa.array(own >= 0))


def _set(rows: pa.Table, name: str, values: Ints) -> pa.Table:
    return rows.set_column(rows.column_names.index(name), name, pa.array(values, pa.int64()))


def _with_idx(table: pa.Table, first: int) -> pa.Table:
    return _set(table, "idx", np.arange(first, first + len(table)))


class _RowGroups:
    """Gathers tables until they fill a row group."""

    def __init__(self, writer: pq.ParquetWriter) -> None:
        self._writer = writer
        self._tables: list[pa.Table] = []
        self._count = 0

    def add(self, table: pa.Table) -> None:
        self._tables.append(table)
        self._count += len(table)
        if self._count >= ROW_GROUP_SIZE:
            self.flush()

    def flush(self) -> None:
        if self._tables:
            self._writer.write_table(pa.concat_tables(self._tables), row_group_size=ROW_GROUP_SIZE)
        self._tables, self._count = [], 0
