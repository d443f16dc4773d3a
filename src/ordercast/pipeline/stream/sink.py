"""The Spark sink: rows of a batch or a stream to a group, each exactly once.

    rows.writeStream.format("ordercast").option("group", "totals").option("sinkId", "etl").start()

Tasks send their rows in tagged parts, and wait until these have their places in the order. The commit sends one marker
and waits until an archiver has it on disk, and says what it does there (`archive.rows`). A batch that is run again
because anything died sends new parts and a new marker: at most one marker of a batch counts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
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
from ordercast.pipeline.stream.options import named

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

OPTIONS = ("group", "at", "sinkId", "confirm", "timeoutSeconds")
ALIASES = {"topic": "group", "path": "group", "sink_id": "sinkId", "timeout_s": "timeoutSeconds"}  # Kafka's, and former
SPARKS_OWN = ("checkpointlocation", "queryname", "outputmode", "asyncprogresstrackingenabled")  # handed on by it
GROUP_COLUMNS = ("group", "topic")  # where rows say to which group they go
PART_SIZE = 256 << 10
PART_ROWS = 20_000
PARTS_AT_ONCE = 16
ARCHIVE, ORDER = "archive", "order"


@dataclass
class PartsSent(WriterCommitMessage):
    query: str
    partition: int
    attempt: str
    parts: dict[str, int]  # by group


class NotCommitted(Error):
    """The batch has to be run again, or never can be. It says why."""


@dataclass(slots=True)
class Target:
    """What the options say, and the columns."""

    group: str  # to which all rows go; none when each says it
    column: str  # in which each says it
    at: str | None
    sink: str
    confirm: str
    timeout_s: float

    def groups(self, group: str) -> tuple[str, str]:
        return group, sink_group(self.sink)


def target_from(options: Mapping[str, str], schema: StructType, sink: str | None) -> Target:
    """`sink`: the name of the sink when none is given; None: one has to be given."""
    ours = {name: value for name, value in options.items() if name.lower() not in SPARKS_OWN}
    given = named(ours, OPTIONS, ALIASES, "writing")
    kinds = {field.name: field.dataType.typeName() for field in schema.fields}
    group, column = given.get("group", ""), next((name for name in GROUP_COLUMNS if kinds.get(name) == "string"), "")
    if not (group or column):
        raise UsageError('say to which group the rows go: .option("group", "orders"), or a column `group` of strings')
    chosen = given.get("sinkId") or sink
    if not chosen:
        raise UsageError(
            'a stream needs a name that stays the same over restarts: .option("sinkId", "etl"); '
            "no other query may use it"
        )
    confirm = given.get("confirm", ARCHIVE)
    if confirm not in (ARCHIVE, ORDER):
        raise UsageError(f"confirm={confirm!r} is neither {ARCHIVE} nor {ORDER}")
    if kinds.get("data") not in ("binary", "string"):
        raise UsageError("rows are sent from the column `data`, binary or string, and there is none: select one")
    sink_group(chosen)
    seconds = _seconds(given.get("timeoutSeconds", "30"))
    checked = checked_archived(group) if group else ""
    return Target(checked, "" if group else column, given.get("at"), chosen, confirm, seconds)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise UsageError(f"timeoutSeconds={text!r} is no time: write a number of seconds above 0")
    return seconds


class _Writer:
    """What batches and streams have in common."""

    def __init__(self, target: Target) -> None:
        self._target = target

    def _send(self, query: str, batch: int, rows: Iterator[pa.RecordBatch]) -> PartsSent:
        context = TaskContext.get()
        assert context is not None
        target, attempt = self._target, f"{context.taskAttemptId()}-{uuid4().hex[:12]}"
        partition, parts = context.partitionId(), dict.fromkeys([target.group] if target.group else [], 0)
        waiting: dict[str, list[bytes]] = {}
        client: BlockingClient | None = None
        connecting = connect(target.at)
        try:
            for group, chunk in _chunks(rows, target):
                number = parts.get(group, 0)
                parts[group] = number + 1
                queue = waiting.setdefault(group, [])
                queue.append(part_bytes(Part(query, batch, partition, attempt, number, chunk)))
                if len(queue) > PARTS_AT_ONCE:
                    client = client or connecting.__enter__()
                    client.send_many(target.groups(group), queue[:-1])
                    del queue[:-1]
            for group, queue in waiting.items():  # when the last of a group has its place, all have
                client = client or connecting.__enter__()
                client.send_many(target.groups(group), queue, confirm=True)
        finally:
            if client is not None:
                connecting.__exit__(None, None, None)
        return PartsSent(query, partition, attempt, parts)

    def _commit(self, query: str, batch: int, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Each group has a marker of its own: a batch that is run again adds what is missing to those that lack it."""
        sent = [message for message in messages if isinstance(message, PartsSent)]
        groups = sorted({group for one in sent for group in one.parts})
        if not groups:
            return
        with connect(self._target.at) as me:
            for group in groups:
                counted = [(one.partition, one.attempt, one.parts.get(group, 0)) for one in sent]
                winners = checked_winners(one for one in counted if one[2])
                me.send(self._target.groups(group), marker_bytes(Marker(query, batch, winners)), confirm=True)
            if self._target.confirm == ARCHIVE:
                self._await_archivers(me, batch, groups)

    def _await_archivers(self, me: BlockingClient, batch: int, groups: Sequence[str]) -> None:
        target, end, missing = self._target, monotonic() + self._target.timeout_s, set(groups)
        while missing:
            try:
                event = me.receive(max(0.0, end - monotonic()))
            except TimeoutError:
                group = min(missing)
                raise NotCommitted(
                    f"no archiver of {group} has said within {target.timeout_s:g} s that batch {batch} of "
                    f"{target.sink} is on disk: start one with `ordercast archive {group}`, or set confirm=order"
                ) from None
            answer = _answer(event.data) if isinstance(event, Message) else None
            if answer is not None and (answer["sink"], answer["batch"]) == (target.sink, batch):
                group = str(answer.get("group", ""))
                if group in missing:
                    missing.discard(group)
                    self._judge(Outcome(answer["outcome"]), group, batch)

    def _judge(self, outcome: Outcome, group: str, batch: int) -> None:
        if outcome is Outcome.INCOMPLETE:
            raise NotCommitted(
                f"the archive of {group} has missed a part of batch {batch} of {self._target.sink}: "
                "restart the query, which sends it again"
            )
        if outcome is Outcome.FOREIGN:
            raise NotCommitted(
                f"the sinkId {self._target.sink} belongs to another query: choose another one, or use the checkpoint "
                "of that query"
            )


