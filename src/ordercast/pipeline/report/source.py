"""The traces of a folder as one frame of events: finished runs as they are, live streams read in the executors.

A finished run is Parquet, which Spark reads itself. A live stream is an Arrow file per process and stretch of time; a
task reads it batch by batch and puts its times on the wall clock. Nothing is merged: no number of a report needs the
order between processes. Submissions that a killed process left in its journal alone are added.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from ordercast.model.errors import UsageError
from ordercast.trace.arrow import schema_with, table_from
from ordercast.trace.columns import RowKind
from ordercast.trace.folder import LiveRun, read_live, traces_in
from ordercast.trace.live_file import read_batches
from ordercast.trace.parquet import RunInfo, read_info
from ordercast.trace.records import Event
from ordercast.trace.to_rows import rows_from

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# What a report looks at; the rest of the columns is not even read.
COLUMNS = (
    *("run", "process", "idx", "t", "kind", "configuration_seq", "configuration_rep", "seq"),
    *("sender_process", "sender", "counter", "digest", "service", "size", "members", "reason", "name", "target"),
    *("flag", "round", "aru", "sent", "retransmitted", "requested"),
)
LIVE_RUN = 0


@dataclass(frozen=True, slots=True)
class Sources:
    """What there is to report on, found without Spark."""

    path: Path
    runs: list[tuple[Path, RunInfo]] = field(default_factory=list)
    live: LiveRun | None = None
    notes: list[str] = field(default_factory=list)  # sentences on what is missing or left out

    @property
    def is_live(self) -> bool:
        """Times are of the hosts' wall clocks, at least in part."""
        return self.live is not None or any(info.seed is None for _, info in self.runs)

    @property
    def traces(self) -> list[str]:
        """What is judged: that of which the events are."""
        live = [] if self.live is None else [self.live.folder]
        return [str(trace.absolute()) for trace in (*(file for file, _ in self.runs), *live)]

    @property
    def size(self) -> int:
        """Bytes of all files."""
        lives = [] if self.live is None else self.live.lives
        files = [file for file, _ in self.runs] + [file for life in lives for file, _ in life.files]
        return sum(file.stat().st_size for file in files)

    def infos(self) -> dict[int, RunInfo]:
        live = {} if self.live is None else {LIVE_RUN: self.live.info}
        return {info.run: info for _, info in self.runs} | live


def sources_in(path: Path) -> Sources:
    """UsageError names what cannot be read, and why."""
    if (path / "campaign.json").is_file():
        raise UsageError(f"{path} holds the results of a campaign, not traces: its page is {path / 'report.html'}")
    paths = traces_in(path)
    runs = [(file, read_info(file)) for file in paths if file.is_file()]
    live = read_live(path) if any(file.is_dir() for file in paths) else None
    notes: list[str] = []
    compacted = [file for file, info in runs if live is not None and info.options == live.info.options]
    if compacted:
        notes.append(f"the live traces beside {compacted[0].name} are left out: that file was made of them")
        live = None
    elif live is not None:
        notes += live.gaps()
    return Sources(path, runs, live, notes)


def events_of(spark: SparkSession, sources: Sources, scratch: Path) -> DataFrame:
    """One row per event, with `COLUMNS`. Live streams are turned into Parquet in `scratch` once, since every table
    of the report reads them."""
    frames = []
    if sources.runs:
        frames.append(spark.read.parquet(*(str(file.absolute()) for file, _ in sources.runs)).select(*COLUMNS))
    if sources.live is not None:
        frames += _live_frames(spark, sources.live, scratch)
    events = frames[0]
    for frame in frames[1:]:
        events = events.unionByName(frame)
    return events


def _live_frames(spark: SparkSession, live: LiveRun, scratch: Path) -> list[DataFrame]:
    files = [(str(path.absolute()), offset) for life in live.lives for path, offset in life.files]
    named = spark.createDataFrame(files, "path string, offset long").repartition(len(files))
    read = named.mapInArrow(_read_streams, _spark_schema())
    folder = str(scratch / "live")
    read.write.parquet(folder)
    frames = [spark.read.schema(_spark_schema()).parquet(folder)]
    rescued: list[Event] = [event for life in live.lives for event in life.rescued]
    if rescued:
        table = table_from(rows_from(rescued), schema_with({}), LIVE_RUN).select(list(COLUMNS))
        frames.append(spark.createDataFrame(table.replace_schema_metadata(None)))
    return frames


def _spark_schema() -> str:
    names = {"int8": "tinyint", "int16": "smallint", "int32": "int", "int64": "bigint", "bool": "boolean"}
    schema = schema_with({})
    types = {name: str(schema.field(name).type) for name in COLUMNS}
    return ", ".join(
        f"`{name}` {'array<bigint>' if kind.startswith('list') else names.get(kind, kind)}"
        for name, kind in types.items()
    )


def _read_streams(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """In an executor: names of files in, their events out, without the writer's own end."""
    for batch in batches:
        for named in batch.to_pylist():
            for rows in read_batches(Path(named["path"])):
                yield _on_wall_clock(rows, named["offset"])


def _on_wall_clock(rows: pa.RecordBatch, offset: int) -> pa.RecordBatch:
    rows = rows.filter(pc.not_equal(rows["kind"], int(RowKind.ENDED)))
    columns = [rows[name] for name in COLUMNS]
    columns[COLUMNS.index("t")] = pc.add(rows["t"], pa.scalar(offset, pa.int64()))
    # Spark's list elements have their own field name.
    schema = pa.schema([(name, rows.schema.field(name).type) for name in COLUMNS])
    return pa.RecordBatch.from_arrays(columns, schema=schema)
