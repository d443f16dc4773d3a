"""Holes: numbers that are missing between two segments of a branch, since nobody had them any more.

What is behind the last hole is kept without a gap. A segment that another follows never changes, so where it ends is
looked for once.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

from ordercast.archive.frames import Header, header_from
from ordercast.archive.layout import ENTRY_SIZE, INDEX, marks_from, opening_size
from ordercast.model.errors import WireError

Segments = Sequence[tuple[int, Path]]  # first numbers, and the files


def holes_in(segments: Segments) -> list[int]:
    """Return the first numbers of the segments before which numbers are missing. A segment that is damaged at its end
    leaves none: whoever reads it is to find that."""
    ends = ((_last_of(before), first) for (_, before), (first, _) in pairwise(segments))
    return [first for last, first in ends if last is not None and last + 1 != first]


def kept_from(segments: Segments, last: int) -> int | None:
    """Return the number from which everything up to this one is kept; None when it is not."""
    before = [segment for segment in segments if segment[0] <= last]
    return max(before[0][0], *holes_in(before), 0) if before else None


def _last_of(path: Path) -> int | None:
    try:
        found = path.stat()
    except FileNotFoundError:  # retention was quicker
        return 0
    return _last_number(path, found.st_mtime_ns, found.st_size)


@lru_cache(maxsize=100_000)
def _last_number(path: Path, mtime_ns: int, size: int) -> int | None:
    """Return the number of the last entry of a segment; None when it does not end with a whole one."""
    last = end = 0
    with suppress(WireError, OSError):
        for at, header in headers_from(path, _offset_near_end(path)):
            last, end = header.last, at + header.size
    return last if end == size else None


def _offset_near_end(path: Path) -> int:
    """Where the last frame begins that the index has, if it fits its segment; else the first one."""
    index = path.with_suffix(INDEX)
    marks = marks_from(index.read_bytes()[-ENTRY_SIZE:]) if index.exists() else []
    found = next(headers_from(path, marks[0].offset), None) if marks else None
    if found is not None and found[1].first == marks[0].number:
        return marks[0].offset
    return opening_size(path)


def headers_from(path: Path, at: int) -> Iterator[tuple[int, Header]]:
    """Yield the headers of frames and where they begin, from there on."""
    size = path.stat().st_size
    with path.open("rb") as file:
        while at < size:
            try:
                header = header_from(os.pread(file.fileno(), 256, at))
            except WireError:
                return
            yield at, header
            at += header.size
