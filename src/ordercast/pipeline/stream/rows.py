"""Entries of an archive as Arrow batches. Runs of messages are columns on disk and stay columns: nothing is done for
each message."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import repeat

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ordercast.archive.frames import Columns, Run
from ordercast.archive.places import view_text
from ordercast.archive.reading import ArchiveFrame, GroupReader, Lost
from ordercast.archive.rows import part_from
from ordercast.groups.names import SINK, sink_of
from ordercast.model.events import Transition, View
from ordercast.model.headers import Headers
from ordercast.model.ids import NO_POSITION, Places
from ordercast.model.service import Service
from ordercast.trace.columns import signed

_POSITION = pa.struct(
    [("origin_seq", pa.int64()), ("origin_rep", pa.int64()), ("number", pa.int64()), ("slot", pa.int32())]
)
_TIME = pa.timestamp("us", tz="UTC")
ARROW_SCHEMA = pa.schema(
    [
        ("group", pa.string()),
        ("branch", pa.string()),
        ("number", pa.int64()),
        ("row", pa.int64()),
        ("kind", pa.string()),
        ("groups", pa.list_(pa.string())),
        ("position", _POSITION),
        ("sender", pa.string()),
        ("service", pa.string()),
        ("data", pa.binary()),
        ("headers", pa.map_(pa.string(), pa.string())),
        ("view", pa.string()),
        ("time", _TIME),
        ("members", pa.list_(pa.string())),
        ("reason", pa.string()),
    ]
)
ROWS = 20_000  # of one batch, about
SIZE = 16 << 20  # of its payloads, about
_SERVICES = pa.array([service.name.lower() for service in Service])
_KINDS = pa.array(["message", "view", "transition", "gap"])

Ints = npt.NDArray[np.int64]


class _Words:
    """Values that repeat: each is kept once, and rows have its number."""

    def __init__(self, kind: pa.DataType) -> None:
        self._kind = kind
        self._numbers: dict[object, int] = {}

    def number(self, value: object) -> int:
        return self._numbers.setdefault(value, len(self._numbers))

    def column(self, numbers: Sequence[Ints]) -> pa.Array:
        values = [list(value) if isinstance(value, tuple) else value for value in self._numbers]
        if values == [None]:
            return pa.nulls(sum(map(len, numbers)), self._kind)
        return pa.array(values, self._kind).take(pa.array(_joined(numbers)))


class Rows:
    """Gathers rows of one group and branch, and makes the columns that are wanted of them."""

    def __init__(self, group: str, branch: str, wanted: Sequence[str]) -> None:
        self.group, self._branch = group, branch
        self._schema = pa.schema([ARROW_SCHEMA.field(name) for name in wanted])
        self._has_headers = "headers" in wanted
        self._begin()

    def _begin(self) -> None:
        self.count = 0
        self.size = 0
        wanted = self._schema.names
        self._words = {name: _Words(ARROW_SCHEMA.field(name).type) for name in _WORDS if name in wanted}
        self._numbers: dict[str, list[Ints]] = {name: [] for name in (*self._words, *_NUMBERS)}
        self._data: list[bytes | memoryview] = []
        self._headers: list[Headers | None] = []  # of each row, when the column is wanted

    @property
    def is_full(self) -> bool:
        return self.count >= ROWS or self.size >= SIZE

    def add(
        self,
        numbers: Ints,
        kind: int,
        words: dict[str, object],
        positions: tuple[Ints, Ints, Ints, Ints],
        services: Ints,
        data: Sequence[bytes | memoryview],
        lengths: Ints,
        time_us: int,
        *,
        rows: Ints | None = None,
        headers: Sequence[Headers] = (),
    ) -> None:
        count = len(numbers)
        if self._has_headers:
            self._headers += headers or repeat(None, count)
        for name, known in self._words.items():
            self._numbers[name].append(np.full(count, known.number(words.get(name)), np.int64))
        values = {
            "number": numbers,
            "row": np.zeros(count, np.int64) if rows is None else rows,
            "kind": np.full(count, kind, np.int64),
            "service": services,
            "time": np.full(count, time_us, np.int64),
            "length": lengths,
            **dict(zip(_POSITION_NUMBERS, positions, strict=True)),
        }
        for name, column in values.items():
            self._numbers[name].append(column)
        self._data += data
        self.count += count
        self.size += int(lengths.sum())

    def take(self) -> pa.RecordBatch:
        """Return what has been gathered, and begin anew."""
        columns = [self._column(name) for name in self._schema.names]
        self._begin()
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def _column(self, name: str) -> pa.Array:
        match name:
            case "group":
                return pa.repeat(self.group, self.count)
            case "branch":
                return pa.repeat(self._branch, self.count)
            case "kind":
                return _KINDS.take(pa.array(self._joined("kind")))
            case "position":
                return self._positions()
            case "service":
                return _SERVICES.take(pa.array(self._joined("service"), pa.int64(), mask=self._joined("kind") != 0))
            case "data":
                return self._payloads()
            case "time":
                return pa.array(self._joined("time"), pa.int64()).cast(_TIME)
            case "headers":
                return self._header_maps()
            case "number" | "row":
                return pa.array(self._joined(name), pa.int64())
            case _:
                return self._words[name].column(self._numbers[name])

    def _joined(self, name: str) -> Ints:
        return _joined(self._numbers[name])

    def _positions(self) -> pa.Array:
        arrays = [
            pa.array(self._joined(name).astype(field.type.to_pandas_dtype()))
            for name, field in zip(_POSITION_NUMBERS, _POSITION, strict=True)
        ]
        return pa.StructArray.from_arrays(arrays, fields=list(_POSITION))

    def _header_maps(self) -> pa.Array:
        kind = ARROW_SCHEMA.field("headers").type
        if not any(self._headers):
            return pa.nulls(self.count, kind)
        return pa.array([None if headers is None else list(headers.items()) for headers in self._headers], kind)

    def _payloads(self) -> pa.Array:
        """Only messages have one."""
        offsets = np.zeros(self.count + 1, np.int32)
        np.cumsum(self._joined("length"), out=offsets[1:])
        bitmap = pa.py_buffer(np.packbits(self._joined("kind") == 0, bitorder="little").tobytes())
        payload = pa.py_buffer(b"".join(self._data))
        return pa.Array.from_buffers(pa.binary(), self.count, [bitmap, pa.py_buffer(offsets.tobytes()), payload])


_WORDS = ("groups", "sender", "view", "members", "reason")
_POSITION_NUMBERS = tuple(f"position.{field.name}" for field in _POSITION)
_NUMBERS = ("number", "row", "kind", "service", "time", "length", *_POSITION_NUMBERS)


def _joined(columns: Sequence[Ints]) -> Ints:
    return np.concatenate(columns) if len(columns) != 1 else columns[0]


def batches_of(
    reader: GroupReader,
    frames: Iterator[ArchiveFrame],
    *,
    with_views: bool,
    columns: Sequence[str],
    fails_on_loss: bool = True,
) -> Iterator[pa.RecordBatch]:
    """Yield the batches of one branch. Lost when parts of a sink's batch are gone whose marker is there; unless it
    `fails_on_loss`, such a batch is passed over as a whole."""
    rows: Rows | None = None
    for frame in frames:
        rows = rows or Rows(reader.group, frame.branch, columns)
        for run in frame.runs():
            if not fails_on_loss and not _has_parts(reader, run):
                continue
            for _ in _added(rows, reader, frame, run, with_views):
                if rows.is_full:
                    yield rows.take()
    if rows is not None and rows.count:
        yield rows.take()


def _has_parts(reader: GroupReader, run: Run) -> bool:
    """Tell whether everything is there that a marker commits."""
    try:
        for place in run.commit.parts if run.commit is not None else ():
            reader.message(place)
    except Lost:
        return False
    return True


def _added(rows: Rows, reader: GroupReader, frame: ArchiveFrame, run: Run, with_views: bool) -> Iterator[None]:
    """Add a run in pieces of bounded size. Behind each the rows may be taken: a sink's batch may have any size."""
    if not isinstance(run.item, Columns):
        if with_views:
            _add_news(rows, frame, run)
            yield
    elif (sink := sink_of(run.item.groups)) is None:
        _add_messages(rows, frame, run, run.item)
        yield
    elif run.commit is not None:
        yield from _added_committed(rows, reader, frame, run, run.item, sink)


