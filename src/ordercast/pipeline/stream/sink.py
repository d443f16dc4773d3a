"""The Spark sink: rows of a batch or a stream to a group, each exactly once.

    rows.writeStream.format("ordercast").option("group", "totals").option("sink_id", "etl").start()

Tasks send their rows in tagged parts, and wait until these have their places in the order. The commit sends one marker
and waits until an archiver has it on disk, and says what it does there (`archive.rows`). A batch that is run again
because anything died sends new parts and a new marker: at most one marker of a batch counts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from ordercast.api.blocking import BlockingClient
from ordercast.api.connect import connect
from ordercast.archive.entries import Outcome
from ordercast.archive.places import checked_archived, sink_group
from ordercast.archive.rows import Marker, Part, checked_winners, marker_bytes, part_bytes
from ordercast.model.errors import Error, UsageError
from ordercast.model.events import Message

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

OPTIONS = ("group", "at", "sink_id", "confirm", "timeout_s", "path")
SPARKS_OWN = ("checkpointlocation", "queryname", "outputmode", "asyncprogresstrackingenabled")  # handed on by it
PART_SIZE = 256 << 10
PART_ROWS = 20_000
PARTS_AT_ONCE = 16
ARCHIVE, ORDER = "archive", "order"


@dataclass
class PartsSent(WriterCommitMessage):
    query: str
    partition: int
    attempt: str
    parts: int


class NotCommitted(Error):
    """The batch has to be run again, or never can be. It says why."""


@dataclass(slots=True)
class Target:
    """What the options say."""

    group: str
    at: str | None
    sink: str
    confirm: str
    timeout_s: float

    @property
    def groups(self) -> tuple[str, str]:
        return self.group, sink_group(self.sink)


def target_from(options: Mapping[str, str], schema: StructType, sink: str | None) -> Target:
    """`sink`: the name of the sink when none is given; None: one has to be given."""
    given = {name.lower(): value for name, value in options.items()}
    for name in given:
        if name not in OPTIONS + SPARKS_OWN:
            raise UsageError(f"ordercast has no option {name!r} for writing: there are {', '.join(OPTIONS)}")
    group = given.get("group") or given.get("path")
    if not group:
        raise UsageError('say to which group the rows go: .option("group", "orders")')
    chosen = given.get("sink_id") or sink
    if not chosen:
        raise UsageError(
            'a stream needs a name that stays the same over restarts: .option("sink_id", "etl"); '
            "no other query may use it"
        )
    confirm = given.get("confirm", ARCHIVE)
    if confirm not in (ARCHIVE, ORDER):
        raise UsageError(f"confirm={confirm!r} is neither {ARCHIVE} nor {ORDER}")
    field = next((one for one in schema.fields if one.name == "data"), None)
    if field is None or field.dataType.typeName() not in ("binary", "string"):
        raise UsageError("rows are sent from the column `data`, binary or string, and there is none: select one")
    sink_group(chosen)
    return Target(checked_archived(group), given.get("at"), chosen, confirm, float(given.get("timeout_s", "30")))


class _Writer:
    """What batches and streams have in common."""

    def __init__(self, target: Target) -> None:
        self._target = target

    def _send(self, query: str, batch: int, rows: Iterator[pa.RecordBatch]) -> PartsSent:
        context = TaskContext.get()
        assert context is not None
        attempt = f"{context.taskAttemptId()}-{uuid4().hex[:12]}"
        partition, parts = context.partitionId(), 0
        waiting: list[bytes] = []
        client: BlockingClient | None = None
        connecting = connect(self._target.at)
        try:
            for chunk in _chunks(rows):
                waiting.append(part_bytes(Part(query, batch, partition, attempt, parts, chunk)))
                parts += 1
                if len(waiting) > PARTS_AT_ONCE:
                    client = client or connecting.__enter__()
                    client.send_many(self._target.groups, waiting[:-1])
                    waiting = waiting[-1:]
            if waiting:  # when the last has its place, all have
                client = client or connecting.__enter__()
                client.send_many(self._target.groups, waiting, confirm=True)
        finally:
            if client is not None:
                connecting.__exit__(None, None, None)
        return PartsSent(query, partition, attempt, parts)

    def _commit(self, query: str, batch: int, messages: Sequence[WriterCommitMessage | None]) -> None:
        sent = [message for message in messages if isinstance(message, PartsSent)]
        winners = checked_winners((one.partition, one.attempt, one.parts) for one in sent if one.parts)
        marker = marker_bytes(Marker(query, batch, winners))
        with connect(self._target.at) as me:
            me.send(self._target.groups, marker, confirm=True)
            if self._target.confirm == ARCHIVE:
                self._await_archiver(me, batch)

    def _await_archiver(self, me: BlockingClient, batch: int) -> None:
        target, end = self._target, monotonic() + self._target.timeout_s
        while True:
            try:
                event = me.receive(max(0.0, end - monotonic()))
            except TimeoutError:
                raise NotCommitted(
                    f"no archiver of {target.group} has said within {target.timeout_s:.0f} s that batch {batch} of "
                    f"{target.sink} is on disk: start one with `ordercast archive {target.group}`, or set confirm=order"
                ) from None
            answer = _answer(event.data) if isinstance(event, Message) else None
            if answer is not None and (answer["sink"], answer["batch"]) == (target.sink, batch):
                self._judge(Outcome(answer["outcome"]), batch)
                return

    def _judge(self, outcome: Outcome, batch: int) -> None:
        if outcome is Outcome.INCOMPLETE:
            raise NotCommitted(
                f"the archive of {self._target.group} has missed a part of batch {batch} of {self._target.sink}: "
                "restart the query, which sends it again"
            )
        if outcome is Outcome.FOREIGN:
            raise NotCommitted(
                f"the sink_id {self._target.sink} belongs to another query: choose another one, or use the checkpoint "
                "of that query"
            )


def _answer(data: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(data)
        return found if found["ordercast"] == "sink" else None
    except (ValueError, KeyError, TypeError):
        return None


def _chunks(batches: Iterator[pa.RecordBatch]) -> Iterator[list[bytes]]:
    """Rows of a part."""
    rows: list[bytes] = []
    size = 0
    for batch in batches:
        for value in batch.column("data").cast("binary").to_pylist():
            row = b"" if value is None else value
            rows.append(row)
            size += len(row)
            if size >= PART_SIZE or len(rows) >= PART_ROWS:
                yield rows
                rows, size = [], 0
    if rows:
        yield rows


class GroupStreamWriter(_Writer, DataSourceStreamArrowWriter):
    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        super().__init__(target_from(options, schema, None))

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        context = TaskContext.get()
        assert context is not None
        batch = context.getLocalProperty("streaming.sql.batchId")
        query = context.getLocalProperty("sql.streaming.queryId")
        if batch is None or query is None:
            raise NotCommitted("Spark does not tell the number of the batch: PySpark 4.2 or newer does")
        return self._send(query, int(batch), iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        queries = {message.query for message in messages if isinstance(message, PartsSent)}
        if len(queries) == 1:
            self._commit(queries.pop(), batchId, messages)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Parts without a marker are nothing."""


class GroupBatchWriter(_Writer, DataSourceArrowWriter):
    """Each `save()` is a sink of its own."""

    def __init__(self, options: Mapping[str, str], schema: StructType, overwrite: bool) -> None:
        if overwrite:
            raise UsageError('what was sent to a group cannot be taken back: use .mode("append")')
        self._query = uuid4().hex
        others = {name: value for name, value in options.items() if name.lower() != "sink_id"}
        super().__init__(target_from(others, schema, f"once-{self._query}"))

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return self._send(self._query, 0, iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        self._commit(self._query, 0, messages)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Parts without a marker are nothing."""
