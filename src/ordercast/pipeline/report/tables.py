"""Runs the questions of a report on Spark, and keeps the answers: small Arrow tables, each a Parquet file.

Times in them are nanoseconds from the start of the run; `runs` has when that was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from ordercast.model.ids import NOBODY
from ordercast.pipeline.page.scales import round_step
from ordercast.pipeline.report import messages, token, views
from ordercast.trace.columns import RowKind

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

BUCKETS = 120  # stretches of time that the longest run is cut into
ROWS_PER_PARTITION = 250_000  # of a shuffle: many empty ones would cost more than the work
PARTITIONS_MAX = 200


@dataclass(frozen=True, slots=True)
class Tables:
    """What the page is drawn from. Columns are in docs/reference/report.md."""

    runs: pa.Table
    promises: pa.Table  # how many runs kept each
    lives: pa.Table  # of each process
    latency: pa.Table
    latency_histogram: pa.Table
    throughput: pa.Table
    deliverers: pa.Table
    token: pa.Table
    visit_sizes: pa.Table
    views: pa.Table
    view_reasons: pa.Table
    timeline: pa.Table  # who was in which view, of the run with the most view changes
    bucket_ns: int

    def write(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for name in NAMES:
            table: pa.Table = getattr(self, name)
            table = table.replace_schema_metadata({b"ordercast.bucket_ns": str(self.bucket_ns).encode()})
            unfinished = folder / f".{name}.parquet.unfinished"
            pq.write_table(table, unfinished, compression="zstd")
            unfinished.replace(folder / f"{name}.parquet")

    @classmethod
    def read(cls, folder: Path) -> Tables:
        tables = {name: pq.read_table(folder / f"{name}.parquet") for name in NAMES}
        bucket_ns = int(tables["runs"].schema.metadata[b"ordercast.bucket_ns"])
        return cls(**tables, bucket_ns=bucket_ns)


NAMES = tuple(field.name for field in fields(Tables) if field.name != "bucket_ns")


def tables_of(
    events: DataFrame, promises: pa.Table, told: Callable[[int, str], None] = lambda done, name: None
) -> Tables:
    """`told` hears how many of the tables are done, and which is next."""
    asked = _Asked(told)
    runs = asked("runs", _runs(events)).sort_by("run")
    with _partitions_for(events.sparkSession, sum(runs["rows"].to_pylist())):
        return _tables_of(events, runs, promises, asked)


@contextmanager
def _partitions_for(session: SparkSession, rows: int) -> Iterator[None]:
    """The session may be a lent one: it is given back as it was."""
    before = session.conf.get("spark.sql.shuffle.partitions")
    count = min(PARTITIONS_MAX, max(session.sparkContext.defaultParallelism, rows // ROWS_PER_PARTITION))
    session.conf.set("spark.sql.shuffle.partitions", str(count))
    try:
        yield
    finally:
        session.conf.set("spark.sql.shuffle.partitions", str(before))


def _tables_of(events: DataFrame, runs: pa.Table, promises: pa.Table, asked: _Asked) -> Tables:
    bucket_ns = _bucket_ns(runs)
    placed = _placed(events, runs, bucket_ns)
    joined = messages.latencies(placed).persist()
    visited = token.visits(placed).persist()
    changed = views.changes(views.installs(placed)).persist()
    try:
        answers = {
            "lives": asked("lives", _lives(placed)).sort_by([("run", "ascending"), ("process", "ascending")]),
            "latency": asked("latency", messages.latency_summary(joined)),
            "latency_histogram": asked("latency_histogram", messages.latency_histogram(joined)),
            "throughput": asked("throughput", messages.throughput(placed)),
            "deliverers": asked("deliverers", messages.deliverers(placed)),
            "token": asked("token", token.token_summary(visited)),
            "visit_sizes": asked("visit_sizes", token.visit_sizes(visited)).sort_by("sent"),
            "views": asked("views", changed).sort_by([("run", "ascending"), ("first_installed", "ascending")]),
            "view_reasons": asked("view_reasons", views.reasons(changed)),
        }
        featured = featured_run(runs, answers["views"])
        told_of = views.life_events(placed).where(f"run = {featured}")
        names = ("run", "process", "idx", "t", "kind", "configuration_seq", "configuration_rep", "members", "reason")
        timeline = asked("timeline", told_of.select(*names))
    finally:
        for frame in (joined, visited, changed):
            frame.unpersist()
    timeline = timeline.sort_by([("process", "ascending"), ("idx", "ascending")])
    return Tables(runs, promises, **answers, timeline=timeline, bucket_ns=bucket_ns)


class _Asked:
    """Runs one question after the other."""

    def __init__(self, told: Callable[[int, str], None]) -> None:
        self._told = told
        self._done = 0

    def __call__(self, name: str, frame: DataFrame) -> pa.Table:
        self._told(self._done, name)
        self._done += 1
        return frame.toArrow()


def featured_run(runs: pa.Table, changed: pa.Table) -> int:
    """The run whose membership is drawn: the one with the most view changes, of equals the first."""
    counts = dict.fromkeys(runs["run"].to_pylist(), 0)
    for run, size in zip(changed["run"].to_pylist(), changed["size"].to_pylist(), strict=True):
        counts[run] += size > 1
    most: int = max(counts, key=lambda run: (counts[run], -run))
    return most


def _count_of(kind: RowKind) -> Column:
    """Rows of this kind; a batch without messages is none."""
    from pyspark.sql import functions as f

    is_one = f.col("kind") == int(kind)
    if kind in (RowKind.SUBMITTED, RowKind.DELIVERED):
        is_one &= f.col("digest").isNotNull()
    return f.sum(f.when(is_one, 1).otherwise(0))


def _runs(events: DataFrame) -> DataFrame:
    from pyspark.sql import functions as f

    return events.groupBy("run").agg(
        f.min("t").alias("started_ns"),
        (f.max("t") - f.min("t")).alias("duration_ns"),
        f.count("*").alias("rows"),
        f.count_distinct(f.when(f.col("process") != int(NOBODY), f.col("process"))).alias("processes"),
        _count_of(RowKind.SUBMITTED).alias("submitted"),
        _count_of(RowKind.DELIVERED).alias("delivered"),
        _count_of(RowKind.VISITED).alias("visits"),
        _count_of(RowKind.UNRECORDED).alias("gaps"),
        f.max(f.when(f.col("kind") == int(RowKind.STARTED), f.col("name"))).alias("engine"),
    )


def _lives(events: DataFrame) -> DataFrame:
    from pyspark.sql import functions as f

    return (
        events.where(f"process <> {int(NOBODY)}")
        .groupBy("run", "process")
        .agg(
            f.min("t").alias("first_ns"),
            f.max("t").alias("last_ns"),
            _count_of(RowKind.SUBMITTED).alias("submitted"),
            _count_of(RowKind.DELIVERED).alias("delivered"),
            *(f.coalesce(f.sum(name), f.lit(0)).alias(name) for name in ("sent", "retransmitted", "requested")),
        )
    )


def _bucket_ns(runs: pa.Table) -> int:
    longest = max(runs["duration_ns"].to_pylist())
    return max(1, round(round_step(longest, BUCKETS)))


def _placed(events: DataFrame, runs: pa.Table, bucket_ns: int) -> DataFrame:
    """Times from the start of each run, and the stretch of time that each event lies in."""
    from pyspark.sql import functions as f

    session = events.sparkSession
    starts = session.createDataFrame(runs.select(["run", "started_ns"]))
    timed = events.join(f.broadcast(starts), "run").withColumn("t", f.col("t") - f.col("started_ns"))
    return timed.withColumn("bucket", f.floor(f.col("t") / f.lit(bucket_ns)).cast("int")).drop("started_ns")