def _add_messages(rows: Rows, frame: ArchiveFrame, run: Run, item: Columns) -> None:
    count = item.count
    data: Sequence[bytes | memoryview] = [item.data]
    headers: Sequence[Headers] = ()
    if item.is_headed:
        batch = item.batch()
        data, headers = batch.data, batch.headers
        lengths = np.fromiter(map(len, data), np.int64, count)
    elif isinstance(item.lengths, int):
        lengths = np.full(count, item.lengths, np.int64)
    else:
        lengths = np.frombuffer(item.lengths, np.uint32).astype(np.int64)
    services = np.frombuffer(item.services, np.uint8).astype(np.int64)
    rows.add(
        np.arange(run.first, run.first + count, dtype=np.int64),
        0,
        {"groups": item.groups, "sender": item.sender, "view": view_text(frame.header.view)},
        _positions(item.places, np.arange(count, dtype=np.int64)),
        np.full(count, services[0], np.int64) if len(services) == 1 else services,
        data,
        lengths,
        frame.header.time_ns // 1000,
        headers=headers,
    )


def _added_committed(
    rows: Rows, reader: GroupReader, frame: ArchiveFrame, run: Run, item: Columns, sink: str
) -> Iterator[None]:
    """All rows of a sink's batch stand where its marker stands, one behind the other, and are the sink's."""
    assert run.commit is not None
    behind = 0
    groups = tuple(group for group in item.groups if not group.startswith(SINK))
    for place in run.commit.parts:
        payloads = list(part_from(reader.message(place).data).rows)
        count = len(payloads)
        if not count:
            continue
        rows.add(
            np.full(count, run.first, np.int64),
            0,
            {"groups": groups, "sender": sink, "view": view_text(frame.header.view)},
            _positions(item.places, np.zeros(count, np.int64)),
            np.full(count, item.services[0], np.int64),
            payloads,
            np.fromiter(map(len, payloads), np.int64, count),
            frame.header.time_ns // 1000,
            rows=np.arange(behind, behind + count, dtype=np.int64),
        )
        behind += count
        yield


def _positions(places: Places, indices: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """Return the positions at these indices, in the columns of `_POSITION`."""
    origin, number, base, each, first = places
    seq, representative = (np.full(len(indices), signed(part), np.int64) for part in origin)
    packets, slots = np.divmod(indices + first, each)
    return seq, representative, number + packets, base + slots


def _add_news(rows: Rows, frame: ArchiveFrame, run: Run) -> None:
    news = run.item
    words: dict[str, object] = {"groups": (rows.group,)}
    kind, position = 3, NO_POSITION
    if isinstance(news, View):
        kind, position = 1, news.id.position
        words |= {"members": news.members, "reason": news.reason.value, "view": view_text(news.id)}
    elif isinstance(news, Transition):
        kind = 2
        words |= {"members": news.remaining, "view": view_text(news.view)}
    zero = np.zeros(1, np.int64)
    positions = _positions(Places(*position, each=1, first=0), zero)
    rows.add(np.array([run.first], np.int64), kind, words, positions, zero, [], zero, frame.header.time_ns // 1000)