def _answer(data: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(data)
        return found if found["ordercast"] == "sink" else None
    except (ValueError, KeyError, TypeError):
        return None


def _chunks(batches: Iterator[pa.RecordBatch], target: Target) -> Iterator[tuple[str, list[bytes]]]:
    """Yield groups, and rows of one part each."""
    rows: dict[str, list[bytes]] = {}
    sizes: dict[str, int] = {}
    for batch in batches:
        values = batch.column("data").cast("binary").to_pylist()
        groups = batch.column(target.column).to_pylist() if target.column else repeat(target.group)
        for group, value in zip(groups, values, strict=False):
            if group not in rows:
                rows[_checked(group, target)], sizes[group] = [], 0
            row = b"" if value is None else value
            rows[group].append(row)
            sizes[group] += len(row)
            if sizes[group] >= PART_SIZE or len(rows[group]) >= PART_ROWS:
                yield group, rows[group]
                rows[group], sizes[group] = [], 0
    yield from ((group, some) for group, some in rows.items() if some)


def _checked(group: str | None, target: Target) -> str:
    if group is None:
        raise UsageError(f"a row says no group: its column {target.column} is null")
    return checked_archived(group)


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
        if any(name.lower() in ("sinkid", "sink_id") for name in options):
            raise UsageError("sinkId: for a stream, and this is a table, each save() of which is a sink of its own")
        self._query = uuid4().hex
        super().__init__(target_from(options, schema, f"once-{self._query}"))

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return self._send(self._query, 0, iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        self._commit(self._query, 0, messages)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Parts without a marker are nothing."""
