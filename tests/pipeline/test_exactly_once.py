"""Exactly once, end to end: a query copies one group to another while query, archiver and daemon are killed with -9."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest

from ordercast import connect
from ordercast.archive.reader import Archive
from ordercast.model.errors import UsageError
from ordercast.model.events import Message
from ordercast.pipeline.session import missing_for_spark
from tests.runtime.cluster import Cluster

pytestmark = [pytest.mark.spark, pytest.mark.long, pytest.mark.timeout(1500)]
ROOT = Path(__file__).parents[2]
KILLS = int(os.environ.get("ORDERCAST_KILLS", "2"))
ROWS = int(os.environ.get("ORDERCAST_ROWS", "4000"))
PATIENCE_S = 600.0


class Stage:
    """A daemon, an archiver of both groups, and the query, each a process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cluster = Cluster(folder, "unicast")
        self.at = self.cluster.unix("alpha")
        self.archive = Archive(folder / "archive")
        self.archiver: subprocess.Popen[bytes] | None = None
        self.query: subprocess.Popen[bytes] | None = None
        self.cluster.start("alpha")
        self.cluster.has_members("alpha", "alpha")

    def start_archiver(self) -> None:
        command = [
            "archive",
            "in",
            "out",
            "--dir",
            str(self.archive.folder),
            "--at",
            self.at,
            "--segment-size",
            "64KiB",
        ]
        self.archiver = self._started("archiver", "-m", "ordercast.cli.main", *command)
        until(lambda: self.last("in") > 0 and self.last("out") > 0, "the archiver does not begin")

    def start_query(self, rows: int) -> None:
        checkpoint = str(self.folder / "checkpoint")
        arguments = [str(self.archive.folder), self.at, checkpoint, str(rows)]
        self.query = self._started("query", "-m", "tests.pipeline.copy_query", *arguments)

    def _started(self, log: str, *command: str) -> subprocess.Popen[bytes]:
        with (self.folder / f"{log}.log").open("ab") as file:
            return subprocess.Popen(
                [sys.executable, *command], stdout=file, stderr=file, cwd=ROOT, start_new_session=True
            )

    def last(self, group: str) -> int:
        try:
            tip = self.archive.tip(group)
        except (UsageError, OSError):
            return 0
        return 0 if tip is None else tip.number

    def rows(self, group: str) -> list[bytes]:
        return [entry.entry.data for entry in self.archive.read(group) if isinstance(entry.entry, Message)]

    def kill(self, process: subprocess.Popen[bytes] | None) -> None:
        """With everything that it started."""
        if process is not None and process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def end(self) -> None:
        self.kill(self.query)
        self.kill(self.archiver)
        self.cluster.end()


def until(is_so: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < end, what
        time.sleep(0.05)


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    problem = missing_for_spark()
    if problem is not None:
        pytest.skip(problem)
    found = Stage(tmp_path)
    try:
        yield found
    finally:
        found.end()


def test_no_row_is_lost_or_doubled(stage: Stage) -> None:
    stage.start_archiver()
    truth = [b"row %d" % number for number in range(ROWS)]
    with connect(stage.at) as me:
        me.send_many("in", truth, confirm=True)
    until(lambda: len(stage.rows("in")) == ROWS, "the archive does not have the rows")
    draw = Random(KILLS)
    for turn in range(KILLS):
        copied = stage.last("out")
        stage.start_query(ROWS // 8)
        query = stage.query
        assert query is not None
        goal = copied + draw.randrange(1, 9)  # in the middle of a batch, or between two
        until(lambda query=query, goal=goal: query.poll() is not None or stage.last("out") >= goal, "nothing is copied")  # type: ignore[misc]
        if turn % 3 == 1:
            stage.kill(stage.archiver)  # the query fails, or waits
            stage.start_archiver()
        if turn % 3 == 2:
            stage.cluster.stop("alpha", signal.SIGKILL)
            stage.cluster.start("alpha")
        stage.kill(query)
    for _ in range(5):
        stage.start_query(ROWS // 2)
        assert stage.query is not None
        stage.query.wait(PATIENCE_S)
        if stage.query.returncode == 0:
            break
    assert stage.query is not None and stage.query.returncode == 0, (stage.folder / "query.log").read_text()[-2000:]
    assert sorted(stage.rows("out")) == sorted(truth)
