"""Runs simulations in Spark's executors, wave after wave, and hands over what came of each wave as it ends.

A wave is one Spark job: a few tasks per core, each some seconds long, so that little is lost when the command is killed
and Spark's cost of a task does not matter. Two waves are under way at a time: the cores that the first leaves idle at
its end work on the second. How many simulations make a task follows from how long they took so far. Slow cells are
spread by shuffling the runs, the same way every time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import partial
from random import Random
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from ordercast.model.errors import UsageError
from ordercast.pipeline.campaign.plan import Cell
from ordercast.pipeline.campaign.results import Job
from ordercast.pipeline.campaign.trial import SPARK_SCHEMA, run_batches

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TASK_S = 4.0  # how long a task should last
TASKS_PER_CORE = 2  # of a wave
TASK_RUNS_MAX = 500
WAVES = 2  # under way at a time


def spread(spark: SparkSession, cells: Sequence[Cell], jobs: Sequence[Job], keep: Callable[[pa.Table], None]) -> None:
    """`keep` is given the rows of each wave, in the thread that called. UsageError when Spark gives up on a wave."""
    waiting = list(jobs)
    Random(0).shuffle(waiting)
    pace = _Pace(spark.sparkContext.defaultParallelism)
    with ThreadPoolExecutor(WAVES, "ordercast wave") as pool:
        under_way: set[Future[pa.Table]] = set()
        try:
            while waiting or under_way:
                while waiting and len(under_way) < WAVES:
                    size = pace.wave_size(len(waiting))
                    wave, waiting = waiting[:size], waiting[size:]
                    under_way.add(pool.submit(_run_wave, spark, cells, wave, pace.tasks_of(size)))
                ended, under_way = wait(under_way, return_when=FIRST_COMPLETED)
                for future in ended:
                    table = _rows_of(future)
                    pace.learn(table)
                    keep(table)
        except BaseException:  # an interrupt among them: whoever waits for the threads must not wait for Spark
            spark.sparkContext.cancelAllJobs()
            raise


class _Pace:
    """How many simulations to run at once."""

    def __init__(self, cores: int) -> None:
        self._tasks = TASKS_PER_CORE * max(1, cores)
        self._seconds = 0.0
        self._runs = 0

    def learn(self, table: pa.Table) -> None:
        self._seconds += pc.sum(table["seconds"]).as_py() or 0.0
        self._runs += len(table)

    def wave_size(self, left: int) -> int:
        """The first wave learns how long a simulation takes; the last ones share what is left."""
        per_task = 1
        if self._runs:
            per_task = max(1, min(TASK_RUNS_MAX, int(TASK_S * self._runs / max(self._seconds, 1e-3))))
        return max(self._tasks, min(per_task * self._tasks, -(-left // WAVES)))

    def tasks_of(self, size: int) -> int:
        return max(1, min(self._tasks, size))


def _run_wave(spark: SparkSession, cells: Sequence[Cell], wave: Sequence[Job], tasks: int) -> pa.Table:
    table = pa.table(
        {
            "cell": pa.array([place for place, _ in wave], pa.int32()),
            "seed": pa.array([seed for _, seed in wave], pa.int64()),
        }
    )
    used = sorted({place for place, _ in wave})  # a task is sent the cells that its wave needs, no others
    mine = {place: cells[place] for place in used}
    frame = spark.createDataFrame(table).repartition(tasks)
    return frame.mapInArrow(partial(run_batches, mine), SPARK_SCHEMA).toArrow()


def _rows_of(future: Future[pa.Table]) -> pa.Table:
    try:
        return future.result()
    except KeyboardInterrupt:
        raise
    except Exception as error:
        reason = " ".join(str(error).split())[:300] or type(error).__name__
        raise UsageError(
            f"Spark gave up on some simulations ({reason}): what was done is kept, run the same command to go on"
        ) from error
