"""GroupFiles: the files of one group, written by one thread.

Every branch is appended to and never written over. A new segment begins where the frames say so; the one before is
synced first. `sync` makes everything safe that was appended, then moves the tip, so that nobody reads what a power
failure could take back. When the disk refuses something, `back` leads to what was safe: from there all is tried again.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from ordercast.archive.branches import Branch, branch_bytes
from ordercast.archive.frames import Columns, Header, cut, header_from, runs_of, whole_frames
from ordercast.archive.holes import headers_from, holes_in
from ordercast.archive.layout import (
    DESCRIPTION,
    EMPTY,
    INDEX,
    OWN,
    TIP,
    Mark,
    Start,
    mark_bytes,
    opening_size,
    own_of,
    segment_path,
    segments_of,
    start_bytes,
    start_from,
    tip_bytes,
    tip_from,
    tree_of,
)
from ordercast.archive.places import Place
from ordercast.archive.rows import Sinks
from ordercast.disk.files import sync_folder, write_all, write_whole
from ordercast.groups.names import sink_of
from ordercast.model.errors import UsageError, WireError
from ordercast.model.events import View
from ordercast.trace.private_files import make_private_folder, open_private

INDEX_EVERY = 64 << 10  # bytes of frames between two marks


@dataclass(slots=True)
class _Open:
    """The last segment of a branch."""

    file: int
    index: int
    path: Path
    size: int
    marked: int  # where the last marked frame begins; -1: none


@dataclass(slots=True)
class BranchFiles:
    path: Path
    last: int  # number of the last entry that was appended
    durable: int
    holes: list[int] = field(default_factory=list)  # segments before which numbers are missing, by their first number
    open: _Open | None = None
    is_touched: bool = False
    safe: tuple[Path, int] | None = None  # the last segment and its size, as it was when everything was safe


class GroupFiles:
    def __init__(self, folder: Path) -> None:
        """Whatever a crash left half written is cut off. UsageError when something is damaged that had been safe."""
        self.folder = folder
        make_private_folder(folder)
        self.tree: dict[str, Branch] = tree_of(folder)
        self._tip_file = open_private(folder / TIP, os.O_RDWR | os.O_CREAT)
        published = tip_from(os.pread(self._tip_file, 1 << 10, 0))
        safe = {} if published is None else {published.branch: published.number}
        self._branches = {
            name: _recovered(folder / name, branch.base, safe.get(name, 0)) for name, branch in self.tree.items()
        }
        self.tip = self._recovered_tip(published)
        self._tip_wanted = self.tip
        if self.tip is not None:
            os.pwrite(self._tip_file, tip_bytes(self.tip), 0)

    def _recovered_tip(self, published: Place | None) -> Place | None:
        """Behind what was published there may be more, which is safe by now."""
        candidates = [name for name in own_of(self.folder) if name in self._branches]
        name = candidates[-1] if candidates else None if published is None else published.branch
        if name is None or name not in self._branches:
            return None
        return Place(name, self._branches[name].last)

    # Questions

    def last(self, branch: str) -> int | None:
        found = self._branches.get(branch)
        return None if found is None else found.last

    def durable(self) -> dict[str, tuple[int, int]]:
        """First and last number of each branch that others may read, without a hole in between."""
        spans = {}
        for name, branch in list(self._branches.items()):
            segments = segments_of(branch.path)
            if segments and branch.durable >= segments[0][0]:
                behind_holes = [number for number in branch.holes if number <= branch.durable]
                spans[name] = max(segments[0][0], *behind_holes, 0), branch.durable
        return spans

    def state(self, place: Place) -> Start:
        """What has to be known to go on behind this place, the last of its branch. When the branch is empty: what is
        known at its first parent."""
        branch = self._branches.get(place.branch)
        segments = segments_of(branch.path) if branch is not None else []
        if segments:
            return state_at_end(segments[-1][1])
        parents = self.tree[place.branch].parents if place.branch in self.tree else ()
        known = next((parent for parent in parents if parent.branch in self.tree), None)
        return EMPTY if known is None else self.state(known)

    # Writing

    def begin(self, branch: Branch, *, is_own: bool) -> None:
        path = self.folder / branch.name
        if branch.name not in self.tree:
            make_private_folder(path)
            write_whole(path / DESCRIPTION, branch_bytes(branch))
            sync_folder(self.folder)
            self.tree[branch.name] = branch
            self._branches[branch.name] = BranchFiles(path, branch.base, branch.base)
        own = own_of(self.folder)
        if is_own and branch.name not in own[-1:]:
            write_whole(self.folder / OWN, "".join(f"{name}\n" for name in (*own, branch.name)).encode())
            sync_folder(self.folder)

    def append(self, branch: str, frames: Sequence[bytes], start: Start | None, *, is_own: bool) -> None:
        """Frames in a row; with `start` a new segment begins with the first of them, and what comes before it may be
        missing. What is there already is the same: it is passed over."""
        files = self._branches[branch]
        headers = [header_from(frame) for frame in frames]
        wanted = [_behind(files.last, *one) for one in zip(headers, frames, strict=True) if one[0].last > files.last]
        if wanted:
            if wanted[0][0].first != files.last + 1 and start is None:
                raise ValueError(f"{branch} ends at {files.last}, and {wanted[0][0].first} comes")
            if start is not None or files.open is None:
                self._begin_segment(files, start, wanted[0][0])
            _write(files, wanted)
        if is_own:
            self._tip_wanted = Place(branch, headers[-1].last)

    def _begin_segment(self, files: BranchFiles, start: Start | None, header: Header) -> None:
        last = segments_of(files.path)
        if start is None and last:
            files.open = _reopened(last[-1][1])
            return
        _close(files.open)
        files.open = None
        if last and header.first != files.last + 1:
            files.holes.append(header.first)
        path = segment_path(files.path, header.first)
        known = start or EMPTY
        opening = start_bytes(Start(header.first, known.view, known.sinks))
        files.open = _begun(path, opening)
        sync_folder(files.path)

    def move_tip(self, place: Place) -> None:
        """What was fetched is one's own history now."""
        self._tip_wanted = place

    def sync(self) -> Place | None:
        """Everything that was appended is safe, and may be read. The tip."""
        for files in self._branches.values():
            if files.is_touched and files.open is not None:
                os.fdatasync(files.open.file)
                files.durable, files.is_touched = files.last, False
                files.safe = files.open.path, files.open.size
        if self._tip_wanted is not None and self._tip_wanted != self.tip:
            write_all(self._tip_file, [tip_bytes(self._tip_wanted)], 0)
            self.tip = self._tip_wanted
        return self.tip

    def back(self) -> None:
        """After an OSError: everything is as it was when it was last safe. What was appended since has to come again,
        also that which seemed to be written: after a failure nobody knows what a disk has."""
        for files in self._branches.values():
            _drop(files.open)
            files.open = None
            for first, path in segments_of(files.path):
                if first > files.durable:
                    _remove(path)
            if files.safe is not None and files.safe[0].exists():
                os.truncate(*files.safe)
            files.holes = [number for number in files.holes if number <= files.durable]
            files.last, files.is_touched = files.durable, False
        self._tip_wanted = self.tip

    def retain(self, size_max: int | None, older_than: float | None) -> list[Path]:
        """Remove segments that were last written before `older_than`, and the oldest until the rest has at most
        `size_max` bytes; never the last of a branch, which says how far it reaches. Returns what was removed."""
        found = []
        for files in self._branches.values():
            found += [(path.stat().st_mtime, path) for _, path in segments_of(files.path)[:-1]]
        found.sort()
        total = sum(path.stat().st_size for path in self.folder.glob("*/*.segment"))
        removed = []
        for changed, path in found:
            is_old = older_than is not None and changed < older_than
            if not is_old and (size_max is None or total <= size_max):
                break
            total -= path.stat().st_size
            _remove(path)
            removed.append(path)
        return removed

    def close(self) -> None:
        self.sync()
        for files in self._branches.values():
            _drop(files.open)
            files.open = None
        os.close(self._tip_file)


