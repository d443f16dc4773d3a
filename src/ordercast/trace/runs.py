"""Runs of messages in the files of live nodes: one row for messages whose counters follow each other.

The messages of a run have one process, one sender and one service. Its row has the identity, the place and the `idx` of
the first, and lists of what differs: digests, and sizes unless they are equal. Readers see none of this: `exploded`
gives a row for each message, as `columns.py` describes. Files of older versions have no runs, and pass unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ordercast.trace.columns import COLUMNS, MESSAGE_COLUMNS, Column
from ordercast.trace.digests import Ints

RUN_COLUMNS: Mapping[str, Column] = {
    "messages": Column("int32", "how many messages the run has; null: the row is one event"),
    "each": Column("int32", "of a delivered run: how many messages have one number"),
    "base": Column("int32", "of a delivered run: the slot of the first message of a number"),
    "digests": Column("numbers", "digest of each message"),
    "sizes": Column("numbers", "bytes of each payload; null: all are as long as the first"),
}


def exploded(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows one by one. ValueError when a run is not sound."""
    if "messages" not in batch.schema.names:
        return batch
    plain = batch.select(list(COLUMNS))
    is_run = batch["messages"].is_valid()
    if not pc.any(is_run).as_py():
        return plain
    messages = _messages_of(batch.filter(is_run), plain.schema)
    rest = plain.filter(pc.invert(is_run))
    if not len(rest):
        return messages
    return pa.Table.from_batches([messages, rest]).combine_chunks().to_batches()[0]


def _messages_of(runs: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    counts = runs["messages"].to_numpy().astype(np.int64)
    if counts.min() < 1 or not pc.all(pc.equal(pc.list_value_length(runs["digests"]), runs["messages"])).as_py():
        raise ValueError("a run of messages is not whole")
    which = np.repeat(np.arange(len(runs)), counts)
    offset = np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts)
    number, slot = _places(runs, which, offset)
    columns = {
        "idx": runs["idx"].to_numpy()[which] + offset,
        "number": number,
        "slot": slot,
        "counter": _counters(runs, which, offset),
        "digest": runs["digests"].flatten(),
        "size": _sizes(runs, which),
    }
    arrays = []
    for field in schema:
        if field.name in columns:
            arrays.append(pa.array(columns[field.name]).cast(field.type))
        elif field.name in MESSAGE_COLUMNS or field.name == "run":
            arrays.append(_repeated(runs[field.name], which))
        else:
            arrays.append(pa.nulls(len(which), field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _repeated(column: pa.Array, which: Ints) -> pa.Array:
    if column.null_count == len(column):
        return pa.nulls(len(which), column.type)
    if column.null_count or pa.types.is_nested(column.type):
        return column.take(pa.array(which))
    return pa.array(column.to_numpy()[which])


def _places(runs: pa.RecordBatch, which: Ints, offset: Ints) -> tuple[pa.Array, pa.Array]:
    """Number and slot of each message; those of submissions are null."""
    number, slot, each, base = (_numbers(runs[name], 0) for name in ("number", "slot", "each", "base"))
    is_delivered = runs["each"].is_valid().to_numpy(zero_copy_only=False)
    if is_delivered.any() and each[is_delivered].min() < 1:
        raise ValueError("a run of messages has no place")
    place = (slot - base)[which] + offset
    each = np.maximum(each, 1)[which]
    is_null = ~is_delivered[which]
    numbers = pa.array(number[which] + place // each, mask=is_null)
    return numbers, pa.array(base[which] + place % each, mask=is_null)


def _counters(runs: pa.RecordBatch, which: Ints, offset: Ints) -> pa.Array:
    """The counters; of messages without a stamp all are 0, of those without identity null."""
    first = _numbers(runs["counter"], 0)
    is_null = runs["counter"].is_null().to_numpy(zero_copy_only=False)
    return pa.array(first[which] + np.where(first[which] != 0, offset, 0), mask=is_null[which])


def _sizes(runs: pa.RecordBatch, which: Ints) -> Ints:
    sizes: Ints = _numbers(runs["size"], 0)[which]
    lists = runs["sizes"]
    if lists.null_count < len(lists):
        has_list = lists.is_valid().to_numpy(zero_copy_only=False)[which]
        found = lists.flatten().to_numpy()
        if len(found) != has_list.sum():
            raise ValueError("a run of messages is not whole")
        sizes[has_list] = found
    return sizes


def _numbers(column: pa.Array, instead: int) -> Ints:
    numbers: Ints = pc.fill_null(column, instead).to_numpy().astype(np.int64)
    return numbers
