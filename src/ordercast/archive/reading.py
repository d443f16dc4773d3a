"""GroupReader: reads the archive of one group from its files, also while an archiver writes them.

Nothing is read that is not safe on disk: the tip says how far that is. A reader needs no archiver, and keeps no lock;
retention may take a segment from under it, and then it says so.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from ordercast.archive.branches import Branch, Stretch, between, history
from ordercast.archive.entries import News, SinkCommit
from ordercast.archive.files import rebuilt_index
from ordercast.archive.frames import FIXED_SIZE, Columns, Header, Run, cut, header_from, is_whole, runs_of
from ordercast.archive.holes import kept_from
from ordercast.archive.layout import (
    INDEX,
    TIP,
    Mark,
    group_folder,
    group_of,
    marks_from,
    opening_size,
    own_of,
    segments_of,
    tip_from,
    tree_of,
)
from ordercast.archive.places import Place, ShortPosition, short_position, view_text
from ordercast.model.errors import UsageError, WireError
from ordercast.model.events import Message, View
from ordercast.model.ids import NO_POSITION, Position

CHUNK_SIZE = 1 << 20
_Known = Header | Mark  # both have a time and a position


class Entry(NamedTuple):
    """One entry, in its place. `time_ns` is when the archiver wrote it, by its own clock."""

    place: Place
    entry: Message | News
    time_ns: int
    view: str
    commit: SinkCommit | None = None


class ArchiveFrame(NamedTuple):
    branch: str
    header: Header
    data: memoryview

    def runs(self) -> Iterator[Run]:
        return runs_of(self.data, self.header)


class Lost(UsageError):
    """What is wanted is not in the archive any more, or never was."""


def groups_in(folder: Path) -> list[str]:
    """The groups that have archives here."""
    if not folder.is_dir():
        raise UsageError(f"there is no archive in {folder}: `ordercast archive GROUP --dir {folder}` makes one")
    return sorted(group_of(path) for path in folder.iterdir() if (path / TIP).exists())


@dataclass(slots=True)
class GroupReader:
    folder: Path  # of the whole archive
    group: str

    @property
    def path(self) -> Path:
        return group_folder(self.folder, self.group)

    def check(self) -> GroupReader:
        if not (self.path / TIP).exists():
            raise UsageError(f"the group {self.group} has no archive in {self.folder}: {_hint(self.folder)}")
        return self

    # Where things are

    def tip(self) -> Place | None:
        """The last place of the archiver's own history; None when it is empty."""
        for _ in range(100):  # while it is being written
            with (self.path / TIP).open("rb") as file:
                data = file.read()
            if not data:
                return None
            if (place := tip_from(data)) is not None:
                return place
        raise UsageError(f"{self.path / TIP} is damaged: start the archiver, which writes it anew")

    def tree(self) -> dict[str, Branch]:
        return tree_of(self.path)

    def stretches(self, end: Place | None = None) -> list[Stretch]:
        """The whole history up to a place, or up to the tip, as far as it is kept."""
        last = end or self.tip()
        if last is None:
            return []
        way = history(self._known(last), last, own_of(self.path)[::-1])
        kept = []
        for stretch in way:
            first = kept_from(segments_of(self.path / stretch.branch), stretch.last)
            if first is not None:
                kept.append(Stretch(stretch.branch, max(stretch.first, first), stretch.last))
        return kept

    def beginning(self, end: Place) -> Place:
        """Return the place before the very first entry on the way to this one, kept or not."""
        first = history(self._known(end), end, own_of(self.path)[::-1])[0]
        return Place(first.branch, first.first - 1)

    def span(self, branch: str) -> tuple[int, int] | None:
        """First and last number that is kept of a branch; of the one that is written, as far as it is on disk."""
        segments = segments_of(self.path / branch)
        if not segments:
            return None
        tip, last = self.tip(), segments[-1][0] - 1
        if tip is not None and tip.branch == branch:
            return segments[0][0], tip.number
        marks = marks_of(segments[-1][1])
        with segments[-1][1].open("rb") as file:
            for header, _ in _scan(file.fileno(), marks[-1].offset if marks else opening_size(segments[-1][1])):
                last = header.last
        return segments[0][0], last

    def between(self, start: Place, end: Place) -> list[Stretch]:
        """What comes behind `start`, up to `end`. Lost when there is no way, or not all of it is kept."""
        way = between(self._known(end), start, end, own_of(self.path)[::-1])
        if way is None and start.branch == end.branch:
            raise Lost(
                f"{start} is behind {end}, up to which the archive of {self.group} was to be read: begin earlier"
            )
        if way is None:
            raise Lost(f"{start} is not on the way to {end} in the archive of {self.group}: it is another history")
        for stretch in way:
            first = kept_from(segments_of(self.path / stretch.branch), stretch.last)
            if first is None or first > stretch.first:
                kept = f"{stretch.branch}:{first}" if first is not None else "what comes later"
                raise Lost(
                    f"{stretch.branch}:{stretch.first} of {self.group} is not kept any more, only from {kept} on: "
                    "start there, or keep more (--keep-size, --keep-time)"
                )
        return way

    def _known(self, place: Place) -> dict[str, Branch]:
        tree = self.tree()
        if place.branch not in tree:
            raise Lost(
                f"there is no branch {place.branch} in the archive of {self.group}: see `ordercast archive list`"
            )
        return tree

    # Reading

    def frames(self, stretch: Stretch) -> Iterator[ArchiveFrame]:
        """Cut to these numbers, checked."""
        number = stretch.first
        while number <= stretch.last:
            begun = number
            for frame in self._frames_from(stretch.branch, number, stretch.last):
                number = frame.header.last + 1
                yield frame
                if number > stretch.last:
                    return
            if number == begun:
                rest = self.kept_behind(stretch._replace(first=number))
                where = f"only from {rest.branch}:{rest.first} on: start there" if rest else "nor what comes behind it"
                raise Lost(f"{stretch.branch}:{number} of {self.group} is not in the archive, {where}")

    def kept_behind(self, stretch: Stretch) -> Stretch | None:
        """Return what is kept of a stretch whose first number is not. None when nothing is."""
        firsts = [first for first, _ in segments_of(self.path / stretch.branch) if stretch.first < first]
        return stretch._replace(first=firsts[0]) if firsts and firsts[0] <= stretch.last else None

    def _frames_from(self, branch: str, first: int, last: int) -> Iterator[ArchiveFrame]:
        """Yield the frames of one segment."""
        segments = segments_of(self.path / branch)
        place = bisect_right([start for start, _ in segments], first) - 1
        if place < 0:
            raise Lost(f"{branch}:{first} of {self.group} is not kept any more")
        path = segments[place][1]
        try:
            with path.open("rb") as file:
                at = self._offset(path, first)
                for header, data in _scan(file.fileno(), at):
                    if header.last < first:
                        continue
                    if header.first > last:
                        return
                    frame = ArchiveFrame(branch, header, data)
                    yield _cut(frame, first, last) if header.first < first or header.last > last else frame
        except FileNotFoundError:
            raise Lost(f"{branch}:{first} of {self.group} is not kept any more") from None

    def _offset(self, path: Path, number: int) -> int:
        marks = marks_of(path)
        found = bisect_right([mark.number for mark in marks], number) - 1
        return marks[found].offset if found >= 0 else opening_size(path)

    def entries(self, stretch: Stretch) -> Iterator[Entry]:
        for frame in self.frames(stretch):
            yield from entries_of(frame)

    def message(self, place: Place) -> Message:
        for entry in self.entries(Stretch(place.branch, place.number, place.number)):
            if isinstance(entry.entry, Message):
                return entry.entry
        raise Lost(f"{place} of {self.group} is no message")

    # Finding

    def at_position(self, position: Position | ShortPosition) -> Place | None:
        """The place before the first entry at this position or behind it. None when there is none yet."""

        def reaches(at: Position) -> bool:
            return (short_position(at) if isinstance(position, ShortPosition) else at) >= position

        return self._find(lambda known: known.position != NO_POSITION and not reaches(known.position), reaches)

    def at_time(self, time_ns: int) -> Place | None:
        """The place before what was written at this time or later."""
        return self._find(lambda known: known.time_ns < time_ns, None)

    def _find(self, is_before: Callable[[_Known], bool], reaches: Callable[[Position], bool] | None) -> Place | None:
        """`reaches`: whether an entry at a position is the one. None: the first of a frame is, of those not before."""
        for stretch in self.stretches():
            low = self._last_before(stretch, is_before)
            for frame in self.frames(Stretch(stretch.branch, low, stretch.last)):
                for number, at in _positions(frame):
                    if not is_before(frame.header) if reaches is None else at is not None and reaches(at):
                        return Place(stretch.branch, number - 1)
        return None

    def _last_before(self, stretch: Stretch, is_before: Callable[[_Known], bool]) -> int:
        """Number of a frame from which on the place is to be looked for, by the marks alone."""
        found = stretch.first
        for first, path in segments_of(self.path / stretch.branch):
            if first > stretch.last:
                break
            for mark in marks_of(path):
                if stretch.first <= mark.number <= stretch.last and is_before(mark):
                    found = mark.number
        return found


