"""Rows as Arrow tables, and back: what Parquet files of runs and the streams of live nodes have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ordercast.model.errors import UsageError
from ordercast.trace.columns import COLUMNS, MESSAGE_COLUMNS, MESSAGE_KINDS, Cells, Column, MessageRow, Rows
from ordercast.trace.event_rows import EventT, EventTable

FORMAT_VERSION = 2
FORMAT_KEY = b"ordercast.format"


class TraceError(UsageError):
    """A trace cannot be written or read. Names the file, the reason, and what to do."""


def schema_with(metadata: Mapping[bytes, bytes], columns: Mapping[str, Column] = COLUMNS) -> pa.Schema:
    lists = {"processes": pa.list_(pa.int64()), "names": pa.list_(pa.string()), "numbers": pa.list_(pa.uint32())}
    types = {**lists, "bool": pa.bool_(), "string": pa.string()}
    fields = [(name, types.get(column.type) or getattr(pa, column.type)()) for name, column in columns.items()]
    return pa.schema(fields).with_metadata({FORMAT_KEY: str(FORMAT_VERSION).encode(), **metadata})


def table_from(rows: Rows, schema: pa.Schema, run: int) -> pa.Table:
    """The messages, then the other events."""
    messages = dict(zip(MESSAGE_COLUMNS, zip(*rows.messages, strict=True), strict=False))
    return table_of(messages, len(rows.messages), rows.control, schema, run)


def table_of(
    messages: Mapping[str, Sequence[Any]], count: int, control: Sequence[Cells], schema: pa.Schema, run: int
) -> pa.Table:
    """The same, of messages that come in columns already."""
    tables = []
    if control:
        columns = {name: [cells.get(name) for cells in control] for name in COLUMNS}
        tables.append(table_with(columns, len(control), schema, run))
    if count or not control:
        tables.insert(0, table_with(messages, count, schema, run))
    return pa.concat_tables(tables)


def table_with(columns: Mapping[str, Any], count: int, schema: pa.Schema, run: int) -> pa.Table:
    """Return a table of these columns, sequences or arrays; the others of the schema are null."""
    columns = {**columns, "run": (run,) * count}
    arrays = [
        _array(columns[field.name], field.type) if field.name in columns else pa.nulls(count, field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


def _array(column: Any, kind: pa.DataType) -> pa.Array:
    return column if isinstance(column, pa.Array) else pa.array(column, type=kind)


def evidence_table(
    events: Sequence[EventT], table: EventTable[EventT], schema: pa.Schema, run: int, first: int = 0
) -> pa.Table:
    """Events of clients or replicas, those of a kind together; the first of them is number `first`."""
    parts = [table_with(columns, count, schema, run) for count, columns in table.columns_of(events, first)]
    return pa.concat_tables(parts) if parts else table_with({}, 0, schema, run)


def evidence_events(rows: pa.Table, table: EventTable[EventT]) -> dict[int, EventT]:
    """Events of clients or replicas, by number. ValueError, KeyError or TypeError when these are no such rows."""
    check_columns(rows, table.columns)
    found: dict[int, EventT] = {}
    for kind in pc.unique(rows["kind"]).to_pylist():
        chosen = rows.filter(pc.equal(rows["kind"], kind)).select(table.columns_for(kind))
        found.update((cells["n"], table.event(kind, cells)) for cells in chosen.to_pylist())
    if len(found) != len(rows):
        raise ValueError("events are numbered twice")
    return found


def check_columns(table: pa.Table, columns: Mapping[str, Column]) -> None:
    """ValueError when one is missing."""
    present = set(table.column_names)
    missing = [name for name in columns if name not in present]
    if missing:
        raise ValueError(f"column {missing[0]} is missing")


def rows_of(table: pa.Table) -> Rows:
    """ValueError when it is not such a table."""
    check_columns(table, COLUMNS)
    is_message = pc.is_in(table["kind"], value_set=pa.array(MESSAGE_KINDS, type=table["kind"].type))
    messages = (
        table.filter(is_message).select(list(MESSAGE_COLUMNS)).sort_by([("n", "ascending"), ("idx", "ascending")])
    )
    columns = [messages[name].to_pylist() for name in MESSAGE_COLUMNS]
    return Rows(
        [MessageRow._make(row) for row in zip(*columns, strict=True)], table.filter(pc.invert(is_message)).to_pylist()
    )


def version_problem(metadata: Mapping[bytes, bytes], *known: int) -> str | None:
    """Why files of this metadata cannot be read here, if they cannot. `known` are versions beside the usual one."""
    version = metadata[FORMAT_KEY].decode(errors="replace")
    readable = [str(number) for number in (FORMAT_VERSION, *known)]
    if version in readable:
        return None
    return (
        f"has trace format {version}, this Ordercast reads format {' and '.join(readable)}: "
        "use the version that wrote it, or record the run again"
    )


def reason_of(error: Exception) -> str:
    return (getattr(error, "strerror", None) or str(error) or type(error).__name__).split("\n")[0].rstrip(".")
