"""Questions about the token: how long a rotation takes, what was sent again, how far flow control let the ring go.

A rotation is the time between two visits of one process on one ring. What the ring ordered in it is the difference of
`seq` between the two; the backlog is what was sent and not yet known to be received by all, `seq` less `aru`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ordercast.pipeline.report.messages import percentiles
from ordercast.trace.columns import RowKind

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ROTATION = "rotation_ns"
ORDERED = "rotation_packets"
BACKLOG = "backlog_packets"
_SEEN = (
    *("run", "process", "idx", "t", "bucket", "configuration_seq", "configuration_rep"),
    *("seq", "aru", "sent", "retransmitted", "requested"),
)


def visits(events: DataFrame) -> DataFrame:
    """One row per visit, with what happened since the visit before; null for the first on a ring."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    one = Window.partitionBy("run", "process", "configuration_seq", "configuration_rep").orderBy("idx")
    return (
        events.where(f"kind = {int(RowKind.VISITED)}")
        .select(*_SEEN)
        .withColumn(ROTATION, f.col("t") - f.lag("t").over(one))
        .withColumn(ORDERED, f.col("seq") - f.lag("seq").over(one))
        .withColumn(BACKLOG, f.col("seq") - f.col("aru"))
    )


def token_summary(visited: DataFrame) -> DataFrame:
    """By stretch of time, and once for all of it (`bucket` null)."""
    from pyspark.sql import functions as f

    summed = [f.sum(name).alias(name) for name in ("sent", "retransmitted", "requested")]
    spread = []
    for name in (ROTATION, ORDERED, BACKLOG):
        spread += [
            f.count(name).alias(f"{name}_count"),
            f.avg(name).alias(f"{name}_mean"),
            percentiles(name).alias(f"{name}_percentiles"),
            f.max(name).alias(f"{name}_max"),
        ]
    busy = f.sum(f.when(f.col("sent") > 0, 1).otherwise(0)).alias("sending_visits")
    return visited.rollup("bucket").agg(f.count("*").alias("visits"), busy, *summed, *spread)


def visit_sizes(visited: DataFrame) -> DataFrame:
    """How many visits sent so many packets."""
    from pyspark.sql import functions as f

    return visited.where("sent > 0").groupBy("sent").agg(f.count("*").alias("visits"))
