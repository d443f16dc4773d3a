"""`ordercast verify` on a Spark standalone cluster: a master and two workers on loopback, of the installed PySpark."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from queue import Queue
from threading import Thread

import pytest

from ordercast.pipeline.spark_session import missing_for_spark
from ordercast.trace.parquet import RunInfo, write_run
from tests.ports import free_ports
from tests.unit.checker.histories import Story, without_delivery

pytestmark = [pytest.mark.spark, pytest.mark.long]

PATIENCE_S = 120  # for one line of Spark's

# In a process of its own: this one may have a session already. The executors' own Python knows another folder as the
# package, so the zip file proves that what they run came with the session.
PROGRAM = """
import sys
from ordercast.cli.main import run
from ordercast.pipeline.spark_session import open_session

def place(_):
    import ordercast
    return ordercast.__file__

master, folder = sys.argv[1:]
quick = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
options = {
    "spark.cores.max": "2",
    "spark.driver.extraJavaOptions": quick,
    "spark.executor.extraJavaOptions": quick,
    "spark.executor.memory": "512m",
}
with open_session("test", master, options) as session:
    places = session.sparkContext.parallelize(range(4), 4).map(place).collect()
    assert all("ordercast.zip" in each for each in places), places
    sys.exit(run(["verify", folder, "--json"]))
"""


class _Said:
    """What a process writes, line by line, read as it comes: a pipe that nobody empties would stop it."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._lines: Queue[str | None] = Queue()
        self._process = process
        Thread(target=self._read, daemon=True).start()

    def wait_for(self, text: str, times: int = 1) -> None:
        """Until it was said so often; its end is the end of the wait."""
        said: list[str] = []
        while times:
            line = self._lines.get(timeout=PATIENCE_S)
            assert line is not None, "".join(said[-20:])
            said.append(line)
            times -= text in line

    def _read(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self._lines.put(line)
        self._lines.put(None)


@contextmanager
def _daemon(name: str, *arguments: str) -> Iterator[_Said]:
    """One of Spark's own, ended with the block."""
    import pyspark

    program = Path(pyspark.__file__).parent / "bin" / "spark-class"
    environment = {
        **os.environ,
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    with subprocess.Popen(
        [str(program), f"org.apache.spark.deploy.{name}", *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    ) as process:
        try:
            yield _Said(process)
        finally:
            process.terminate()
            process.wait(60)


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    problem = missing_for_spark()
    if problem is not None:
        pytest.skip(problem)
    port = free_ports()
    url = f"spark://127.0.0.1:{port}"
    with ExitStack() as stack:
        serving = ("--host", "127.0.0.1", "--port", str(port), "--webui-port", "0")
        first = stack.enter_context(_daemon("master.Master", *serving))
        first.wait_for("New state: ALIVE")
        for number in range(2):
            place = ("--host", "127.0.0.1", "--webui-port", "0", "-d", str(tmp_path / f"worker{number}"))
            stack.enter_context(_daemon("worker.Worker", "-c", "1", "-m", "1g", *place, url))
        first.wait_for("Registering worker", times=2)
        yield url


def test_the_same_command_on_a_cluster(master: str, tmp_path: Path) -> None:
    told = Story(3)
    told.change(0, 1, 2)
    told.round(0, 1, 2, count=10)
    events = told.finished()
    runs = tmp_path / "runs"
    write_run(runs, RunInfo(1), events)
    write_run(runs, RunInfo(2), without_delivery(events, 1, list(told.submissions)[7]))
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, master, str(runs)], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 1, done.stderr
    assert [run["verdict"]["outcome"] for run in json.loads(done.stdout)["runs"]] == ["VALID", "INVALID"]
    assert done.stderr == ""