def _behind(last: int, header: Header, frame: bytes) -> tuple[Header, bytes]:
    if header.first > last:
        return header, frame
    rest = cut(frame, header, last + 1, header.last)
    return header_from(rest), rest


def _write(files: BranchFiles, wanted: Sequence[tuple[Header, bytes]]) -> None:
    segment = files.open
    assert segment is not None
    marks = []
    at = segment.size
    for header, frame in wanted:
        if segment.marked < 0 or at - segment.marked >= INDEX_EVERY:
            marks.append(mark_bytes(Mark(header.first, at, header.time_ns, header.position)))
            segment.marked = at
        at += len(frame)
    write_all(segment.file, [frame for _, frame in wanted])
    segment.size = at
    if marks:
        write_all(segment.index, [b"".join(marks)])
    files.last, files.is_touched = wanted[-1][0].last, True


def _recovered(path: Path, base: int, safe: int) -> BranchFiles:
    """The torn end of the last segment is cut off, the rest is made safe; a segment without an opening is no segment.
    Up to the number that was safe nothing is torn: UsageError, and nothing is cut off."""
    segments = segments_of(path)
    while segments:
        first, last_path = segments[-1]
        data = last_path.read_bytes()
        try:
            _, end = start_from(data)
        except WireError:
            if first <= safe:
                raise _damaged(last_path, 0, safe) from None
            _remove(last_path)
            segments.pop()
            continue
        number = first - 1
        for at, header in whole_frames(data, end):
            end, number = at + header.size, header.last
        if number < safe:
            raise _damaged(last_path, end, safe)
        _make_safe(last_path, end)
        return BranchFiles(path, number, number, holes_in(segments), safe=(last_path, end))
    return BranchFiles(path, base, base)


