"""First look at a run that is too large for one task: one row group after the other, each by itself.

A `Piece` is what one row group holds of one process: which rows and events, how far its deliveries come in the global
order, whose submissions. Pieces are small, so all of them fit the driver, where they are put in line (`chained`): that
no row and no event is missing, and which row groups hold which stretch of the order.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from ordercast.model.ids import NOBODY, ConfigurationId, Position, ProcessId
from ordercast.pipeline.verify.numbering import event_begins, fingerprint
from ordercast.pipeline.verify.part import spans
from ordercast.pipeline.verify.positions import POSITION, keys_of
from ordercast.pipeline.verify.rows import (
    CONTROL_ALL,
    DELIVERED,
    NUMBERING,
    SUBMITTED,
    Ints,
    Rows,
    TraceFile,
    TracePath,
    Unsound,
    control_rows,
    rows_from,
)
from ordercast.trace.columns import unsigned
from ordercast.trace.note_rows import NOTE_KINDS

GRID_ROWS = 1 << 14  # a mark in the order about so often
NO_PLACE = Position(ConfigurationId(-1, NOBODY), 0, 0)  # below all positions

_INDEX = (*NUMBERING, *POSITION, "sender", "counter", "service")


@dataclass(slots=True)
class Piece:
    group: int
    process: int
    idx: tuple[int, int]  # of the first row and of the last
    n: tuple[int, int]
    events: int
    fingerprint: int  # of the numbers of these events
    marks: list[tuple[int, Position]]  # so many rows, and the place reached with them
    sent: dict[int, tuple[int, int]]  # of each sender, the first and the last counter submitted here
    places: dict[int, tuple[Position, Position]]  # of each service, the lowest place delivered here and the highest
    before: Position = NO_PLACE  # the place reached before this piece
    reached: Position = NO_PLACE  # and with it, by deliveries at their place in the order

    def bounds(self, early: tuple[int, ...]) -> tuple[Position, Position]:
        """Return the lowest place and the highest of what is read here, early deliveries among it."""
        ends = [self.places[service] for service in early if service in self.places]
        return min([self.before, *(low for low, _ in ends)]), max([self.reached, *(high for _, high in ends)])


@dataclass(slots=True)
class GroupIndex:
    pieces: list[Piece] = field(default_factory=list)
    control: list[dict[str, Any]] = field(default_factory=list)
    deliveries: int = 0


def index_group(path: TracePath, group: int, grid: int = GRID_ROWS) -> GroupIndex:
    file = TraceFile(path)
    table = file.table(_INDEX, range(group, group + 1))
    rows = rows_from(table)
    result = GroupIndex(deliveries=int((rows["kind"] == DELIVERED).sum()))
    if not np.isin(rows["kind"], (SUBMITTED, DELIVERED, *NOTE_KINDS)).all():
        result.control = control_rows(file.table(CONTROL_ALL, range(group, group + 1))).to_pylist()
    if (np.diff(rows["process"]) < 0).any():
        raise Unsound("rows are not sorted by process")
    for process, begin, end in spans(rows["process"]):
        result.pieces.append(_piece(group, process, rows.where(slice(begin, end)), grid))
    return result


def _piece(group: int, process: int, rows: Rows, grid: int) -> Piece:
    idx, n = rows["idx"], rows["n"]
    if (np.diff(idx) != 1).any():
        raise Unsound("rows of a process are missing or not in order")
    numbers = n[event_begins(rows)]
    span = (int(idx[0]), int(idx[-1])), (int(n[0]), int(n[-1]))
    deliveries = rows.only(*POSITION, "service").where(rows["kind"] == DELIVERED)
    keys, _ = keys_of(deliveries)
    marks, places = _marks(deliveries, keys, grid), _places(deliveries, keys)
    return Piece(group, process, *span, len(numbers), fingerprint(numbers), marks, _sent(rows), places)


def _marks(rows: Rows, keys: Ints, grid: int) -> list[tuple[int, Position]]:
    """How far the deliveries have come, every so many rows and at the last of them."""
    if not len(rows):
        return []
    is_highest = keys == np.maximum.accumulate(keys)
    highest = np.maximum.accumulate(np.where(is_highest, np.arange(len(rows)), 0))  # which row has the highest so far
    chosen = [*range(grid - 1, len(rows) - 1, grid), len(rows) - 1]
    counts = np.diff([0, *(index + 1 for index in chosen)]).tolist()
    return [(count, position_at(rows, int(highest[index]))) for count, index in zip(counts, chosen, strict=True)]


def _places(rows: Rows, keys: Ints) -> dict[int, tuple[Position, Position]]:
    """Return of each service the lowest place delivered and the highest."""
    result = {}
    for service in np.unique(rows["service"]).tolist():
        mine = np.flatnonzero(rows["service"] == service)
        ends = mine[np.argmin(keys[mine])], mine[np.argmax(keys[mine])]
        result[service] = (position_at(rows, int(ends[0])), position_at(rows, int(ends[1])))
    return result


def position_at(rows: Rows, index: int) -> Position:
    seq, representative, number, slot = (int(rows[name][index]) for name in POSITION)
    return Position(ConfigurationId(unsigned(seq), ProcessId(unsigned(representative))), number, slot)


def _sent(rows: Rows) -> dict[int, tuple[int, int]]:
    rows = rows.only("sender", "counter").where(rows["kind"] == SUBMITTED)
    order = np.argsort(rows["sender"], kind="stable")
    counters = rows["counter"][order]
    return {
        sender: (int(counters[begin:end].min()), int(counters[begin:end].max()))
        for sender, begin, end in spans(rows["sender"][order])
    }


@dataclass(slots=True)
class Chain:
    """All pieces in line, by process."""

    pieces: list[Piece]
    events: int


def chained(indices: list[GroupIndex], early: tuple[int, ...] = ()) -> Chain:
    """`Unsound` when rows or events are missing; the fingerprint of all numbers is still to be compared. `early` are
    services that do not say how far a process has come."""
    pieces = sorted(
        (piece for index in indices for piece in index.pieces), key=lambda piece: (piece.process, piece.idx)
    )
    if not pieces:
        raise Unsound("the trace is empty")
    events = sum(piece.events for piece in pieces)
    for before, piece in pairwise([None, *pieces]):
        assert piece is not None
        is_first = before is None or before.process != piece.process
        piece.before = NO_PLACE if is_first or before is None else before.reached
        piece.reached = max(
            [piece.before, *(high for service, (_, high) in piece.places.items() if service not in early)]
        )
        if before is None or is_first:
            if piece.idx[0] != 0:
                raise Unsound("the first rows of a process are missing")
            continue
        if piece.idx[0] != before.idx[1] + 1 or piece.n[0] < before.n[1]:
            raise Unsound("rows of a process are missing or not in order")
        if piece.n[0] == before.n[1]:  # a batch goes on over the border
            events -= 1
    return Chain(pieces, events)


def total_fingerprint(pieces: list[Piece]) -> int:
    """Return a fingerprint of the numbers of all events of the run."""
    total = sum(piece.fingerprint for piece in pieces)
    for before, piece in pairwise(pieces):
        if before.process == piece.process and piece.n[0] == before.n[1]:
            total -= fingerprint(np.array([piece.n[0]], np.int64))
    return total % (1 << 64)
