"""Frames: what one write puts into a segment file, with a checksum. A segment is a sequence of frames.

    frame    magic (4) | size (4) | checksum (4) | first number (8) | entries (4) | time, ns (8)
             | view in which its messages were delivered (42) | position of its first entry (26) | runs
    run      kind (1) | size of the rest (4) | rest
    rest     of messages: entries (4), places (34), head size (2), extra size (4), shape (1), head, extra, services,
             lengths, data; of anything else: JSON
    view     configuration (16), position (26)
    position origin (16), number (8), slot (2)
    places   origin (16), number (8), base (2), each (4), first (4)

Messages of a run have one sender and the same groups, as in a `Batch`; they stand in columns, so that neither writing
nor reading does anything for each of them. One service, or one length, stands once. Where messages have headers, which
the shape says, these stand ahead of their data (`model/headers.py`). A frame has one view: it ends where a view comes.
The checksum covers the magic and everything behind the checksum; whatever a crash left behind the last whole frame is
cut off.

The magic says the format. Frames of format 1 are read, and no longer written: a view there has no origin, which is its
configuration then, places have no base, which is 0 then, and the checksum does not cover the magic.
"""

from __future__ import annotations

import json
import zlib
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from struct import Struct
from struct import error as StructError
from typing import Final, NamedTuple

from ordercast.archive.entries import Item, News, SinkCommit, commit_bytes, commit_from, count_of, news_bytes, news_from
from ordercast.model.errors import UsageError, WireError
from ordercast.model.events import Batch, View, ViewId
from ordercast.model.ids import NO_POSITION, ConfigurationId, Places, Position, ProcessId

MAGIC: Final = b"OCA2"
OPENING: Final = Struct("!4sII")  # magic, size of what follows, its checksum
HEADER: Final = Struct("!QIq QQQQQH QQQH")  # first number, entries, time; view; position
RUN: Final = Struct("!BI")
COLUMNS: Final = Struct("!I QQQHII HIB")  # entries; places; sizes of head and extra, shape
assert (OPENING.size, HEADER.size, RUN.size, COLUMNS.size) == (12, 88, 5, 45)
FORMER_MAGIC: Final = b"OCA1"
FORMER_HEADER: Final = Struct("!QIq QQQH QQQH")
FORMER_COLUMNS: Final = Struct("!I QQQII HIB")
assert (FORMER_HEADER.size, FORMER_COLUMNS.size) == (72, 43)
_SALT: Final = zlib.crc32(MAGIC)  # a frame whose magic was damaged is no whole frame of the other format
FIXED_SIZE: Final = OPENING.size + HEADER.size
FRAME_SIZE_MAX: Final = 1 << 30

MESSAGES, NEWS, COMMIT = 1, 2, 3
ONE_SERVICE, ONE_LENGTH, HEADED = 1, 2, 4  # bits of the shape

assert array("I").itemsize == 4
_IS_LITTLE = array("I", [1]).tobytes()[0] == 1


class Header(NamedTuple):
    """What is known of a frame without reading it."""

    size: int  # of the whole frame
    checksum: int
    first: int
    entries: int
    time_ns: int
    view: ViewId
    position: Position
    is_former: bool = False  # the frame has format 1

    @property
    def last(self) -> int:
        return self.first + self.entries - 1


@dataclass(slots=True)
class Run:
    """Messages in a row, in columns, or one piece of news."""

    first: int  # number of the first entry
    item: Columns | News
    commit: SinkCommit | None = None

    @property
    def count(self) -> int:
        return self.item.count if isinstance(self.item, Columns) else 1


@dataclass(slots=True)
class Columns:
    """As in `Batch`, the messages still side by side."""

    groups: tuple[str, ...]
    sender: str
    count: int
    places: Places
    services: bytes  # one, or one each
    lengths: int | array[int]  # all of this length, or one each
    data: memoryview
    is_headed: bool = False

    def batch(self) -> Batch:
        whole = bytes(self.data)
        ends = self.ends()
        starts = [0, *ends[:-1]]
        payloads = [whole[start:end] for start, end in zip(starts, ends, strict=True)]
        services = self.services * self.count if len(self.services) == 1 else self.services
        return Batch(self.groups, self.sender, payloads, services, self.places, self.is_headed)

    def ends(self) -> Sequence[int]:
        if isinstance(self.lengths, int):
            return (
                range(self.lengths, self.lengths * self.count + 1, self.lengths) if self.lengths else [0] * self.count
            )
        return list(accumulate(self.lengths))