def _make_safe(path: Path, size: int) -> None:
    """Cut a segment and sync it: its writer was perhaps killed before it did, and nobody does it later."""
    file = os.open(path, os.O_RDWR)
    try:
        if os.fstat(file).st_size > size:  # else it would seem to be written now
            os.ftruncate(file, size)
        os.fdatasync(file)
    finally:
        os.close(file)
    sync_folder(path.parent)


def _damaged(path: Path, at: int, safe: int) -> UsageError:
    return UsageError(
        f"{path} is damaged at byte {at:,}, and entries up to {safe:,} had been safe: put back a copy of the group's "
        "folder, or move it away, and the archiver fetches from others what they have"
    )


def _begun(path: Path, opening: bytes) -> _Open:
    flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
    with ExitStack() as undo:
        file = open_private(path, flags)
        undo.callback(os.close, file)
        index = open_private(path.with_suffix(INDEX), flags)
        undo.callback(os.close, index)
        write_all(file, [opening])
        undo.pop_all()
    return _Open(file, index, path, len(opening), -1)


def _reopened(path: Path) -> _Open:
    marks = rebuilt_index(path)
    write_whole(path.with_suffix(INDEX), b"".join(map(mark_bytes, marks)))
    with ExitStack() as undo:
        file = os.open(path, os.O_RDWR | os.O_APPEND)
        undo.callback(os.close, file)
        index = os.open(path.with_suffix(INDEX), os.O_RDWR | os.O_APPEND)
        undo.pop_all()
    return _Open(file, index, path, os.fstat(file).st_size, marks[-1].offset if marks else -1)


def rebuilt_index(path: Path) -> list[Mark]:
    """From the headers of the frames."""
    marks: list[Mark] = []
    for at, header in headers_from(path, opening_size(path)):
        if not marks or at - marks[-1].offset >= INDEX_EVERY:
            marks.append(Mark(header.first, at, header.time_ns, header.position))
    return marks


def state_at_end(path: Path) -> Start:
    """What is known at the end of a segment."""
    data = path.read_bytes()
    start, at = start_from(data)
    view, sinks, branch, last = start.view, Sinks(start.sinks), path.parent.name, start.first - 1
    for at, header in whole_frames(data, at):  # noqa: B020
        view, last = header.view, header.last
        for run in runs_of(memoryview(data)[at : at + header.size], header):
            if isinstance(run.item, View):
                view = run.item.id
            elif isinstance(run.item, Columns) and (sink := sink_of(run.item.groups)) is not None:
                for number, payload in enumerate(run.item.batch().data, run.first):
                    sinks.take(sink, Place(branch, number), payload)
    return Start(last + 1, view, sinks.document())


def _close(segment: _Open | None) -> None:
    if segment is not None:
        os.fdatasync(segment.file)
        _drop(segment)


def _drop(segment: _Open | None) -> None:
    if segment is not None:
        os.close(segment.file)
        os.close(segment.index)


def _remove(path: Path) -> None:
    path.with_suffix(INDEX).unlink(missing_ok=True)
    path.unlink(missing_ok=True)
