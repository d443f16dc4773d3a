"""Questions about messages: how long until delivery, and how many in which time. Frames in, frames out.

A message is (run, sender_process, sender, counter). Its latency is the time of a delivery less that of its submission,
found by one join; on live traces the two may be clocks of two hosts, so what the sender itself delivered is asked for
separately, and so is when the last process had it. Counts are exact; percentiles are Spark's `percentile_approx`, whose
rank is right within 0.01 %.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ordercast.trace.columns import RowKind

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

MESSAGE = ("run", "sender_process", "sender", "counter")
SIZES = (64, 256, 1024, 4096, 16384, 65536)  # upper bounds of the classes
SIZE_MAX = 1 << 30  # stands for everything above
PERCENTS = (50, 90, 99, 99.9)
ACCURACY = 10_000
BUCKETS_PER_DECADE = 20  # of the histogram
EACH, LAST, OWN = "each", "last", "own"  # every delivery; until the last process; at the sender


def percentiles(column: str) -> Column:
    from pyspark.sql import functions as f

    return f.percentile_approx(column, [percent / 100 for percent in PERCENTS], ACCURACY)


def latencies(events: DataFrame) -> DataFrame:
    """One row per delivery whose submission is in the traces."""
    from pyspark.sql import functions as f

    submitted = events.where(f"kind = {int(RowKind.SUBMITTED)} AND counter > 0").select(
        *MESSAGE, f.col("t").alias("submitted_at")
    )
    delivered = events.where(f"kind = {int(RowKind.DELIVERED)} AND counter > 0").select(
        *MESSAGE, "process", "t", "service", "size"
    )
    joined = delivered.join(submitted.hint("shuffle_hash"), list(MESSAGE))
    return joined.withColumn("latency", f.col("t") - f.col("submitted_at")).withColumn("size_max", _size_class())


def _size_class() -> Column:
    from pyspark.sql import functions as f

    classes = f.when(f.col("size") <= SIZES[0], SIZES[0])
    for bound in SIZES[1:]:
        classes = classes.when(f.col("size") <= bound, bound)
    return classes.otherwise(SIZE_MAX)


def latency_summary(joined: DataFrame) -> DataFrame:
    """By scope, service and size; a null service or size stands for all of them."""
    from pyspark.sql import functions as f

    last = joined.groupBy(*MESSAGE).agg(
        f.max("latency").alias("latency"), f.first("service").alias("service"), f.first("size_max").alias("size_max")
    )
    own = joined.where("process = sender_process")
    return _summed(joined, EACH).unionByName(_summed(last, LAST)).unionByName(_summed(own, OWN))


def _summed(frame: DataFrame, scope: str) -> DataFrame:
    from pyspark.sql import functions as f

    return (
        frame.rollup("service", "size_max")
        .agg(
            f.count("*").alias("count"),
            f.sum(f.when(f.col("latency") < 0, 1).otherwise(0)).alias("negative"),
            f.avg("latency").alias("mean_ns"),
            f.min("latency").alias("min_ns"),
            f.max("latency").alias("max_ns"),
            percentiles("latency").alias("percentiles"),
        )
        .withColumn("scope", f.lit(scope))
    )


def latency_histogram(joined: DataFrame) -> DataFrame:
    """Every delivery, by service: how many in each bucket of the logarithm."""
    from pyspark.sql import functions as f

    bucket = f.floor(f.log10(f.greatest(f.col("latency"), f.lit(1))) * BUCKETS_PER_DECADE).cast("int")
    return joined.groupBy("service", bucket.alias("bucket")).agg(f.count("*").alias("count"))


def throughput(events: DataFrame) -> DataFrame:
    """By stretch of time and service, over all runs; `events` know their `bucket`."""
    from pyspark.sql import functions as f

    is_submitted = f.col("kind") == int(RowKind.SUBMITTED)
    messages = events.where(f"kind IN ({int(RowKind.SUBMITTED)}, {int(RowKind.DELIVERED)}) AND digest IS NOT NULL")
    per_process = messages.groupBy("bucket", "service", "run", "process").agg(
        f.sum(f.when(is_submitted, 1).otherwise(0)).alias("submitted"),
        f.sum(f.when(is_submitted, f.col("size")).otherwise(0)).alias("submitted_bytes"),
        f.sum(f.when(is_submitted, 0).otherwise(1)).alias("delivered"),
        f.sum(f.when(is_submitted, 0).otherwise(f.col("size"))).alias("delivered_bytes"),
    )
    return per_process.groupBy("bucket", "service").agg(
        *(f.sum(name).alias(name) for name in ("submitted", "submitted_bytes", "delivered", "delivered_bytes"))
    )


def deliverers(events: DataFrame) -> DataFrame:
    """How many processes, over all runs, delivered anything in each stretch of time."""
    from pyspark.sql import functions as f

    delivered = events.where(f"kind = {int(RowKind.DELIVERED)} AND digest IS NOT NULL")
    return (
        delivered.select("bucket", "run", "process").distinct().groupBy("bucket").agg(f.count("*").alias("deliverers"))
    )