# Writing


def run_parts(item: Item, commit: SinkCommit | None = None) -> list[bytes]:
    """The bytes of a run, in pieces."""
    if not isinstance(item, Batch):
        body = news_bytes(item)
        return [RUN.pack(NEWS, len(body)), body]
    head = json.dumps([item.sender, *item.groups], separators=(",", ":")).encode()
    extra = b"" if commit is None else commit_bytes(commit)
    count, shape = len(item.raw), HEADED * item.is_headed
    services = bytes(item.services)
    if services.count(services[:1]) == count:
        services, shape = services[:1], shape | ONE_SERVICE
    lengths = array("I", map(len, item.raw))
    total = sum(lengths)
    if lengths.count(lengths[0]) == count:
        lengths, shape = lengths[:1], shape | ONE_LENGTH
    columns = COLUMNS.pack(count, *item.places.origin, *item.places[1:], len(head), len(extra), shape)
    columns += head + extra + services + lengths_bytes(lengths)
    return [RUN.pack(MESSAGES if commit is None else COMMIT, len(columns) + total), columns, *item.raw]


def sealed(first: int, count: int, time_ns: int, view: ViewId, position: Position, runs: list[bytes]) -> bytes:
    body = b"".join(runs)
    if len(body) > FRAME_SIZE_MAX:
        raise UsageError(f"a frame of {len(body):,} bytes is too large")
    header = HEADER.pack(first, count, time_ns, *view.configuration, *_flat(view.position), *_flat(position))
    checksum = zlib.crc32(body, zlib.crc32(header, _SALT))
    return OPENING.pack(MAGIC, len(header) + len(body), checksum) + header + body


def _flat(position: Position) -> tuple[int, int, int, int]:
    (seq, representative), number, slot = position
    return seq, representative, number, slot


def frame_of(first: int, items: Sequence[tuple[Item, SinkCommit | None]], time_ns: int, view: ViewId) -> bytes:
    """All of one view; at least one."""
    runs = [part for item, commit in items for part in run_parts(item, commit)]
    count = sum(count_of(item) for item, _ in items)
    return sealed(first, count, time_ns, view, position_at(items[0][0]), runs)


def position_at(item: Item) -> Position:
    """Return the position of its first entry."""
    match item:
        case Batch():
            return item.places.at(0)
        case View():
            return item.id.position
        case _:
            return NO_POSITION


def lengths_bytes(lengths: array[int]) -> bytes:
    """In network order; the array is not to be used any more."""
    if _IS_LITTLE:
        lengths.byteswap()
    return lengths.tobytes()


def lengths_from(data: bytes | memoryview) -> array[int]:
    lengths = array("I")
    lengths.frombytes(data)
    if _IS_LITTLE:
        lengths.byteswap()
    return lengths


# Reading


def header_from(data: bytes | memoryview, at: int = 0) -> Header:
    """WireError when no frame begins here."""
    try:
        magic, size, checksum = OPENING.unpack_from(data, at)
        layout = FORMER_HEADER if magic == FORMER_MAGIC else HEADER
        first, count, time_ns, seq, representative, *rest = layout.unpack_from(data, at + OPENING.size)
    except StructError:
        raise WireError("a frame's header is cut off") from None
    if magic not in (MAGIC, FORMER_MAGIC) or not layout.size <= size <= FRAME_SIZE_MAX + layout.size:
        raise WireError("no frame begins here")
    if layout is FORMER_HEADER:
        rest = [seq, representative, *rest]
    view = ViewId(ConfigurationId(seq, ProcessId(representative)), _position(*rest[:4]))
    position = _position(*rest[4:])
    return Header(OPENING.size + size, checksum, first, count, time_ns, view, position, layout is FORMER_HEADER)


