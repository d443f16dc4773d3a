"""Rows of a Parquet trace as numpy columns: the messages and the numbering of all events.

Views, starts and ends are few and become events (`Control`); messages are many and stay columns (`Rows`); of notes the
numbers alone are read, since nothing is judged by them. A trace whose rows are not numbered as its writer numbers them
raises `Unsound`, and is read by the slow and exact reader instead, which says what is wrong with it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import groupby, pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ordercast.trace.arrow import schema_with
from ordercast.trace.columns import COLUMNS, RowKind
from ordercast.trace.from_rows import control_event_from
from ordercast.trace.note_rows import NOTE_KINDS
from ordercast.trace.records import Event, digest_of

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

SUBMITTED, DELIVERED = int(RowKind.SUBMITTED), int(RowKind.DELIVERED)
NUMBERING = ("process", "idx", "n", "kind")
IDENTITY = ("sender_process", "sender", "counter", "digest", "service", "size")
PLACES = ("configuration_seq", "configuration_rep", "origin_seq", "origin_rep", "number", "slot")
NUMBERS = (*NUMBERING, *PLACES, *IDENTITY)
MESSAGE = (*NUMBERS, "destinations")
_STRETCHES_MAX = 16
_BETWEEN = "\0"  # destinations that are written as one text
CONTROL = (
    "t",
    "members",
    "transitional",
    "previous_seq",
    "previous_rep",
    "reason",
    "name",
    "text",
    "flag",
    "destinations",
)
CONTROL_ALL = (*NUMBERING, *PLACES, *CONTROL)


TracePath = str | tuple[str, ...]  # of a run in one file, or in several


class Unsound(Exception):
    """The rows are not what a writer of traces writes, or say more than the fast judge understands."""


class JudgedWhole(Unsound):
    """A history that is not judged in parts."""


@dataclass(frozen=True, slots=True)
class Control:
    """An event that is no message and no note, with the numbers of its row."""

    process: int
    idx: int
    n: int
    event: Event


@dataclass(frozen=True, slots=True)
class Rows:
    """Columns of equal length, by name. A null is 0; where that could be a value, the reader has looked before. The
    destinations of a message are a number, its `goal`, which `goals` explains; 0: all."""

    columns: dict[str, Ints]
    goals: dict[int, tuple[str, ...]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __getitem__(self, name: str) -> Ints:
        return self.columns[name]

    def where(self, chosen: Flags | Ints | slice) -> Rows:
        """Return these rows; where flags choose all, or all in one stretch, without a copy."""
        if isinstance(chosen, np.ndarray) and chosen.dtype == np.bool_:
            flags = chosen.astype(np.bool_, copy=False)
            if np.count_nonzero(flags[1:] != flags[:-1]) <= _STRETCHES_MAX:
                return self._stretches(flags)
            chosen = np.flatnonzero(flags)  # once, and not for each column
        return Rows({name: column[chosen] for name, column in self.columns.items()}, self.goals)

    def _stretches(self, chosen: Flags) -> Rows:
        """Return rows that lie together but for a few gaps: slices are quicker than indices."""
        ends = [0, *(np.flatnonzero(chosen[1:] != chosen[:-1]) + 1).tolist(), len(chosen)]
        slices = [slice(begin, end) for begin, end in pairwise(ends) if begin < end and chosen[begin]]
        if len(slices) <= 1:
            return self.where(slices[0] if slices else slice(0, 0))
        columns = {name: np.concatenate([column[each] for each in slices]) for name, column in self.columns.items()}
        return Rows(columns, self.goals)

    @property
    def sound(self) -> Rows:
        """Return the rows without those that are odd."""
        return self.where(self["odd"] == 0) if self["odd"].any() else self

    def only(self, *names: str) -> Rows:
        return Rows({name: self.columns[name] for name in names}, self.goals)


def no_messages() -> Rows:
    return Rows({name: np.zeros(0, np.int64) for name in (*NUMBERS, "odd", "goal")})


def joined(parts: list[Rows]) -> Rows:
    if len(parts) == 1:
        return parts[0]
    goals = {goal: names for part in parts for goal, names in part.goals.items()}
    return Rows({name: np.concatenate([part[name] for part in parts]) for name in parts[0].columns}, goals)


class TraceFile:
    """One run on disk, in one file or in several, read by row groups. OSError and ArrowException when it cannot be.
    A column that several files lack is null."""

    def __init__(self, path: Path | TracePath) -> None:
        paths = path if isinstance(path, tuple) else (path,)
        files = [pq.ParquetFile(one, page_checksum_verification=True) for one in paths]
        self.count: int = sum(file.metadata.num_rows for file in files)
        self._groups = [(file, group) for file in files for group in range(file.num_row_groups)]
        self.groups = len(self._groups)
        self._names = set(files[0].schema_arrow.names) if files else set[str]()
        missing = [name for name in COLUMNS if name not in self._names]
        if missing and not isinstance(path, tuple):
            raise Unsound(f"column {missing[0]} is missing")

    def table(self, columns: tuple[str, ...] | None = None, groups: range | None = None) -> pa.Table:
        names = list(COLUMNS if columns is None else columns)
        chosen = [self._groups[group] for group in (range(self.groups) if groups is None else groups)]
        there = [name for name in names if name in self._names]
        tables = [schema_with({}).remove_metadata().empty_table().select(there)]
        for file, those in groupby(chosen, key=itemgetter(0)):
            found = file.read_row_groups([group for _, group in those], columns=there, use_threads=False)
            tables.append(found.replace_schema_metadata(None))
        table = tables[1] if len(tables) == 2 else pa.concat_tables(tables)
        for name in (name for name in names if name not in self._names):
            table = table.append_column(name, pa.nulls(len(table), schema_with({}).field(name).type))
        return table.select(names)


def rows_from(table: pa.Table) -> Rows:
    """The columns of `table` that hold numbers."""
    return Rows({name: numbers_from(table[name]) for name in table.column_names})


def numbers_from(column: pa.ChunkedArray) -> Ints:
    if column.null_count:
        column = pc.fill_null(column, 0)
    numbers: Ints = column.to_numpy().astype(np.int64, copy=False)
    return numbers


def messages_from(table: pa.Table) -> Rows:
    """The messages of a table with the columns of `MESSAGE`, and which of them are `odd`: without identity, stamp or
    place, or no message but a batch without any."""
    rows = rows_from(table.select(list(NUMBERS)))
    odd = (rows["counter"] <= 0) | (rows["sender"] < 0)
    is_delivery = rows["kind"] == DELIVERED
    for name in (*IDENTITY, *PLACES):
        if table[name].null_count:
            is_null = pc.is_null(table[name]).to_numpy()
            odd |= is_null if name in IDENTITY else is_null & is_delivery
    rows.columns["odd"] = odd.astype(np.int64)
    rows.columns["goal"] = goals_from(table["destinations"], rows.goals)
    return rows.where(is_delivery | (rows["kind"] == SUBMITTED))


def goals_from(destinations: pa.ChunkedArray, goals: dict[int, tuple[str, ...]]) -> Ints:
    """Return a number for each list of names, 0 for none, and add those that are new to `goals`."""
    if destinations.null_count == len(destinations):
        return np.zeros(len(destinations), np.int64)
    texts = pc.binary_join(destinations, _BETWEEN).combine_chunks().dictionary_encode()
    numbers = [text_number(text) for text in texts.dictionary.to_pylist()]
    goals.update(zip(numbers, (tuple(text.split(_BETWEEN)) for text in texts.dictionary.to_pylist()), strict=True))
    found = np.array([0, *numbers], np.int64)[pc.fill_null(texts.indices, -1).to_numpy().astype(np.int64) + 1]
    has_none = pc.equal(pc.fill_null(pc.list_value_length(destinations), 0), 0).to_numpy()
    return np.where(has_none, 0, found)


def texts_from(column: pa.ChunkedArray) -> Ints:
    """Return a number for each text, the same for the same; 0 for none."""
    if column.null_count == len(column):
        return np.zeros(len(column), np.int64)
    texts = column.combine_chunks().dictionary_encode()
    numbers = [0, *(text_number(text) for text in texts.dictionary.to_pylist())]
    found: Ints = np.array(numbers, np.int64)[pc.fill_null(texts.indices, -1).to_numpy().astype(np.int64) + 1]
    return found


def text_number(text: str) -> int:
    return digest_of(text.encode()) | 1


def control_rows(table: pa.Table) -> pa.Table:
    """Return the rows that are neither messages nor notes. `table` has the columns of `CONTROL_ALL`."""
    kinds = table["kind"]
    return table.filter(pc.invert(pc.is_in(kinds, value_set=pa.array((SUBMITTED, DELIVERED, *NOTE_KINDS), kinds.type))))


def controls_from(rows: list[dict[str, Any]]) -> list[Control]:
    """In the order of the history. `Unsound` when a row cannot be read."""
    try:
        controls = [Control(row["process"], row["idx"], row["n"], control_event_from(row)) for row in rows]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Unsound(f"an event cannot be read: {error}") from error
    return sorted(controls, key=lambda control: control.n)
