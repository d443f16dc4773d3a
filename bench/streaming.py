"""Spark and groups: rows a second through the source and through the sink, and how old a row is when a query has it.

    python -m bench.streaming [--rows N] [--json FILE]

The source reads an archive of so many rows into nothing, in batches of a fifth; the first batch, in which Spark warms
up, is not counted. The sink sends a table to a group of a live daemon, and an archiver confirms it. The age of a row is
taken from its send to the moment when a query's batch function has it.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.archive import Ring, _tip, _until, write_files
from ordercast.archive.reader import Archive
from ordercast.client.connect import connect
from ordercast.pipeline.session import open_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def bench_source(spark: SparkSession, size: int, rows: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="ordercast-bench-") as name:
        folder = Path(name)
        count = write_files(folder / "archive", size, rows * size)
        stream = spark.readStream.format("ordercast").options(
            startingPlace="earliest", maxRowsPerTrigger=str(count // 5), minPartitions="4"
        )
        query = (
            stream.load(str(folder / "archive"))
            .writeStream.format("noop")
            .option("checkpointLocation", str(folder / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        warm = [progress for progress in query.recentProgress if progress.numInputRows][1:]
        seconds = sum(progress.durationMs["triggerExecution"] for progress in warm) / 1000
        read = sum(progress.numInputRows for progress in warm)
    return {"size": size, "rows": read, "rows_s": read / seconds, "mb_s": read * size / seconds / 1e6}


def bench_sink(spark: SparkSession, ring: Ring, size: int, rows: int) -> dict[str, Any]:
    from pyspark.sql import functions as f

    table = spark.range(0, rows, 1, 4).select(
        f.rpad(f.col("id").cast("string"), size, ".").cast("binary").alias("data")
    )
    writer = table.write.format("ordercast").mode("append").options(group="bench", at=ring.at)
    writer.save()
    began = time.perf_counter()
    writer.save()
    seconds = time.perf_counter() - began
    return {"size": size, "rows": rows, "rows_s": rows / seconds, "mb_s": rows * size / seconds / 1e6}


def bench_age(spark: SparkSession, ring: Ring, archive: Archive, count: int) -> dict[str, Any]:
    ages: list[float] = []

    def take(batch: DataFrame, number: int) -> None:
        rows = batch.select("data").collect()
        now = time.time()
        ages.extend(now - float(bytes(row.data)) for row in rows)

    stream = spark.readStream.format("ordercast").load(str(archive.folder))
    query = stream.writeStream.foreachBatch(take).start()
    try:
        with connect(ring.at) as me:
            while len(ages) < count and query.isActive:
                me.send("bench", repr(time.time()).encode())
                time.sleep(0.1)
    finally:
        query.stop()
    steady = ages[count // 3 :]  # the first batches wait for Spark to warm up
    return {"rows": len(steady), "p50_s": statistics.median(steady), "max_s": max(steady)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    results: dict[str, Any] = {"load": os.getloadavg()[0], "source": [], "sink": []}
    print(f"load average {results['load']:.1f} on {os.cpu_count()} cores")
    with open_session("bench", "local[2]") as spark:
        for size in (100, 1024):
            row = bench_source(spark, size, options.rows if size == 100 else options.rows // 4)
            results["source"].append(row)
            print(f"source  {size:5} B   {row['rows_s']:12,.0f} rows/s   {row['mb_s']:8.1f} MB/s")
        with tempfile.TemporaryDirectory(prefix="ordercast-bench-") as name:
            ring = Ring(Path(name))
            try:
                archive = Archive(ring.folder / "archive")
                _until(lambda: _tip(archive) is not None, "the archiver does not begin")
                for size in (100, 1024):
                    row = bench_sink(spark, ring, size, options.rows // 10)
                    results["sink"].append(row)
                    print(f"sink    {size:5} B   {row['rows_s']:12,.0f} rows/s   {row['mb_s']:8.1f} MB/s")
                results["age"] = age = bench_age(spark, ring, archive, 90)
                print(f"age of a row in a query: median {age['p50_s']:.2f} s, at most {age['max_s']:.2f} s")
            finally:
                ring.end()
    if options.json:
        options.json.write_text(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
