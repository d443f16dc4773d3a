"""`import ordercast.spark`: the format "ordercast" for Spark, to read archives and to write to groups.

Registers it with the session that is active. Sessions that begin later find it by themselves, as they find every
installed package whose name begins with `pyspark_`.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

from ordercast.pipeline.stream.format import OrdercastSource

__all__ = ["OrdercastSource", "register"]


def register(session: SparkSession) -> None:
    session.dataSource.register(OrdercastSource)


_active = SparkSession.getActiveSession()
if _active is not None:
    register(_active)
