"""Archive: how a program reads an archive, as it is or as it grows.

    archive = Archive("archive")
    for entry in archive.read("orders"): ...
    async for entry in archive.follow("orders", start="latest"): ...

Rows that a sink sent stand where they were committed, and what is not committed is not there; `is_raw` shows the
messages as they were delivered instead.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from datetime import datetime
from pathlib import Path

from ordercast.archive.places import (
    Place,
    ShortPosition,
    place_from,
    position_of_text,
    short_position_of_text,
)
from ordercast.archive.reading import Entry, GroupReader, groups_in
from ordercast.archive.rows import part_from
from ordercast.groups.names import SINK, sink_of
from ordercast.model.errors import UsageError
from ordercast.model.events import Message
from ordercast.model.ids import Position

EARLIEST, LATEST = "earliest", "latest"
POLL_S = 0.02

Start = Place | Position | ShortPosition | datetime | int | str


class Archive:
    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)

    def groups(self) -> list[str]:
        return groups_in(self.folder)

    def group(self, group: str) -> GroupReader:
        return GroupReader(self.folder, group).check()

    def tip(self, group: str) -> Place | None:
        """The last place."""
        return self.group(group).tip()

    def place(self, group: str, start: Start) -> Place | None:
        """The place behind which reading begins. `start`: "earliest"; "latest"; a place, as such or as text: what comes
        behind it; a number or a position: from that on; a time: what was written then or later. Where nothing is so
        late yet, it is the last place. None: the archive is empty."""
        wanted = start_from_text(start) if isinstance(start, str) else start
        found = self.found(group, wanted)
        return self.tip(group) if found is None and wanted != EARLIEST else found

    def found(self, group: str, start: Start) -> Place | None:
        """Return the same. None: nothing is so late yet, so what comes next may still be before it."""
        reader = self.group(group)
        match start:
            case "earliest":
                stretches = reader.stretches()
                return Place(stretches[0].branch, stretches[0].first - 1) if stretches else None
            case "latest":
                return reader.tip()
            case Place():
                return start
            case Position() | ShortPosition():
                return reader.at_position(start)
            case datetime():
                return reader.at_time(int(start.timestamp() * 1e9))
            case int():
                return _at_number(reader, start)
            case str():
                return self.found(group, start_from_text(start))

    def read(
        self, group: str, start: Start = EARLIEST, end: Place | None = None, *, is_raw: bool = False
    ) -> Iterator[Entry]:
        """What is there now, up to `end` or up to the tip."""
        reader = self.group(group)
        last = end or reader.tip()
        first = self.place(group, start)
        if last is None or first is None:
            return
        for stretch in reader.between(first, last):
            for entry in reader.entries(stretch):
                yield from (entry,) if is_raw else rows_of(reader, entry)

    def tail(self, group: str, start: Start = LATEST, *, is_raw: bool = False) -> Iterator[Entry]:
        """What is there and what comes, for ever; waits for it."""
        for entry in self._grow(group, start, is_raw):
            if entry is None:
                time.sleep(POLL_S)
            else:
                yield entry

    async def follow(self, group: str, start: Start = LATEST, *, is_raw: bool = False) -> AsyncIterator[Entry]:
        """The same for an event loop, which does not wait."""
        for entry in self._grow(group, start, is_raw):
            if entry is None:
                await asyncio.sleep(POLL_S)
            else:
                yield entry

    def _grow(self, group: str, start: Start, is_raw: bool) -> Iterator[Entry | None]:
        """None: nothing more for now, or nothing so late."""
        begun = self.tip(group)
        wanted = begun or EARLIEST if start == LATEST else start
        place, seen = self.found(group, wanted), begun
        while True:
            tip = self.tip(group)
            if place is None and tip != seen:
                place, seen = self.found(group, wanted), tip
            if tip is None or place is None or tip == place:
                yield None
                continue
            yield from self.read(group, place, tip, is_raw=is_raw)
            place = tip


def start_from_text(text: str) -> Start:
    """UsageError when it says nothing of the kind."""
    if text in (EARLIEST, LATEST):
        return text
    if text.isdigit():
        return int(text)
    for read in (place_from, position_of_text, short_position_of_text, _time_from):
        try:
            return read(text)
        except UsageError:
            pass
    raise UsageError(
        f"{text!r} is no place to start at: write earliest, latest, a number, BRANCH:NUMBER, a position "
        "(12.n1:4.0, as `ordercast send --confirm` shows it) or a time (2026-11-15T12:00:00+00:00)"
    )


def _time_from(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text).astimezone()
    except ValueError:
        raise UsageError(f"{text!r} is no time") from None


def _at_number(reader: GroupReader, number: int) -> Place | None:
    """Before this number, or the next that is kept, in the archiver's own history."""
    for stretch in reader.stretches():
        if number <= stretch.last:
            return Place(stretch.branch, max(number, stretch.first) - 1)
    return None


def rows_of(reader: GroupReader, entry: Entry) -> Iterator[Entry]:
    """What stands there for those who want rows: messages of sinks are there where they are committed, and are the
    sink's, whichever client of its query brought them."""
    message = entry.entry
    if not isinstance(message, Message) or (sink := sink_of(message.groups)) is None:
        yield entry
        return
    if entry.commit is None:
        return
    groups = tuple(group for group in message.groups if not group.startswith(SINK))
    for place in entry.commit.parts:
        part = reader.message(place)
        for row in part_from(part.data).rows:
            yield entry._replace(entry=Message(groups, sink, row, message.position, message.service))
