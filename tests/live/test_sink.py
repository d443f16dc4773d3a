"""The sink's writers against a live daemon and a live archiver, without Java: what Spark does is played, with crashes
at every point where a query, an archiver or a daemon can die."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import ordercast
from ordercast.archive.reader import Archive
from ordercast.archive.rows import Receiver
from ordercast.model.errors import UsageError
from ordercast.model.events import Message
from tests.live.local_daemons import live
from tests.live.test_archive import archiving, cluster

pytest.importorskip("pyspark")

from pyspark.sql.types import BinaryType, LongType, StringType, StructField, StructType

from ordercast.pipeline.stream import sink

SCHEMA = StructType([StructField("data", BinaryType()), StructField("n", LongType())])
PARTITIONS = 2


class Context:
    """What a task knows of itself."""

    batch, partition, attempts = 0, 0, 0

    @classmethod
    def get(cls) -> type[Context]:
        return cls

    @classmethod
    def getLocalProperty(cls, name: str) -> str:
        return {"streaming.sql.batchId": str(cls.batch), "sql.streaming.queryId": "the query"}[name]

    @classmethod
    def taskAttemptId(cls) -> int:
        cls.attempts += 1
        return cls.attempts

    @classmethod
    def partitionId(cls) -> int:
        return cls.partition


class Crash(Exception):
    """The query is dead."""


def rows_of(batch: int, partition: int) -> list[bytes]:
    return [b"%d.%d.%d" % (batch, partition, row) for row in range(50)]


class Query:
    """A query with its checkpoint: what it has not noted as done it does again."""

    def __init__(self, at: str, **options: str) -> None:
        self._options = {"at": at, "group": "orders", "sinkId": "etl", **options}
        self.done = -1

    def batch(self, crash_at: str = "") -> None:
        writer = sink.GroupStreamWriter(self._options, SCHEMA)
        Context.batch = self.done + 1
        messages: list[Any] = []
        for partition in range(PARTITIONS):
            Context.partition = partition
            messages.append(
                writer.write(_batches(Context.batch, partition, crash_at == "mid-write" and partition == 1))
            )
        if crash_at == "before commit":
            raise Crash
        if crash_at == "mid-commit":
            writer._await_archivers = _die  # type: ignore[method-assign, assignment]
        writer.commit(messages, Context.batch)
        if crash_at == "after commit":
            raise Crash
        self.done = Context.batch


def _die(*arguments: object) -> None:
    raise Crash


def _batches(batch: int, partition: int, dies: bool) -> Iterator[pa.RecordBatch]:
    rows = rows_of(batch, partition)
    yield pa.RecordBatch.from_pydict({"data": pa.array(rows[:30], pa.binary()), "n": pa.array(range(30))})
    if dies:
        raise Crash
    yield pa.RecordBatch.from_pydict({"data": pa.array(rows[30:], pa.binary()), "n": pa.array(range(20))})


@pytest.fixture(autouse=True)
def played(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sink, "TaskContext", Context)
    monkeypatch.setattr(sink, "PART_ROWS", 10)
    monkeypatch.setattr(sink, "PARTS_AT_ONCE", 2)


def table(folder: Path) -> list[bytes]:
    return [entry.entry.data for entry in Archive(folder).read("orders") if isinstance(entry.entry, Message)]


def truth(batches: int) -> list[bytes]:
    return [row for batch in range(batches) for partition in range(PARTITIONS) for row in rows_of(batch, partition)]


async def tried(work: Callable[[], None]) -> bool:
    """Whether it ended well."""
    try:
        await asyncio.to_thread(work)
    except (Crash, sink.NotCommitted):
        return False
    return True


POINTS = ("", "mid-write", "before commit", "mid-commit", "after commit")


@live
async def test_a_query_that_dies_anywhere_adds_every_row_once(tmp_path: Path) -> None:
    async with cluster(tmp_path, "n1") as at, archiving(tmp_path / "a", at["n1"]):
        query = Query(at["n1"])
        for point in (*POINTS, *POINTS):
            await tried(lambda point=point: query.batch(point))  # type: ignore[misc]
        assert await tried(query.batch)
        assert query.done >= 2
        assert table(tmp_path / "a") == truth(query.done + 1)


@live
async def test_an_archiver_that_dies_between_write_and_commit_refuses_the_batch(tmp_path: Path) -> None:
    async with cluster(tmp_path, "n1") as at:
        query = Query(at["n1"])
        async with archiving(tmp_path / "a", at["n1"]):
            assert await tried(query.batch)
        writer = sink.GroupStreamWriter(query._options, SCHEMA)
        Context.batch = 1
        messages: list[Any] = []
        for Context.partition in range(PARTITIONS):
            rows = _batches(1, Context.partition, dies=False)
            messages.append(await asyncio.to_thread(writer.write, rows))
        async with archiving(tmp_path / "a", at["n1"]):
            with pytest.raises(sink.NotCommitted, match="has missed a part of batch 1 of etl"):
                await asyncio.to_thread(writer.commit, messages, 1)
            assert await tried(query.batch)
            assert table(tmp_path / "a") == truth(2)


@live
async def test_what_was_seen_survives_a_restart_of_everything(tmp_path: Path) -> None:
    query = Query("")
    for turn, point in enumerate(("after commit", "mid-commit", "before commit", "")):
        folder = tmp_path / str(turn)
        folder.mkdir()
        async with cluster(folder, "n1") as at, archiving(tmp_path / "a", at["n1"], segment_size=1000):
            query._options["at"] = at["n1"]
            await tried(lambda point=point: query.batch(point))  # type: ignore[misc]
            assert await tried(query.batch)
    assert table(tmp_path / "a") == truth(query.done + 1)
    assert query.done == 4


@live
async def test_two_archivers_agree_on_what_is_committed(tmp_path: Path) -> None:
    async with (
        cluster(tmp_path, "n1", "n2") as at,
        archiving(tmp_path / "a", at["n1"]),
        archiving(tmp_path / "b", at["n2"]),
    ):
        query = Query(at["n2"])
        for point in POINTS:
            await tried(lambda point=point: query.batch(point))  # type: ignore[misc]
        assert await tried(query.batch)
        one, other = Archive(tmp_path / "a"), Archive(tmp_path / "b")
        while one.tip("orders") != other.tip("orders"):  # noqa: ASYNC110 (files have no events)
            await asyncio.sleep(0.01)
        assert table(tmp_path / "a") == table(tmp_path / "b") == truth(query.done + 1)


@live
async def test_who_reads_the_group_sees_nothing_of_a_sink_unless_it_asks(tmp_path: Path) -> None:
    async with (
        cluster(tmp_path, "n1") as at,
        archiving(tmp_path / "a", at["n1"]),
        ordercast.connect(at["n1"]) as plain,
        ordercast.connect(at["n1"], sinks=True) as asking,
    ):
        for one in (plain, asking):
            await one.join("orders")
        assert await tried(Query(at["n1"]).batch)
        await plain.send("orders", b"the end")
        seen = []
        for one in (plain, asking):
            read = []
            async for event in one:
                if isinstance(event, Message):
                    read.append(event)
                    if event.data == b"the end":
                        break
            seen.append(read)
        assert [message.data for message in seen[0]] == [b"the end"]
        receiver = Receiver()
        rows = [row for one in seen[1][:-1] for row in receiver.take("etl", one.data)]
        assert rows == truth(1)


@live
async def test_without_an_archiver_a_batch_is_not_committed(tmp_path: Path) -> None:
    async with cluster(tmp_path, "n1") as at:
        with pytest.raises(sink.NotCommitted, match=r"no archiver of orders has said within 0\.2 s"):
            await asyncio.to_thread(Query(at["n1"], timeoutSeconds="0.2").batch)
        await asyncio.to_thread(Query(at["n1"], confirm="order").batch)


@live
async def test_rows_go_to_the_groups_that_they_name_each_once(tmp_path: Path) -> None:
    """A batch that is run again adds what is missing where it is missing."""
    schema = StructType([StructField("data", BinaryType()), StructField("group", StringType())])

    def rows(batch: int) -> pa.RecordBatch:
        data = [b"%d.%d" % (batch, row) for row in range(60)]
        return pa.RecordBatch.from_pydict({"data": data, "group": ["orders", "prices", "orders"] * 20})

    def run(batch: int, *, dies: bool = False) -> None:
        writer = sink.GroupStreamWriter({"at": at["n1"], "sinkId": "etl"}, schema)
        Context.batch, Context.partition = batch, 0
        if dies:
            writer._await_archivers = _die  # type: ignore[method-assign, assignment]
        writer.commit([writer.write(iter([rows(batch)]))], batch)

    folder = tmp_path / "a"
    async with cluster(tmp_path, "n1") as at, archiving(folder, at["n1"], "orders", "prices"):
        assert await tried(lambda: run(0))
        assert not await tried(lambda: run(1, dies=True))
        assert await tried(lambda: run(1))
        for group, wanted in (("orders", (0, 2)), ("prices", (1,))):
            there = [one.entry.data for one in Archive(folder).read(group) if isinstance(one.entry, Message)]
            assert there == [b"%d.%d" % (batch, row) for batch in (0, 1) for row in range(60) if row % 3 in wanted]
        nobody = pa.RecordBatch.from_pydict({"data": [b"?"], "group": pa.array([None], pa.string())})
        writer = sink.GroupStreamWriter({"at": at["n1"], "sinkId": "etl"}, schema)
        with pytest.raises(UsageError, match="a row says no group"):
            writer.write(iter([nobody]))


def test_wrong_options_are_one_sentence() -> None:
    other = StructType([StructField("n", LongType())])
    for options, schema, sentence in (
        ({}, SCHEMA, "say to which group"),
        ({"group": "orders"}, SCHEMA, "a stream needs a name"),
        ({"group": "orders", "sinkId": "a b"}, SCHEMA, "letters, digits and punctuation"),
        ({"group": "orders", "sinkId": "etl", "confirm": "no"}, SCHEMA, "neither archive nor order"),
        ({"group": "orders", "sinkId": "etl"}, other, "the column `data`"),
        ({"group": "orders", "sink": "etl"}, SCHEMA, "has no option 'sink' for writing"),
        ({"group": "orders", "sinkId": "etl", "sink_id": "etl"}, SCHEMA, "sinkId is given twice"),
        ({"group": "orders", "sinkId": "etl", "timeoutSeconds": "soon"}, SCHEMA, "is no time"),
    ):
        with pytest.raises(UsageError, match=sentence):
            sink.GroupStreamWriter(options, schema)
    with pytest.raises(UsageError, match="sinkId: for a stream, and this is a table"):
        sink.GroupBatchWriter({"group": "orders", "sinkId": "etl"}, SCHEMA, False)