def _positions(frame: ArchiveFrame) -> Iterator[tuple[int, Position | None]]:
    for run in frame.runs():
        if isinstance(run.item, Columns):
            for number, message in enumerate(run.item.batch(), run.first):
                yield number, message.position
        else:
            yield run.first, run.item.id.position if isinstance(run.item, View) else None


def marks_of(path: Path) -> list[Mark]:
    """Return the marks of the index if it fits its segment, else marks made anew."""
    try:
        marks = marks_from(path.with_suffix(INDEX).read_bytes())
    except FileNotFoundError:
        marks = []
    if marks:
        with path.open("rb") as file:
            try:
                header = header_from(os.pread(file.fileno(), 256, marks[-1].offset))
                if header.first == marks[-1].number:
                    return marks
            except WireError:
                pass
    return rebuilt_index(path)


def entries_of(frame: ArchiveFrame) -> Iterator[Entry]:
    view, time_ns = view_text(frame.header.view), frame.header.time_ns
    for run in frame.runs():
        entries = run.item.batch() if isinstance(run.item, Columns) else (run.item,)
        for number, entry in enumerate(entries, run.first):
            yield Entry(Place(frame.branch, number), entry, time_ns, view, run.commit)


def _scan(file: int, at: int) -> Iterator[tuple[Header, memoryview]]:
    """Whole frames from here on; several are read at once."""
    data = memoryview(b"")
    while True:
        try:
            header = header_from(data)
            missing = header.size - len(data)
        except WireError:
            missing = 1
        if missing > 0:
            more = os.pread(file, max(CHUNK_SIZE, missing), at + len(data))
            if not more:
                return
            data = memoryview(bytes(data) + more)
            if len(data) < FIXED_SIZE:
                continue
            header_from(data)  # WireError: this is no frame, and none will come
            continue
        if not is_whole(data, 0, header):
            raise WireError(f"the checksum of the frame that begins with number {header.first} is wrong")
        yield header, data[: header.size]
        data, at = data[header.size :], at + header.size


def _cut(frame: ArchiveFrame, first: int, last: int) -> ArchiveFrame:
    data = memoryview(cut(frame.data, frame.header, first, last))
    return ArchiveFrame(frame.branch, header_from(data), data)


def _hint(folder: Path) -> str:
    there = groups_in(folder)
    return f"there are {', '.join(there)}" if there else "no group has one there"
