"""First look at the clients of a large run: one row group after the other, each by itself; and how the run is cut.

The file is in the order of the history, and places in the global order rise with it, roughly: so a stretch of the order
lies in a few row groups.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ordercast.model.ids import Position
from ordercast.pipeline.verify.clients.rows import (
    GOT,
    SENT,
    Said,
    is_message,
)
from ordercast.pipeline.verify.index import GRID_ROWS, NO_PLACE, position_at
from ordercast.pipeline.verify.numbering import fingerprint
from ordercast.pipeline.verify.positions import POSITION, keys_of
from ordercast.pipeline.verify.rows import Rows, numbers_from
from ordercast.pipeline.verify.slicing import cuts_of
from ordercast.pipeline.verify.spread import Spread
from ordercast.pipeline.verify.suspects import by_stream
from ordercast.trace.client_records import GotDropped
from ordercast.trace.columns import signed

_STAMP = ("sender_process", "sender", "counter")

Marks = list[tuple[int, Position]]  # so many receipts, and the place of the last of them
Stretch = tuple[int, int]  # of numbers, from first to last


@dataclass(slots=True)
class ClientIndex:
    """What one row group holds."""

    said: pa.Table
    count: int
    fingerprint: int
    marks: Marks
    bounds: tuple[Position, Position] | None  # the lowest place and the highest
    sent: dict[tuple[int, int], Stretch]  # of each client, by its stamp: the counters sent here


@dataclass(slots=True)
class ClientSlice:
    """The part from `first` up to, not including, `last`; `owned`: row groups whose sendings are counted in it."""

    first: Position
    last: Position | None
    groups: list[int] = field(default_factory=list)
    owned: list[int] = field(default_factory=list)


def index_clients(path: str, group: int) -> ClientIndex:
    file = pq.ParquetFile(path, page_checksum_verification=True)
    table = read_group(file, group, (*_STAMP, "n", "kind", *POSITION))
    messages = table.filter(is_message(table))
    rows = Rows({name: numbers_from(messages[name]) for name in messages.column_names})
    said = file.read_row_group(group, use_threads=False) if len(messages) < len(table) else None
    said = table.slice(0, 0) if said is None else said.filter(pc.invert(is_message(said)))
    placed = rows.where(rows["kind"] != SENT)
    marks, bounds = _marks(placed)
    numbers = numbers_from(table["n"])
    return ClientIndex(said, len(table), fingerprint(numbers), marks, bounds, _sent(rows.where(rows["kind"] == SENT)))


def read_group(file: pq.ParquetFile, group: int, columns: Sequence[str]) -> pa.Table:
    return file.read_row_group(group, columns=list(columns), use_threads=False)


def _marks(rows: Rows) -> tuple[Marks, tuple[Position, Position] | None]:
    if not len(rows):
        return [], None
    order = np.argsort(keys_of(rows)[0], kind="stable")
    chosen = [*range(GRID_ROWS - 1, len(rows) - 1, GRID_ROWS), len(rows) - 1]
    counts = np.diff([0, *(index + 1 for index in chosen)]).tolist()
    marks = [(count, position_at(rows, int(order[index]))) for count, index in zip(counts, chosen, strict=True)]
    return marks, (position_at(rows, int(order[0])), marks[-1][1])


def _sent(rows: Rows) -> dict[tuple[int, int], Stretch]:
    return {client: (int(counters.min()), int(counters.max())) for client, counters in by_stream(rows)}


def client_slices(indices: list[ClientIndex], part_rows: int) -> list[ClientSlice]:
    cuts = cuts_of([mark for index in indices for mark in index.marks], part_rows)
    slices = [ClientSlice(*pair) for pair in zip([NO_PLACE, *cuts], [*cuts, None], strict=True)]
    owner = 0
    for group, index in enumerate(indices):
        if index.bounds is not None:
            low, high = (bisect_right(cuts, place) for place in index.bounds)
            for one in slices[low : high + 1]:
                one.groups.append(group)
            owner = low
        slices[owner].owned.append(group)
    return slices


# Losses


@dataclass(frozen=True, slots=True)
class Loss:
    """A client was told that it lost messages: between which places of what it got."""

    said: Said
    after: Position | None
    before: Position | None

    def touches(self, part: ClientSlice) -> bool:
        is_early = part.last is None or self.after is None or self.after < part.last
        return is_early and (self.before is None or self.before >= part.first)


def losses_in(path: str, dropped: list[Said], groups: int, spread: Spread) -> list[Loss]:
    """Each with the places of what its client got last before it and first after it."""
    around = spread(partial(_around, path, dropped), range(groups))
    result = []
    for number, one in enumerate(dropped):
        before = max((found[number][0] for found in around if found[number][0] is not None), default=None)
        after = min((found[number][1] for found in around if found[number][1] is not None), default=None)
        result.append(Loss(one, before and before[1], after and after[1]))
    return result


_Around = list[tuple[tuple[int, Position] | None, tuple[int, Position] | None]]


def _around(path: str, dropped: list[Said], group: int) -> _Around:
    table = read_group(pq.ParquetFile(path), group, ("process", "session", "n", "kind", *POSITION))
    table = table.filter(pc.equal(table["kind"], GOT))
    rows = Rows({name: numbers_from(table[name]) for name in table.column_names})
    result: _Around = []
    for one in dropped:
        assert isinstance(one.event, GotDropped)
        process, session = signed(one.event.client.process), one.event.client.session
        mine = np.flatnonzero((rows["process"] == process) & (rows["session"] == session))
        split = int(np.searchsorted(rows["n"][mine], one.n))
        ends = mine[:split][-1:].tolist(), mine[split:][:1].tolist()
        found = [(int(rows["n"][end[0]]), position_at(rows, end[0])) if end else None for end in ends]
        result.append((found[0], found[1]))
    return result
