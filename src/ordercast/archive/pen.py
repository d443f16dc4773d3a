"""Pen: makes frames of what is delivered to one group. Pure: `now` is given with every flush.

Messages of sinks are looked at as they pass: a marker is written together with what it does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ordercast.archive.entries import Item, SinkCommit, count_of
from ordercast.archive.frames import position_at, run_parts, sealed
from ordercast.archive.layout import EMPTY, Start
from ordercast.archive.places import Place
from ordercast.archive.rows import Sinks, united
from ordercast.groups.names import sink_of
from ordercast.model.events import Batch, View, ViewId
from ordercast.model.ids import NO_POSITION, Position

FRAME_SIZE = 256 << 10  # a frame is sealed when it has so much
SEGMENT_SIZE = 64 << 20


@dataclass(slots=True)
class Draft:
    """A frame that is not sealed yet: sealing it costs a pass over its bytes, which another thread can do."""

    branch: str
    first: int
    count: int
    view: ViewId
    position: Position
    parts: list[bytes]
    start: Start | None  # a new segment begins with it

    def seal(self, now_ns: int) -> bytes:
        return sealed(self.first, self.count, now_ns, self.view, self.position, self.parts)


@dataclass(slots=True)
class Pen:
    segment_size: int = SEGMENT_SIZE
    place: Place | None = None  # of the last entry that was written
    view: ViewId = EMPTY.view
    sinks: Sinks = field(default_factory=Sinks)
    drafts: list[Draft] = field(default_factory=list)  # whole ones; the driver takes them
    commits: list[tuple[str, SinkCommit, Place]] = field(default_factory=list)  # who sent the marker; likewise
    _parts: list[bytes] = field(default_factory=list)
    _size: int = 0
    _first: int = 0
    _position: Position = NO_POSITION
    _written: int = -1  # bytes of the segment; -1: it has to begin
    _start: Start | None = None

    def go_on(self, place: Place, state: Start) -> None:
        """Behind what is on disk: in a new segment, which knows the state."""
        self.flush()
        self.place, self.view, self.sinks, self._written = place, state.view, Sinks(state.sinks), -1

    def begin(self, place: Place, sinks: tuple[Mapping[str, Any], ...]) -> None:
        """A new branch, behind this place. `sinks`: of all parents, if there are several."""
        self.flush()
        if sinks:
            self.sinks = Sinks(united(sinks))
        self.place, self._written = place, -1

    def write(self, item: Item) -> None:
        if isinstance(item, View):
            self.flush()
            self.view = item.id
        sink = sink_of(item.groups) if isinstance(item, Batch) else None
        if sink is not None and isinstance(item, Batch):
            for number in range(len(item.data)):
                self._write_of_sink(sink, item.part(number, number + 1))
        else:
            self._add(item, None)

    def _write_of_sink(self, sink: str, message: Batch) -> None:
        assert self.place is not None
        place = Place(self.place.branch, self.place.number + 1)
        commit = self.sinks.take(sink, place, message.data[0])
        self._add(message, commit)
        if commit is not None:
            self.commits.append((message.sender, commit, place))

    def _add(self, item: Item, commit: SinkCommit | None) -> None:
        assert self.place is not None
        if not self._parts:
            self._first, self._position = self.place.number + 1, position_at(item)
            if self._written < 0 or self._written >= self.segment_size:
                self._begin_segment()
        parts = run_parts(item, commit)
        self._parts += parts
        self._size += sum(map(len, parts[:2])) + (sum(map(len, parts[2:])) if len(parts) > 2 else 0)
        self.place = Place(self.place.branch, self.place.number + count_of(item))
        if self._size >= FRAME_SIZE:
            self.flush()

    def _begin_segment(self) -> None:
        self._written = 0
        self._start = Start(self._first, self.view, self.sinks.document())

    def flush(self) -> None:
        """What was written is a draft now."""
        if not self._parts:
            return
        assert self.place is not None
        count = self.place.number - self._first + 1
        draft = Draft(self.place.branch, self._first, count, self.view, self._position, self._parts, self._start)
        self.drafts.append(draft)
        self._written += self._size
        self._parts, self._size, self._start = [], 0, None
