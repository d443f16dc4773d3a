"""The sink, with a point at which a process is killed: exactly there, once, in a chosen batch.

Spark makes the writer in one process, writes in others and commits in yet another. What has to be known is therefore an
option of the format, and a file says that it has happened.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage

from ordercast.api.connect import connect as client_connect
from ordercast.pipeline.stream import sink
from ordercast.pipeline.stream.format import OrdercastSource
from tests.pipeline.stage import PATIENCE_S, kill_session

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from ordercast.api.blocking import BlockingClient

MID_WRITE = "mid-write"  # a task has sent some of its parts, and they have their places
WRITTEN = "written"  # all parts of all tasks have theirs
MARKER_SENT = "marker sent"  # and not confirmed
MARKER_ORDERED = "marker ordered"  # and no archiver's answer was read
COMMITTED = "committed"  # and Spark does not know it, so it is not in the checkpoint
POINTS = (MID_WRITE, WRITTEN, MARKER_SENT, MARKER_ORDERED, COMMITTED)

QUERY, WORKER = "query", "worker"  # victims: the whole query, or the Python process that is at the point
PART_ROWS = 10


@dataclass(frozen=True, slots=True)
class Crash:
    point: str
    batch: int
    victim: str | int  # a number: the process of an archiver or a daemon
    flag: str  # path of the file that is there once it has happened
    dies_too: bool = False  # the process that is at the point, once the victim lives again

    @property
    def text(self) -> str:
        return json.dumps(asdict(self))

    @property
    def has_happened(self) -> bool:
        return Path(self.flag).exists()

    @property
    def back(self) -> Path:
        """A file that the test makes when the victim lives again: the query goes on then."""
        return Path(self.flag).with_suffix(".back")

    def at(self, point: str) -> None:
        if point != self.point:
            return
        try:
            os.close(os.open(self.flag, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
        if self.victim == QUERY:
            kill_session(os.getsid(0))
        os.kill(os.getpid() if self.victim == WORKER else int(self.victim), signal.SIGKILL)
        end = time.monotonic() + PATIENCE_S
        while not self.back.exists():
            assert time.monotonic() < end, "nobody brings the victim back"
            time.sleep(0.02)
        if self.dies_too:
            os.kill(os.getpid(), signal.SIGKILL)


class WatchedClient(AbstractContextManager["WatchedClient"]):
    """The client of a writer, which passes the points."""

    def __init__(self, connecting: AbstractContextManager[BlockingClient], crash: Crash) -> None:
        self._connecting, self._crash = connecting, crash

    def __enter__(self) -> WatchedClient:
        self._client = self._connecting.__enter__()
        self.receive = self._client.receive
        return self

    def __exit__(self, *how: Any) -> None:
        self._connecting.__exit__(*how)

    def send_many(self, groups: Sequence[str], payloads: Sequence[bytes], *, confirm: bool = False) -> None:
        self._client.send_many(groups, payloads, confirm=True)
        if not confirm:  # more will follow
            self._crash.at(MID_WRITE)

    def send(self, groups: Sequence[str], data: bytes, *, confirm: bool) -> None:
        """The marker. What is sent to ourselves behind it is confirmed behind it."""
        self._client.send(groups, data)
        self._crash.at(MARKER_SENT)
        self._client.send(self._client.name, b"", confirm=confirm)
        self._crash.at(MARKER_ORDERED)


class CrashingWriter(sink.GroupStreamWriter):
    def __init__(self, options: dict[str, str], schema: StructType, crash: Crash) -> None:
        super().__init__(options, schema)
        self._crash = crash

    def _watched(self, is_on: bool) -> AbstractContextManager[object]:
        def connect(at: str | None) -> object:
            return WatchedClient(client_connect(at), self._crash) if is_on else client_connect(at)

        return patch.object(sink, "connect", connect)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        context = TaskContext.get()
        assert context is not None
        batch, partition = context.getLocalProperty("streaming.sql.batchId"), context.partitionId()
        is_on = (batch, partition) == (str(self._crash.batch), 1)
        with self._watched(is_on), patch.multiple(sink, PART_ROWS=PART_ROWS, PARTS_AT_ONCE=1):
            return super().write(iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        is_on = batchId == self._crash.batch
        if is_on:
            self._crash.at(WRITTEN)
        with self._watched(is_on):
            super().commit(messages, batchId)
        if is_on:
            self._crash.at(COMMITTED)


class CrashingSource(OrdercastSource):
    @classmethod
    def name(cls) -> str:
        return "ordercast_crashing"

    def streamWriter(self, schema: StructType, overwrite: bool) -> sink.GroupStreamWriter:
        options = dict(self.options)
        return CrashingWriter(options, schema, Crash(**json.loads(options.pop("crash"))))
