"""The process that forks Spark's Python workers, which has imported what they need: a worker would spend most of its
life on that, and a dozen of them live and die in the tests. Spark starts it (`conftest.py`)."""

from __future__ import annotations

import pyarrow.parquet  # noqa: F401
import pyspark.worker  # noqa: F401
from pyspark.daemon import manager

import ordercast.pipeline.campaign.spread
import ordercast.pipeline.verify.job  # noqa: F401

if __name__ == "__main__":
    manager()
