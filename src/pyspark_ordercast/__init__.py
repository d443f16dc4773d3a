"""Spark looks for modules whose names begin with `pyspark_` when it meets a format that it does not know: so
`spark.readStream.format("ordercast")` works without any import."""

from ordercast.pipeline.stream.format import OrdercastSource as DefaultSource

__all__ = ["DefaultSource"]
