"""Events as rows, field by field: what the tables of clients and of replicas have in common. Pure.

A field of an event is one column of its name, or several where the value has several numbers (`Part`). `EventTable`
puts the parts of each kind of event together, both ways. `client_rows.py` and `replica_rows.py` say which kinds there
are; whoever adds an event adds a number to `RowKind` and a line there. Every event is exactly one row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from enum import Enum
from typing import Any, Generic, NamedTuple, TypeVar

from ordercast.model.events import ViewId
from ordercast.model.ids import ConfigurationId, Instant, Position, ProcessId
from ordercast.trace.columns import Cells, Column, RowKind, signed, unsigned

EventT = TypeVar("EventT")


Lists = dict[str, list[Any]]


class Part(NamedTuple):
    """How one field is kept. An absent value is null in all of its columns."""

    columns: Mapping[str, Column]
    lists: Callable[[list[Any]], Lists]  # of the values of many events
    read: Callable[[Cells], Any]


def single(name: str, column: Column, cell: Callable[[Any], Any], read: Callable[[Any], Any]) -> Part:
    """A value that has one column."""
    return Part(
        {name: column}, lambda values: {name: [cell(value) for value in values]}, lambda cells: read(cells[name])
    )


def plain(name: str, type: str, meaning: str, *, repeats: bool = False) -> Part:
    """The value as it is."""
    return Part({name: Column(type, meaning, repeats)}, lambda values: {name: values}, lambda cells: cells[name])


def number(name: str, meaning: str, *, repeats: bool = False) -> Part:
    """An unsigned number of 64 bits, or None."""

    def lists(values: list[Any]) -> Lists:
        high = any(value is not None and value >= 1 << 63 for value in values)
        return {name: [None if value is None else signed(value) for value in values] if high else values}

    def read(cells: Cells) -> int | None:
        return None if cells[name] is None else unsigned(cells[name])

    return Part({name: Column("int64", meaning, repeats)}, lists, read)


def names(name: str, meaning: str) -> Part:
    column = Column("names", meaning, repeats=True)
    return Part({name: column}, lambda values: {name: values}, lambda cells: tuple(cells[name]))


def processes(name: str, meaning: str) -> Part:
    return single(
        name,
        Column("processes", meaning),
        lambda value: [signed(process) for process in value],
        lambda cell: tuple(ProcessId(unsigned(process)) for process in cell),
    )


def word(name: str, kind: type[Enum], meaning: str) -> Part:
    """The value of an enumeration of strings."""
    return single(name, Column("string", meaning, repeats=True), lambda value: value.value, kind)


def joined(parts: Iterable[Part], apart: Callable[[Any], Iterable[Any]], together: Callable[..., Any]) -> Part:
    """A value that has parts of its own: `apart` gives their values, `together` makes the value of them. None is null
    in all columns, and is recognised by the first."""
    parts = tuple(parts)
    columns = {name: column for part in parts for name, column in part.columns.items()}
    first = next(iter(columns))

    def lists(values: list[Any]) -> Lists:
        there = [value for value in values if value is not None]
        split = there if apart is tuple else [tuple(apart(value)) for value in there]
        found = {
            name: cells
            for place, part in enumerate(parts)
            for name, cells in part.lists([value[place] for value in split]).items()
        }
        return found if len(there) == len(values) else {name: _spread(cells, values) for name, cells in found.items()}

    def read(cells: Cells) -> Any:
        return None if cells[first] is None else together(*(part.read(cells) for part in parts))

    return Part(columns, lists, read)


def _spread(cells: list[Any], values: list[Any]) -> list[Any]:
    """The cells of those values that are there, and nulls in the place of the others."""
    left = iter(cells)
    return [None if value is None else next(left) for value in values]


def configuration(prefix: str, meaning: str) -> Part:
    pair = (
        number(f"{prefix}_seq", f"{meaning}: seq", repeats=True),
        number(f"{prefix}_rep", "its representative", repeats=True),
    )
    return joined(pair, tuple, ConfigurationId)


def position(prefix: str, meaning: str, *, repeats: bool = False) -> Part:
    """The four numbers; without a prefix they have the names that they have in the table of the daemons."""
    lead = f"{prefix}_" if prefix else ""
    parts = (
        configuration(f"{lead}origin", f"origin of {meaning}"),
        number(f"{lead}number", f"number of {meaning}, 63 bits", repeats=repeats),
        plain(f"{lead}slot", "int32", f"slot of {meaning}, 16 bits", repeats=repeats),
    )
    return joined(parts, tuple, Position)


def view_id(prefix: str, meaning: str) -> Part:
    """The configuration, and the position."""
    parts = (
        configuration(f"{prefix}_configuration", f"configuration of {meaning}"),
        position(prefix, f"the position of {meaning}", repeats=True),
    )
    return joined(parts, tuple, ViewId)


AT = single(
    "t",
    Column("int64", "nanoseconds: virtual time of a simulation, wall-clock time of a live run"),
    lambda at: at,
    Instant,
)
HEAD: Mapping[str, Column] = {
    "run": Column("int64", "which run; the same in every row of a file"),
    "n": Column("int64", "number of the event in its history, from 0"),
    **AT.columns,
    "kind": Column("int8", "what happened: see the kinds of rows", repeats=True),
}


@dataclass(frozen=True, slots=True)
class Shape:
    event: type
    parts: tuple[tuple[str, Part], ...]  # by field


class EventTable(Generic[EventT]):
    """The columns and kinds of one sort of evidence."""

    def __init__(
        self,
        name: str,
        order: tuple[str, ...],
        kinds: Mapping[RowKind, type],
        parts: Mapping[str, Part],
        special: Mapping[type, Mapping[str, Part]],
    ) -> None:
        """`order`: the columns by which a file of a run is sorted. `parts`: how a field of this name is kept, unless
        `special` says otherwise of an event."""
        self.name = name
        self.order = order
        self.shapes = {
            kind: Shape(
                event,
                tuple((each.name, special.get(event, {}).get(each.name) or parts[each.name]) for each in fields(event)),
            )
            for kind, event in kinds.items()
        }
        self._kinds = {event: kind for kind, event in kinds.items()}
        used = [part for shape in self.shapes.values() for _, part in shape.parts]
        self.columns: Mapping[str, Column] = {
            **HEAD,
            **{name: column for part in used for name, column in part.columns.items()},
        }

    def columns_of(self, events: Sequence[EventT], first: int = 0) -> list[tuple[int, Lists]]:
        """The events in columns, those of a kind together, with how many they are. Columns that are not named are null.
        `first`: the number of the first event."""
        kinds: dict[type, list[int]] = {}
        for place, event in enumerate(events):
            kinds.setdefault(type(event), []).append(place)
        found = []
        for event_type, places in kinds.items():
            kind = self._kinds[event_type]
            lists: Lists = {"n": [first + place for place in places], "kind": [int(kind)] * len(places)}
            for name, part in self.shapes[kind].parts:
                lists |= part.lists([getattr(events[place], name) for place in places])
            found.append((len(places), lists))
        return found

    def event(self, kind: int, cells: Cells) -> EventT:
        """ValueError, KeyError or TypeError when it is no row of this table."""
        shape = self.shapes[RowKind(kind)]
        made: EventT = shape.event(*(part.read(cells) for _, part in shape.parts))
        return made

    def columns_for(self, kind: int) -> list[str]:
        """The columns that events of a kind use."""
        shape = self.shapes[RowKind(kind)]
        return list(dict.fromkeys(("n", *(name for _, part in shape.parts for name in part.columns))))
