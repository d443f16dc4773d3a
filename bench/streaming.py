"""Spark and groups: rows a second through the source and through the sink, and how old a row is at the other end.

    python -m bench.streaming [--rows N] [--seconds S] [--parts source sink age] [--json FILE]

`source` streams an archive of so many rows into nothing, in batches of a fifth; `columns` only their numbers and
payloads; `parquet` does the same as `source` with Spark's own source over the same rows, as a yardstick. `sink` streams
a table, in batches of a fifth too, to a group of a live daemon, and an archiver confirms each batch. The first batch of
each, in which Spark warms up, is not counted. `age` sends a row every few milliseconds to an archived group, and takes
the time from its send until a query's batch function has it, and until a live member has what the query has sent on
through the sink.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.archive import Ring, tip_of, until, write_files
from ordercast.api.connect import connect
from ordercast.archive.reader import Archive
from ordercast.archive.rows import Receiver
from ordercast.groups.names import sink_of
from ordercast.model.events import Message
from ordercast.pipeline.spark_session import open_session
from ordercast.pipeline.stream.format import SCHEMA

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from ordercast.api.blocking import BlockingClient

SIZES = (100, 1024)
BATCHES = 5
PAUSE_S = 0.02  # between two rows whose age is taken
WARM_BATCHES = 12
OUT, SINK = "bench-out", "bench"


def rate(writer: DataStreamWriter, size: int) -> dict[str, Any]:
    """Of a query over what is there, without its first batch."""
    query = ended(writer.trigger(availableNow=True).start)
    warm = [progress for progress in query.recentProgress if progress.numInputRows][1:]
    seconds = sum(progress.durationMs["triggerExecution"] for progress in warm) / 1000
    rows = sum(progress.numInputRows for progress in warm)
    return {"size": size, "rows": rows, "rows_s": rows / seconds, "mb_s": rows * size / seconds / 1e6}


def ended(start: Callable[[], StreamingQuery]) -> StreamingQuery:
    """When it has come to its end."""
    while True:
        query = start()
        try:
            query.awaitTermination()
            return query
        except Exception as error:
            check_again(error)


def check_again(error: object) -> None:
    """Spark gives its own Python process ten seconds to start, and a busy machine may need more."""
    if "failed to connect back" not in str(error):
        raise SystemExit(f"bench: the query has failed: {error}")
    say("the machine is so busy that Spark has not found its own Python process: once more")


def bench_source(spark: SparkSession, archive: Path, size: int, rows: int, columns: str = SCHEMA) -> dict[str, Any]:
    options = {"startingPlace": "earliest", "maxRowsPerTrigger": str(rows // BATCHES), "minPartitions": "4"}
    stream = spark.readStream.format("ordercast").schema(columns).options(**options).load(str(archive))
    checkpoint = f"{archive}.{len(columns)}.checkpoint"
    return rate(stream.writeStream.format("noop").option("checkpointLocation", checkpoint), size)


def bench_parquet(spark: SparkSession, archive: Path, size: int) -> dict[str, Any]:
    table = spark.read.format("ordercast").load(str(archive))
    copy = f"{archive}.parquet"
    table.repartition(4 * BATCHES).write.parquet(copy)
    stream = spark.readStream.schema(table.schema).option("maxFilesPerTrigger", 4).parquet(copy)
    return rate(stream.writeStream.format("noop").option("checkpointLocation", f"{copy}.checkpoint"), size)


def bench_sink(spark: SparkSession, ring: Ring, size: int, rows: int) -> dict[str, Any]:
    from pyspark.sql import functions as f

    row = f.rpad(f.col("id").cast("string"), size, ".").cast("binary").alias("data")
    table = str(ring.folder / f"table-{size}")
    spark.range(0, rows, 1, 4 * BATCHES).select(row).write.parquet(table)
    stream = spark.readStream.schema("data binary").option("maxFilesPerTrigger", 4).parquet(table)
    options = {"group": "bench", "at": ring.at, "sink_id": f"bench-{size}", "checkpointLocation": f"{table}.checkpoint"}
    return rate(stream.writeStream.format("ordercast").options(**options), size)


def bench_age(spark: SparkSession, ring: Ring, seconds: float) -> dict[str, Any]:
    archive = str(ring.folder / "archive")
    ages: list[float] = []

    def take(batch: DataFrame, number: int) -> None:
        rows = batch.select("data").collect()
        now = time.time()
        ages.extend(now - float(bytes(row.data)) for row in rows)

    stream = spark.readStream.format("ordercast").load(archive)
    return aged(ring, stream.writeStream.foreachBatch(take).start, ages, seconds)


def bench_age_through(spark: SparkSession, ring: Ring, seconds: float) -> dict[str, Any]:
    """Through the sink too. Nobody archives that group, so a batch is done when it has its place."""
    stream = spark.readStream.format("ordercast").load(str(ring.folder / "archive")).select("data")
    options = {"group": OUT, "sink_id": SINK, "at": ring.at, "confirm": "order"}
    writer = stream.writeStream.format("ordercast").options(**options)
    writer = writer.option("checkpointLocation", str(ring.folder / "through.checkpoint"))
    ages: list[float] = []
    with connect(ring.at, sinks=True) as member:
        member.join(OUT)
        threading.Thread(target=_listen, args=(member, ages), daemon=True).start()
        return aged(ring, writer.start, ages, seconds)


def _listen(member: BlockingClient, ages: list[float]) -> None:
    receiver = Receiver()
    for event in member:
        if isinstance(event, Message) and (sink := sink_of(event.groups)) is not None:
            now = time.time()
            ages.extend(now - float(row) for row in receiver.take(sink, event.data))


def aged(ring: Ring, start: Callable[[], StreamingQuery], ages: list[float], seconds: float) -> dict[str, Any]:
    """Of rows that are sent evenly, from when the query has warmed up."""
    with connect(ring.at) as me:
        query = start()
        while not _send_while(me, query, lambda query: not ages or not _is_warm(query)):
            check_again(query.exception())
            query = start()
        ages.clear()
        end = time.monotonic() + seconds
        if not _send_while(me, query, lambda query: time.monotonic() < end or not ages):
            raise SystemExit(f"bench: the query has ended: {query.exception()}")
        found = sorted(ages)
        query.stop()
    return {"rows": len(found), "p50_s": found[len(found) // 2], "p99_s": found[len(found) * 99 // 100]}


def _is_warm(query: StreamingQuery) -> bool:
    progress = query.lastProgress
    return progress is not None and progress.batchId >= WARM_BATCHES


def _send_while(me: BlockingClient, query: StreamingQuery, is_so: Callable[[StreamingQuery], bool]) -> bool:
    """Whether the query lives on."""
    while is_so(query):
        if not query.isActive:
            return False
        me.send("bench", repr(time.time()).encode())
        time.sleep(PAUSE_S)
    return True


def say(text: str) -> None:
    print(text, flush=True)


def run(spark: SparkSession, folder: Path, options: argparse.Namespace, results: dict[str, Any]) -> None:
    def note(what: str, row: dict[str, Any]) -> None:
        results.setdefault(what, []).append(row)
        say(f"{what:8}{row['size']:7}{row['rows']:12,}{row['rows_s']:14,.0f}{row['mb_s']:10.1f}")

    say(f"{'':8}{'bytes':>7}{'rows':>12}{'rows/s':>14}{'MB/s':>10}")
    for size in SIZES if "source" in options.parts else ():
        archive = folder / f"archive-{size}"
        count = write_files(archive, size, options.rows * 100)
        note("source", bench_source(spark, archive, size, count))
        note("columns", bench_source(spark, archive, size, count, "number BIGINT, data BINARY"))
        note("parquet", bench_parquet(spark, archive, size))
    ring = Ring(folder)
    try:
        live = Archive(folder / "archive")
        until(lambda: tip_of(live) is not None, "the archiver does not begin")
        for size in SIZES if "sink" in options.parts else ():
            note("sink", bench_sink(spark, ring, size, options.rows * 50 // size))
        for what, bench in AGES.items() if "age" in options.parts else ():
            row = bench(spark, ring, options.seconds)
            results.setdefault("age", {})[what] = row
            say(f"age of a row {what}: median {row['p50_s']:.2f} s, p99 {row['p99_s']:.2f} s ({row['rows']} rows)")
    finally:
        ring.end()


AGES = {"in a query": bench_age, "through the sink": bench_age_through}
PARTS = ("source", "sink", "age")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--rows", type=int, default=2_000_000, help="of 100 bytes; fewer of larger ones, and half to the sink"
    )
    parser.add_argument("--seconds", type=float, default=15.0, help="for which the ages of rows are taken")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    results: dict[str, Any] = {"load": os.getloadavg()[0]}
    say(f"load average {results['load']:.1f} on {os.cpu_count()} cores; Spark starts")
    with open_session("bench", "local[2]") as spark, tempfile.TemporaryDirectory(prefix="ordercast-bench-") as name:
        run(spark, Path(name), options, results)
    if options.json:
        options.json.write_text(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
