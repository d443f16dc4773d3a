"""What a live node gathered, made into one table: messages in columns, other events as rows. Pure.

A delivery stays as the engine gave it until the writer's thread comes here: the event loop pays nothing per message.
Digests and stamps are read from the very bytes that were delivered.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from typing import Any

import pyarrow as pa

from ordercast.model.effects import Deliver, Parcel
from ordercast.model.ids import Instant, ProcessId
from ordercast.trace.arrow import table_of
from ordercast.trace.columns import MESSAGE_COLUMNS, Cells, MessageRow, RowKind, signed
from ordercast.trace.journal import Row
from ordercast.trace.live_stamp import live_stamp_of
from ordercast.trace.records import (
    STAMPED,
    UNSTAMPED,
    DeliveredBatch,
    Event,
    Submitted,
    digest_of,
)
from ordercast.trace.to_rows import rows_from

Item = Event | tuple[Instant, Sequence[Row], tuple[str, ...]] | tuple[Instant, Deliver]

_NO_IDENTITY = (None, None, None)
_PAIRS = ("configuration_seq", "configuration_rep", "origin_seq", "origin_rep")
_COMMON = ("process", "n", "t", "kind", *_PAIRS, "destinations")


class Gathered:
    """Rows of one process, numbered on from the table before."""

    def __init__(self, process: ProcessId) -> None:
        self._process = process
        self._counts: dict[ProcessId, int] = {process: 0}  # rows so far
        self._n = 0  # events so far
        self.clear()

    def table_of(self, items: Iterable[Item], schema: pa.Schema) -> pa.Table:
        """The rows of these."""
        self.add(items)
        table = table_of(self.columns, self.count, self.control, schema, 0)
        self.clear()
        return table

    def clear(self) -> None:
        """Begin the next table."""
        self.count = 0  # messages in columns
        self.columns: dict[str, list[Any]] = {name: [] for name in MESSAGE_COLUMNS}
        self.control: list[Cells] = []

    def add(self, items: Iterable[Item]) -> None:
        for item in items:
            if not isinstance(item, tuple):
                self._add_event(item)
            elif len(item) == 2:
                self._add_delivered(*item)
            else:
                self._add_submitted(*item)
            self._n += 1

    def _add_event(self, event: Event) -> None:
        rows = rows_from((event,), self._n, self._counts)
        self.control += rows.control
        for row in rows.messages:
            for name, value in zip(MESSAGE_COLUMNS, row, strict=True):
                self.columns[name].append(value)
        self.count += len(rows.messages)

    def _add_submitted(self, at: Instant, rows: Sequence[Row], destinations: tuple[str, ...]) -> None:
        if not rows:
            self._add_event(Submitted(at, self._process, (), destinations))
            return
        columns, count = self.columns, len(rows)
        kind, goal = int(RowKind.SUBMITTED), destinations or None
        self._add_common(MessageRow(self._process, 0, self._n, at, kind, destinations=goal), count)
        columns["number"] += repeat(None, count)
        columns["slot"] += repeat(None, count)
        columns["sender_process"] += repeat(signed(self._process), count)
        for name, column in zip(
            ("sender", "counter", "service", "size", "digest"), zip(*rows, strict=True), strict=True
        ):
            columns[name] += column

    def _add_delivered(self, at: Instant, deliver: Deliver) -> None:
        count = len(deliver)
        if not count:
            self._add_event(DeliveredBatch(at, self._process, deliver.configuration, deliver.origin, ()))
            return
        (seq, rep), (origin_seq, origin_rep) = map(signed, deliver.configuration), map(signed, deliver.origin)
        where = seq, rep, origin_seq, origin_rep
        self._add_common(MessageRow(self._process, 0, self._n, at, int(RowKind.DELIVERED), *where), count)
        columns, parcels = self.columns, deliver.parcels
        identities = [identity for parcel in parcels for identity in _identities(parcel)]
        processes, senders, counters = zip(*identities, strict=True)
        positions = [(number, slot) for number, slot, *_ in deliver.messages()]
        columns["number"] += [number for number, _ in positions]
        columns["slot"] += [slot for _, slot in positions]
        columns["sender_process"] += processes
        columns["sender"] += senders
        columns["counter"] += counters
        columns["service"] += [int(service) for parcel in parcels for service in parcel[3]]
        columns["size"] += [len(data) for parcel in parcels for data in parcel[4]]
        columns["digest"] += [digest_of(data) for parcel in parcels for data in parcel[4]]

    def _add_common(self, row: MessageRow, count: int) -> None:
        """What is the same for all messages of a batch, and their `idx`."""
        columns, idx = self.columns, self._counts[self._process]
        for name in _COMMON:
            columns[name] += repeat(getattr(row, name), count)
        columns["idx"] += range(idx, idx + count)
        self._counts[self._process] = idx + count
        self.count += count


def _identities(parcel: Parcel) -> Iterator[tuple[int | None, int | None, int | None]]:
    """Return for each message process, sender and counter."""
    _, originator, senders, _, payloads, *_ = parcel
    for sender, data in zip(senders, payloads, strict=True):
        if sender & STAMPED:
            yield live_stamp_of(data) or _NO_IDENTITY
        else:
            yield signed(originator), sender, UNSTAMPED
