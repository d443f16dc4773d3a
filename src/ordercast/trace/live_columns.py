"""What a live node gathered, made into one table: messages in runs (`runs.py`), other events as rows. Pure.

The writer's thread does this, by arrays. A run is written only where the stamps of its messages say so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ordercast.model.ids import ProcessId
from ordercast.trace.arrow import table_from, table_with
from ordercast.trace.columns import RowKind, Rows, signed
from ordercast.trace.digests import Bytes, Ints
from ordercast.trace.live_items import DeliveredRun, Item, SubmittedRun, look
from ordercast.trace.live_stamp import LIVE_STAMP_ENDS, LIVE_STAMP_SIZE
from ordercast.trace.records import STAMPED, UNSTAMPED, DeliveredBatch, Event, Submitted
from ordercast.trace.to_rows import rows_from

Flags = NDArray[np.bool_]

_STAMP = np.dtype([("process", ">i8"), ("sender", ">u4"), ("high", ">u2"), ("low", ">u4")])  # the counter in two parts
assert (*accumulate((8, 4, 2 + 4)),) == LIVE_STAMP_ENDS and _STAMP.itemsize == LIVE_STAMP_SIZE
_MESSAGES_AT_ONCE = 1 << 12
_IDENTITY = ("sender_process", "sender", "counter")


class _Place(NamedTuple):
    """Where the messages of one parcel are."""

    idx: int
    n: int
    t: int
    configuration_seq: int
    configuration_rep: int
    origin_seq: int
    origin_rep: int
    number: int  # of the parcel
    each: int
    base: int
    originator: int
    messages: int


class Gathered:
    """Rows of one process, numbered on from the table before."""

    def __init__(self, process: ProcessId) -> None:
        self._process = process
        self._counts: dict[ProcessId, int] = {process: 0}  # rows so far, each message counted as one
        self._n = 0  # events so far
        self._clear()

    def _clear(self) -> None:
        self._rows = Rows()  # of events that are no runs
        self._submitted: list[tuple[int, int, SubmittedRun]] = []  # idx and n
        self._delivered: list[_Runs] = []

    def add(self, items: Sequence[Item]) -> None:
        """Take these; messages that nobody has looked at yet are looked at now."""
        found: list[DeliveredRun] = []
        places: list[_Place] = []
        for item in items:
            if isinstance(item, SubmittedRun):
                self._add_submitted(item)
            elif isinstance(item, DeliveredRun):
                if item.count:
                    found.append(item)
                self._add_delivered(item, places)
            else:
                self._add_event(item)
            self._n += 1
        if unseen := [run for run in found if not run.is_seen]:
            look(unseen)
        self._delivered += _runs_in(places, found)

    def table(self, schema: pa.Schema) -> pa.Table:
        """Return the rows of all that was added since the last table."""
        tables = []
        if self._rows.messages or self._rows.control:
            tables.append(table_from(self._rows, schema, 0))
        if self._submitted:
            tables.append(_submitted_table(self._process, self._submitted, schema))
        if self._delivered:
            tables.append(_delivered_table(self._process, self._delivered, schema))
        self._clear()
        return pa.concat_tables(tables)

    def _add_event(self, event: Event) -> None:
        rows = rows_from((event,), self._n, self._counts)
        self._rows.control += rows.control
        self._rows.messages += rows.messages

    def _add_submitted(self, run: SubmittedRun) -> None:
        if not len(run.sizes):
            self._add_event(Submitted(run.at, self._process, (), run.destinations))
            return
        self._submitted.append((self._counts[self._process], self._n, run))
        self._counts[self._process] += len(run.sizes)

    def _add_delivered(self, run: DeliveredRun, places: list[_Place]) -> None:
        if not run.count:
            self._add_event(DeliveredBatch(run.at, self._process, run.configuration, run.origin, ()))
            return
        (seq, rep), (origin_seq, origin_rep) = map(signed, run.configuration), map(signed, run.origin)
        idx = self._counts[self._process]
        for number, originator, _, _, count, each, base in run.outlines:
            where = idx, self._n, run.at, seq, rep, origin_seq, origin_rep, signed(number), each, base
            places.append(_Place(*where, signed(originator), count))
            idx += count
        self._counts[self._process] = idx


def _submitted_table(process: ProcessId, submitted: list[tuple[int, int, SubmittedRun]], schema: pa.Schema) -> pa.Table:
    runs = [run for _, _, run in submitted]
    count = len(runs)
    counts = np.array([len(run.sizes) for run in runs])
    columns = {
        "process": np.full(count, signed(process), np.int64),
        "idx": [idx for idx, _, _ in submitted],
        "n": [n for _, n, _ in submitted],
        "t": [run.at for run in runs],
        "kind": np.full(count, int(RowKind.SUBMITTED), np.int8),
        "sender_process": np.full(count, signed(process), np.int64),
        "sender": [run.sender for run in runs],
        "counter": [run.first for run in runs],
        "service": [run.service for run in runs],
        "destinations": [run.destinations or None for run in runs],
    }
    sizes, digests = (np.concatenate([getattr(run, name) for run in runs]) for name in ("sizes", "digests"))
    return table_with({**columns, **_of_each(counts, sizes, digests)}, count, schema, 0)


def _delivered_table(process: ProcessId, found: list[_Runs], schema: pa.Schema) -> pa.Table:
    columns: dict[str, Any] = {
        name: np.concatenate([runs.columns[name] for runs in found]) for name in found[0].columns
    }
    messages, sizes, digests, is_known = (
        np.concatenate([getattr(runs, name) for runs in found]) for name in ("messages", "sizes", "digests", "is_known")
    )
    for name in _IDENTITY:
        columns[name] = pa.array(columns[name], mask=~is_known)
    columns["process"] = np.full(len(messages), signed(process), np.int64)
    columns["kind"] = np.full(len(messages), int(RowKind.DELIVERED), np.int8)
    return table_with({**columns, **_of_each(messages, sizes, digests)}, len(messages), schema, 0)


class _Runs(NamedTuple):
    """Runs of delivered messages."""

    columns: dict[str, Ints]  # a value for each run
    messages: Ints  # how many it has
    is_known: Flags  # who sent it
    sizes: Ints  # of each message
    digests: Ints


def _runs_in(places: list[_Place], found: list[DeliveredRun]) -> Iterator[_Runs]:
    """The runs of parcels, some thousands of messages at a time: their columns stay in the processor's cache."""
    begin = first = count = parcels = 0
    for last, run in enumerate(found, 1):
        count += run.count
        parcels += len(run.outlines)
        if count >= _MESSAGES_AT_ONCE or last == len(found):
            yield _runs_of(places[begin : begin + parcels], found[first:last])
            first, begin = last, begin + parcels
            count = parcels = 0


