"""Questions about views: what changed, why, and how long it took.

A change begins for a process when it leaves the operational state (or starts), and ends when it installs a regular
view. For the cluster it lasts from the first that left to the last that installed the same view.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ordercast.pipeline.report.messages import percentiles
from ordercast.trace.columns import RowKind

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

OPERATIONAL = "Operational"
_LIFE = (RowKind.STARTED, RowKind.REGULAR_VIEW, RowKind.CRASHED, RowKind.DEPARTED, RowKind.MOVED)


def life_events(events: DataFrame) -> DataFrame:
    """The few rows that tell who was in which view, and when somebody left it."""
    kinds = ", ".join(str(int(kind)) for kind in _LIFE)
    left = f"(kind <> {int(RowKind.MOVED)} OR name = '{OPERATIONAL}')"
    return events.where(f"kind IN ({kinds}) AND {left}")


def installs(events: DataFrame) -> DataFrame:
    """One row per process and regular view that it installed."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    one = Window.partitionBy("run", "process").orderBy("idx").rowsBetween(Window.unboundedPreceding, 0)
    left = f.col("kind").isin(int(RowKind.MOVED), int(RowKind.STARTED))
    return (
        life_events(events)
        .withColumn("began", f.last(f.when(left, f.col("t")), ignorenulls=True).over(one))
        .where(f"kind = {int(RowKind.REGULAR_VIEW)}")
        .select("run", "process", "t", "began", "configuration_seq", "configuration_rep", "members", "reason")
    )


def changes(installed: DataFrame) -> DataFrame:
    """One row per run and view."""
    from pyspark.sql import functions as f

    return (
        installed.groupBy("run", "configuration_seq", "configuration_rep")
        .agg(
            f.first("reason").alias("reason"),
            f.first("members").alias("members"),
            f.count("*").alias("installed_by"),
            f.min("began").alias("began"),
            f.min("t").alias("first_installed"),
            f.max("t").alias("last_installed"),
        )
        .withColumn("duration_ns", f.col("last_installed") - f.col("began"))
        .withColumn("size", f.size("members"))
    )


def reasons(changed: DataFrame) -> DataFrame:
    """By reason, of views that more than one process shares; how many there are of the others too."""
    from pyspark.sql import functions as f

    return changed.groupBy("reason", (f.col("size") == 1).alias("alone")).agg(
        f.count("*").alias("count"),
        f.avg("duration_ns").alias("mean_ns"),
        f.min("duration_ns").alias("min_ns"),
        f.max("duration_ns").alias("max_ns"),
        percentiles("duration_ns").alias("percentiles"),
    )
