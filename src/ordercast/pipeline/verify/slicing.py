"""Cuts a large run into parts along the global order, so that all deliveries of a message are in one part.

Positions rise at every process, so the deliveries between two positions are a stretch of rows at each. A process that
does not keep to the order is cut where it had come furthest; the part in which it falls back will not be cleared.
Submissions go with the delivery before them; the few that are delivered in a later part are read again there.
Deliveries before their place in the order go by that place, wherever they are in the record of a process.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

import numpy as np

from ordercast.model.ids import Position
from ordercast.pipeline.verify.index import NO_PLACE, Chain
from ordercast.pipeline.verify.positions import LOWEST, POSITION, keys_of
from ordercast.pipeline.verify.rows import (
    DELIVERED,
    MESSAGE,
    SUBMITTED,
    Flags,
    Ints,
    Rows,
    TraceFile,
    TracePath,
    joined,
    messages_from,
    no_messages,
)

PART_ROWS = 1_500_000  # of a part; a few hundred bytes of memory each


@dataclass(slots=True)
class Reading:
    """What is read of one row group for a part: the rows of a process between two places."""

    group: int
    process: int
    before: Position  # reached before this row group


@dataclass(slots=True)
class Slice:
    """The part from `first` up to, not including, `last`."""

    number: int
    first: Position
    last: Position | None
    readings: list[Reading] = field(default_factory=list)


def cuts_of(marks: list[tuple[int, Position]], part_rows: int) -> list[Position]:
    """Return the places between which there are about so many rows; `marks` are counts of rows, and places reached with
    them."""
    inorder = sorted((place, count) for count, place in marks)
    cuts: list[Position] = []
    gathered = 0
    for place, count in inorder:
        gathered += count
        if gathered >= part_rows and place != inorder[-1][0] and (not cuts or place > cuts[-1]):
            cuts.append(place)
            gathered = 0
    return cuts


def slices_of(chain: Chain, early: tuple[int, ...] = (), part_rows: int = PART_ROWS) -> list[Slice]:
    cuts = cuts_of([mark for piece in chain.pieces for mark in piece.marks], part_rows)
    bounds = [NO_PLACE, *cuts]
    result = [Slice(number, *pair) for number, pair in enumerate(zip(bounds, [*cuts, None], strict=True))]
    for piece in chain.pieces:
        # Rows keep the place reached before them, so a piece begins in the part where the piece before it ended.
        low, high = piece.bounds(early)
        for slice_ in result[bisect_right(cuts, low) : bisect_right(cuts, high) + 1]:
            slice_.readings.append(Reading(piece.group, piece.process, piece.before))
    return result


@dataclass(slots=True)
class Read:
    """The messages of a part, by process, and the submissions before it that came with the same row groups."""

    rows: Rows
    earlier: Rows
    groups: set[int]


def read_slice(path: TracePath, part: Slice, early: tuple[int, ...] = ()) -> Read:
    file = TraceFile(path)
    found, earlier = [no_messages()], [no_messages()]
    group, rows = -1, no_messages()
    # The file is sorted by process, so this is also the order of the processes.
    for reading in sorted(part.readings, key=lambda reading: (reading.group, reading.process)):
        if reading.group != group:
            group, rows = reading.group, messages_from(file.table(MESSAGE, range(reading.group, reading.group + 1)))
        first, last = np.searchsorted(rows["process"], [reading.process, reading.process + 1]).tolist()
        mine = rows.where(slice(first, last))
        is_early = (mine["kind"] == DELIVERED) & np.isin(mine["service"], early)
        begin, end = _within(mine, is_early, reading.before, part)
        if is_early.any():
            is_mine = ~is_early
            is_mine[:begin] = is_mine[end:] = False
            found.append(mine.where(is_mine | (is_early & _at_place(mine, part))))
        else:
            found.append(mine.where(slice(begin, end)))
        before = mine.where(slice(0, begin))
        earlier.append(before.where(before["kind"] == SUBMITTED))
    return Read(joined(found), joined(earlier), {reading.group for reading in part.readings})


def _at_place(rows: Rows, part: Slice) -> Flags:
    """Which rows have their own place in the part."""
    keys, (first, last) = keys_of(rows, [max(part.first, LOWEST), part.last or LOWEST])
    is_in: Flags = (keys >= first) & ((keys < last) | (part.last is None))
    return is_in


def _within(rows: Rows, is_early: Flags, before: Position, part: Slice) -> tuple[int, int]:
    """From where to where the place of rows, which is that of the last delivery in order, lies in the part."""
    deliveries = np.flatnonzero((rows["kind"] == DELIVERED) & ~is_early)
    if not len(deliveries):
        return (0, len(rows)) if _is_in(before, part) else (0, 0)
    positions = rows.only(*POSITION).where(deliveries)
    lowest = 0 if before >= part.first else _first_at(positions, part.first)
    highest = len(deliveries) if part.last is None else 0
    if part.last is not None and before < part.last:
        highest = _first_at(positions, part.last)
    begin = 0 if lowest == 0 and _is_in(before, part) else _row(deliveries, lowest, len(rows))
    return begin, max(begin, _row(deliveries, highest, len(rows)))


def _is_in(place: Position, part: Slice) -> bool:
    return place >= part.first and (part.last is None or place < part.last)


def _row(deliveries: Ints, index: int, count: int) -> int:
    return int(deliveries[index]) if index < len(deliveries) else count


def _first_at(rows: Rows, place: Position) -> int:
    """Return the first delivery that reaches this place."""
    keys, (key,) = keys_of(rows, [place])
    return int(np.searchsorted(np.maximum.accumulate(keys), key))
