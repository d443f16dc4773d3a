"""A daemon, an archiver of the groups `in` and `out`, and a query between them: each a process that can be killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from ordercast import connect
from ordercast.archive.reader import Archive
from ordercast.archive.rows import Receiver
from ordercast.groups.names import sink_of
from ordercast.model.errors import UsageError
from ordercast.model.events import Message
from tests.runtime.cluster import Cluster

ROOT = Path(__file__).parents[2]
PATIENCE_S = 300.0
END = "end"  # a group in which one message says that everything was sent


def until(is_so: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < end, what
        time.sleep(0.02)


def kill_session(leader: int) -> None:
    """With -9, all that a process has started which leads a session: Spark's Python workers are in a process group of
    their own. The caller goes last if it is one of them."""
    found = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]
    for pid in sorted(found, key=lambda pid: pid == os.getpid()):
        with suppress(ProcessLookupError):
            if os.getsid(pid) == leader:
                os.kill(pid, signal.SIGKILL)


class Stage:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cluster = Cluster(folder, "unicast")
        self.at = self.cluster.unix("alpha")
        self.archive = Archive(folder / "archive")
        self.archiver: subprocess.Popen[bytes] | None = None
        self.query: subprocess.Popen[bytes] | None = None
        self.fed = 0

    def begin(self) -> None:
        self.cluster.start("alpha")
        self.cluster.has_members("alpha", "alpha")
        self.start_archiver()

    # The processes

    def start_archiver(self) -> None:
        places = self.lasts()
        command = ["archive", "in", "out", "--dir", str(self.archive.folder), "--at", self.at]
        self.archiver = self._started("archiver", "-m", "ordercast", *command, "--segment-size", "64KiB")
        self.await_archiver(places)

    def await_archiver(self, places: tuple[int, int]) -> None:
        """Until it writes, behind these places, that it is in both groups."""
        until(lambda: all(now > then for now, then in zip(self.lasts(), places, strict=True)), "no archiver begins")

    def start_query(self, *more: str) -> subprocess.Popen[bytes]:
        arguments = [str(self.archive.folder), self.at, str(self.folder / "checkpoint"), *more]
        self.query = self._started("query", "-m", "tests.pipeline.copy_query", *arguments)
        return self.query

    def _started(self, log: str, *command: str) -> subprocess.Popen[bytes]:
        with (self.folder / f"{log}.log").open("ab") as file:
            return subprocess.Popen(
                [sys.executable, *command], stdout=file, stderr=file, cwd=ROOT, start_new_session=True
            )

    def pid(self, victim: str) -> int:
        process = self.archiver if victim == "archiver" else self.cluster.processes["alpha"]
        assert process is not None
        return process.pid

    def kill(self, victim: str) -> None:
        """It has to be alive."""
        process = {"query": self.query, "archiver": self.archiver}.get(victim) or self.cluster.processes["alpha"]
        assert process.poll() is None, f"the {victim} has ended by itself: {self.log(victim)}"
        if victim == "daemon":
            process.kill()
        else:
            kill_session(process.pid)
        process.wait()

    def revive(self, victim: str) -> None:
        """Archiver or daemon, whichever was killed. The archiver is back when this returns."""
        if victim == "archiver":
            if self.archiver is not None:
                self.archiver.wait()
            self.start_archiver()
            return
        self.cluster.processes.pop("alpha").wait()
        places = self.lasts()
        self.cluster.start("alpha")
        self.await_archiver(places)

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text()[-3000:]

    def end(self) -> None:
        for process in (self.query, self.archiver):
            if process is not None and process.poll() is None:
                kill_session(process.pid)
                process.wait()
        self.cluster.end()

    # What is in the groups

    def feed(self, count: int) -> None:
        """Rows into `in`, on disk when this returns."""
        place = self.last("in")
        with connect(self.at) as me:
            me.send_many("in", [b"row %d" % (self.fed + number) for number in range(count)], confirm=True)
        self.fed += count
        until(lambda: self.last("in") >= place + count, "the archive does not have the rows")

    @property
    def truth(self) -> list[bytes]:
        return [b"row %d" % number for number in range(self.fed)]

    def last(self, group: str) -> int:
        try:
            tip = self.archive.tip(group)
        except (UsageError, OSError):
            return 0
        return 0 if tip is None else tip.number

    def lasts(self) -> tuple[int, int]:
        return self.last("in"), self.last("out")

    def rows(self, group: str) -> list[bytes]:
        return [entry.entry.data for entry in self.archive.read(group) if isinstance(entry.entry, Message)]


class Listener:
    """A member of `out` who reads it live. It needs a daemon that is not killed."""

    def __init__(self, at: str) -> None:
        self._rows: list[bytes] = []
        self._connecting = connect(at, sinks=True)
        self._thread = threading.Thread(target=self._read)

    def __enter__(self) -> Listener:
        self._client = self._connecting.__enter__()
        self._client.join("out", END)
        self._thread.start()
        return self

    def __exit__(self, *how: object) -> None:
        self._end()
        self._connecting.__exit__(None, None, None)

    def _read(self) -> None:
        receiver = Receiver()
        for event in self._client:
            if not isinstance(event, Message):
                continue
            if END in event.groups:
                return
            sink = sink_of(event.groups)
            assert sink is not None
            self._rows += receiver.take(sink, event.data)

    def _end(self) -> None:
        if self._thread.is_alive():
            self._client.send(END, b"")
            self._thread.join()

    def rows(self) -> list[bytes]:
        """All that were sent before now. Nothing is read any more."""
        self._end()
        return self._rows