def _runs_of(places: list[_Place], found: list[DeliveredRun]) -> _Runs:
    """The parcels, cut where a message does not follow the one before it."""
    at = dict(zip(_Place._fields, np.array(places, np.int64).T, strict=True))
    counts = at["messages"]
    sizes, digests, heads = (
        np.concatenate([getattr(run, name) for run in found]) for name in ("sizes", "digests", "heads")
    )
    outlines = [outline for run in found for outline in run.outlines]
    senders = _column([outline[2] for outline in outlines], counts)
    services = _column([outline[3] for outline in outlines], counts)
    parcel_of = np.repeat(np.arange(len(outlines)), counts)
    offset = np.arange(len(sizes)) - np.repeat(np.cumsum(counts) - counts, counts)

    identity, is_known = _identities(at["originator"][parcel_of], senders, sizes, heads)
    is_first = offset == 0
    for column in (identity[0], identity[1], services, is_known):
        is_first[1:] |= column[1:] != column[:-1]
    counter = identity[2]
    step = counter != UNSTAMPED
    is_first[1:] |= (counter[1:] - counter[:-1] != step[1:]) | (step[1:] != step[:-1])
    firsts = np.flatnonzero(is_first)
    mine, place = parcel_of[firsts], offset[firsts]

    columns = {name: at[name][mine] for name in ("n", "t", "each", "base", *_Place._fields[3:7])}
    columns["idx"] = at["idx"][mine] + place
    columns["number"] = at["number"][mine] + place // columns["each"]
    columns["slot"] = columns["base"] + place % columns["each"]
    columns["service"] = services[firsts]
    columns |= {name: column[firsts] for name, column in zip(_IDENTITY, identity, strict=True)}
    return _Runs(columns, np.diff(np.append(firsts, len(sizes))), is_known[firsts], sizes, digests)


def _identities(originators: Ints, senders: Ints, sizes: Ints, heads: Bytes) -> tuple[list[Ints], Flags]:
    """Return the processes, senders and counters of messages, and which messages have any."""
    stamps = _stamps_in(heads)
    is_stamped = senders & STAMPED != 0
    is_known = ~is_stamped | ((sizes >= LIVE_STAMP_SIZE) & (stamps[2] != UNSTAMPED))
    if is_stamped.all() and is_known.all():
        return stamps, is_known
    unstamped = originators, senders, np.full(len(senders), UNSTAMPED)
    both = zip(stamps, unstamped, strict=True)
    return [np.where(is_stamped, stamp, other) * is_known for stamp, other in both], is_known


def _stamps_in(heads: Bytes) -> list[Ints]:
    """Return processes, senders and counters as a file keeps them, the processes signed. `heads` has the first bytes
    of each message."""
    found = heads.view(_STAMP)[:, 0]
    process, sender, high, low = (found[name].astype(np.int64) for name in _STAMP.names or ())
    return [process, sender, high << 32 | low]


def _column(values: Sequence[Sequence[int]], counts: Ints) -> Ints:
    """Return the values of all messages, which are mostly the same within a parcel."""
    firsts = np.array([of_parcel[0] for of_parcel in values], np.int64)
    column: Ints = np.repeat(firsts, counts)
    begin = 0
    for of_parcel, first, count in zip(values, firsts.tolist(), counts.tolist(), strict=True):
        if of_parcel.count(first) != count:
            column[begin : begin + count] = list(of_parcel)
        begin += count
    return column


def _of_each(counts: Ints, sizes: Ints, digests: Ints) -> dict[str, Any]:
    """The columns of runs that speak of each message."""
    begins = np.cumsum(counts) - counts
    first = sizes[begins]
    differ = np.maximum.reduceat(sizes != np.repeat(first, counts), begins)
    return {
        "messages": counts.astype(np.int32),
        "size": first,
        "digests": _lists(digests, counts, np.ones(len(counts), np.bool_)),
        "sizes": _lists(sizes, counts, differ),
    }


def _lists(values: Ints, counts: Ints, is_there: Flags) -> pa.Array:
    """A list for each run; null where there is none."""
    if not is_there.any():
        return pa.nulls(len(counts), pa.list_(pa.uint32()))
    ends = np.cumsum(np.where(is_there, counts, 0))
    offsets = pa.array(np.concatenate([[0], ends]).astype(np.int32))
    chosen = values if is_there.all() else values[np.repeat(is_there, counts)]
    return pa.ListArray.from_arrays(offsets, pa.array(chosen.astype(np.uint32)), mask=pa.array(~is_there))
