"""Exactly once, with real kills at chosen points of a batch: of the query, of a task or the commit alone, of the
archiver and of the daemon. What the archive and a live member of the group have is compared with the truth, in order.
"""

from __future__ import annotations

import json
from contextlib import nullcontext
from typing import TYPE_CHECKING

import pytest

from ordercast.pipeline.spark_session import missing_for_spark

if (problem := missing_for_spark()) is not None:
    pytest.skip(problem, allow_module_level=True)

from pyspark.errors import StreamingQueryException

from tests.pipeline.copy_query import NO_WORKER, start_copy
from tests.pipeline.crash_points import COMMITTED, POINTS, QUERY, WORKER, Crash
from tests.pipeline.stage import Listener, Stage, until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]
ROWS = 100  # of a batch: two tasks, each with five parts
BATCHES = 3
TRIES = 5


def copied(spark: SparkSession, stage: Stage, crash: Crash) -> str:
    """Why the query failed, nothing if it came to its end. It brings back what is killed on the way."""
    place = str(stage.archive.folder), stage.at, str(stage.folder / "checkpoint")
    query = start_copy(spark, *place, rows=ROWS, crash=crash.text)
    try:
        until(lambda: crash.has_happened or not query.isActive, "the query does not come to the point")
        if isinstance(crash.victim, int) and crash.has_happened and not crash.back.exists():
            stage.revive("archiver" if crash.victim == stage.pid("archiver") else "daemon")
            crash.back.touch()
        query.awaitTermination()
    except StreamingQueryException as error:
        return str(error)
    return ""


CASES = [(victim, point) for victim in (WORKER, "archiver", "daemon") for point in POINTS]


@pytest.mark.long
@pytest.mark.parametrize(("victim", "point"), CASES)
def test_a_kill_below_the_query(spark: SparkSession, stage: Stage, victim: str, point: str) -> None:
    pid = victim if victim == WORKER else stage.pid(victim)
    survives(spark, stage, Crash(point, 1, pid, str(stage.folder / "crash")), is_heard=victim != "daemon")


@pytest.mark.long
@pytest.mark.parametrize("victim", ["archiver", "daemon"])
def test_what_was_committed_is_known_after_a_restart(spark: SparkSession, stage: Stage, victim: str) -> None:
    """The archiver has said so, is started again or comes back to a new daemon, and gets the same batch once more."""
    crash = Crash(COMMITTED, 1, stage.pid(victim), str(stage.folder / "crash"), dies_too=True)
    failures = survives(spark, stage, crash, is_heard=victim != "daemon")
    assert any("crashed" in why for why in failures)


def survives(spark: SparkSession, stage: Stage, crash: Crash, *, is_heard: bool) -> list[str]:
    """Nothing is lost or doubled; why the query had to be started again. A daemon's death ends those who listen."""
    stage.feed(BATCHES * ROWS)
    failures: list[str] = []
    with Listener(stage.at) if is_heard else nullcontext() as listener:
        while why := copied(spark, stage, crash):
            failures += [] if NO_WORKER in why else [why]
            assert len(failures) < TRIES, failures
        assert crash.has_happened
        assert stage.rows("out") == stage.truth
        assert listener is None or listener.rows() == stage.truth
    return failures


@pytest.mark.long
@pytest.mark.parametrize("point", POINTS)
def test_a_kill_of_the_whole_query(stage: Stage, point: str) -> None:
    stage.feed(BATCHES * ROWS)
    crash = Crash(point, 1, QUERY, str(stage.folder / "crash"))
    options = json.dumps({"rows": ROWS, "crash": crash.text})
    with Listener(stage.at) as listener:
        assert stage.start_query(options).wait() == -9, stage.log("query")
        assert crash.has_happened
        assert (stage.folder / "checkpoint/offsets/1").exists()
        assert not (stage.folder / "checkpoint/commits/1").exists()
        assert stage.start_query(options).wait() == 0, stage.log("query")
        assert stage.rows("out") == stage.truth
        assert listener.rows() == stage.truth