def _position(seq: int, representative: int, number: int, slot: int) -> Position:
    return Position(ConfigurationId(seq, ProcessId(representative)), number, slot)


def is_whole(data: bytes | memoryview, at: int, header: Header) -> bool:
    """Whether all of the frame is there, and its checksum is right."""
    body = memoryview(data)[at + OPENING.size : at + header.size]
    checksum = zlib.crc32(body, 0 if header.is_former else _SALT)
    return len(body) == header.size - OPENING.size and checksum == header.checksum


def whole_frames(data: bytes | memoryview, at: int = 0) -> Iterator[tuple[int, Header]]:
    """Where each frame is, up to the first that is not whole or does not go on where the last one ended."""
    expected: int | None = None
    while True:
        try:
            header = header_from(data, at)
        except WireError:
            return
        if not is_whole(data, at, header) or (expected is not None and header.first != expected):
            return
        yield at, header
        at += header.size
        expected = header.first + header.entries


def runs_of(frame: bytes | memoryview, header: Header) -> Iterator[Run]:
    """Cut a whole frame into its runs. WireError when it was written by somebody else."""
    view = memoryview(frame)
    at = OPENING.size + (FORMER_HEADER if header.is_former else HEADER).size
    number = header.first
    try:
        while at < header.size:
            kind, size = RUN.unpack_from(view, at)
            at += RUN.size
            rest = view[at : at + size]
            if len(rest) != size:
                raise WireError("a run is longer than its frame")
            run = _news_run(number, rest) if kind == NEWS else _columns_run(number, kind, rest, header.is_former)
            yield run
            number += run.count
            at += size
    except (StructError, ValueError, KeyError, TypeError, UsageError) as error:
        raise WireError(f"a run cannot be read: {error}") from None
    if number != header.first + header.entries:
        raise WireError(f"a frame says {header.entries} entries and has {number - header.first}")


def _news_run(number: int, rest: memoryview) -> Run:
    return Run(number, news_from(bytes(rest)))


def _columns_run(number: int, kind: int, rest: memoryview, is_former: bool) -> Run:
    layout = FORMER_COLUMNS if is_former else COLUMNS
    count, seq, representative, *where, each, first, head_size, extra_size, shape = layout.unpack_from(rest)
    if kind not in (MESSAGES, COMMIT) or not count or not each:
        raise WireError("no such run")
    base = 0 if is_former else where[1]
    places = Places(ConfigurationId(seq, ProcessId(representative)), where[0], base, each, first)
    at = layout.size + head_size
    sender, *groups = json.loads(bytes(rest[layout.size : at]))
    commit = commit_from(bytes(rest[at : at + extra_size])) if kind == COMMIT else None
    at += extra_size
    services_size = 1 if shape & ONE_SERVICE else count
    services = bytes(rest[at : at + services_size])
    at += services_size
    lengths_size = 4 if shape & ONE_LENGTH else 4 * count
    lengths = lengths_from(rest[at : at + lengths_size])
    at += lengths_size
    total = lengths[0] * count if shape & ONE_LENGTH else sum(lengths)
    if len(rest) - at != total:
        raise WireError("the lengths of messages are not those of their bytes")
    one_or_each = lengths[0] if shape & ONE_LENGTH else lengths
    is_headed = bool(shape & HEADED)
    columns = Columns(tuple(groups), sender, count, places, services, one_or_each, rest[at:], is_headed)
    return Run(number, columns, commit)


def cut(frame: bytes | memoryview, header: Header, first: int, last: int) -> bytes:
    """The same frame with nothing but these numbers, of which it has at least one."""
    items: list[tuple[Item, SinkCommit | None]] = []
    for run in runs_of(frame, header):
        low, high = max(first, run.first), min(last, run.first + run.count - 1)
        if low > high:
            continue
        if not isinstance(run.item, Columns):
            items.append((run.item, None))
            continue
        items.append((run.item.batch().part(low - run.first, high + 1 - run.first), run.commit))
    return frame_of(max(first, header.first), items, header.time_ns, header.view)
