"""`import ordercast.spark`: the format "ordercast" for Spark, to read archives and to write to groups.

Registers it with the session that is active. Sessions that begin later find it by themselves, as they find every
installed package whose name begins with `pyspark_`, if their workers run the Python in which it is installed:

    spark = ordercast.spark.session()

makes such a session, whether the environment is activated or not.
"""

from __future__ import annotations

import json
import os
import sys
from weakref import WeakSet

from ordercast.model.extras import missing_extra

try:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.listener import StreamingQueryProgress

    from ordercast.pipeline.stream.format import OrdercastSource
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(missing_extra("ordercast.spark", error), name=error.name) from error

from ordercast.archive.places import place_from
from ordercast.model.errors import UsageError
from ordercast.pipeline.spark_session import LOCAL_MASTER, missing_for_spark

__all__ = ["OrdercastSource", "lag", "register", "session", "worker_problem"]


def session(name: str = "ordercast", master: str = LOCAL_MASTER, **options: str) -> SparkSession:
    """Begin a session with the format "ordercast", or take the one that is active. `options` are Spark's own, with
    `__` for each dot: `spark__ui__enabled="false"`. UsageError says in one sentence why there is none."""
    problem = missing_for_spark()
    if problem is not None:
        raise UsageError(problem)
    active = SparkSession.getActiveSession()
    if active is None:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else workers run the first python3 of the path
        os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
        builder = SparkSession.builder.appName(name).master(master)
        for key, value in options.items():
            builder = builder.config(key.replace("__", "."), value)
        active = builder.getOrCreate()
    problem = worker_problem(active)
    if problem is not None:
        raise UsageError(problem)
    register(active)
    return active


def worker_problem(session: SparkSession) -> str | None:
    """Why the workers of a session cannot read or write groups, with the fix, in one sentence; None when they can."""

    def looked(_: int) -> tuple[str, tuple[int, ...], bool]:
        """What a worker is. (It travels by value: there may be no such package.)"""
        from importlib.util import find_spec

        try:  # a folder of this name, such as a clone, is a package too, and has nothing in it
            has_package = find_spec("ordercast.pipeline") is not None
        except ModuleNotFoundError:
            has_package = False
        return sys.executable, sys.version_info[:2], has_package

    try:
        (told,) = session.sparkContext.parallelize([0], 1).map(looked).collect()
    except Exception as error:
        why = " ".join(str(error).split())[:200]
        return f"a worker of Spark does not run Python ({why}): set PYSPARK_PYTHON to {sys.executable}"
    interpreter, version, has_package = told
    if not has_package:
        return (
            f"workers of Spark run {interpreter}, where ordercast is not installed: set PYSPARK_PYTHON to "
            f"{sys.executable} before the session begins, or let ordercast.spark.session() begin it"
        )
    if version != sys.version_info[:2]:
        there, here = (".".join(map(str, each)) for each in (version, sys.version_info[:2]))
        return f"workers of Spark run Python {there} and this is {here}: set PYSPARK_PYTHON to {sys.executable}"
    return None


def lag(progress: StreamingQueryProgress | None) -> dict[str, int]:
    """Return how many entries of each group a stream had not read yet: `lag(query.lastProgress)`. Sources of another
    format have no places, and are left out."""
    if progress is not None and not hasattr(progress, "sources"):
        raise UsageError(f"{progress!r:.80} is no progress of a query: give query.lastProgress")
    behind: dict[str, int] = {}
    for source in () if progress is None else progress.sources:
        read, there = _places(source.endOffset), _places(source.latestOffset)
        behind |= {group: max(0, latest - read.get(group, 0)) for group, latest in there.items()}
    return behind


def _places(offset: str | None) -> dict[str, int]:
    """Return the number of the last entry of each group, as an offset names it."""
    try:
        said = json.loads(offset or "{}")
        return {group: place_from(text).number if text else 0 for group, text in said.items()}
    except (ValueError, AttributeError, UsageError):
        return {}


_known: WeakSet[SparkSession] = WeakSet()


def register(session: SparkSession) -> None:
    """Make the format known to a session, once: Spark warns of what it replaces."""
    if session not in _known:
        session.dataSource.register(OrdercastSource)
        _known.add(session)


_active = SparkSession.getActiveSession()
if _active is not None:
    register(_active)
