"""A history as rows of a table, and back. Pure: `parquet.py` puts the rows into files.

A message submitted or delivered is one row; so is every other event. `n` numbers the events of the history: the rows of
one batch share it, and sorting by (`n`, `idx`) gives the history back exactly. `idx` numbers the rows of one process.
Every column is listed in `COLUMNS` with its type and meaning; a column that a kind of row does not use is null. Numbers
that are unsigned on the wire are kept as signed ones of the same 64 bits, since Spark knows no others.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, NamedTuple, assert_never

from ordercast.model.ids import NOBODY, Instant, Position, ProcessId, RingId, Seq
from ordercast.model.notes import Dropped, Ignored, Moved, Note, Occurred, Occurrence, Visited
from ordercast.model.promises import Promise, Promises
from ordercast.model.service import Service
from ordercast.model.view import ChangeReason, View, ViewKind
from ordercast.trace.records import (
    Crashed,
    DeliveredBatch,
    DeliveredMessage,
    Departed,
    Ended,
    Event,
    Healed,
    Installed,
    MessageId,
    Noted,
    Saturated,
    Started,
    Submitted,
    SubmittedMessage,
)


class RowKind(IntEnum):
    """Numbers are in files: append only."""

    SUBMITTED = 1
    DELIVERED = 2
    STARTED = 3
    REGULAR_VIEW = 4
    TRANSITIONAL_VIEW = 5
    CRASHED = 6
    DEPARTED = 7
    HEALED = 8
    SATURATED = 9
    ENDED = 10
    MOVED = 11
    VISITED = 12
    IGNORED = 13
    DROPPED = 14
    OCCURRED = 15


class Column(NamedTuple):
    type: str  # int8, int16, int32, int64, bool, string, or processes: a list of int64
    meaning: str
    repeats: bool = False  # few different values, in no order: kept as a dictionary rather than as differences


COLUMNS: Mapping[str, Column] = {
    "run": Column("int64", "which run; the same in every row of a file"),
    "process": Column("int64", "whose event: node × 2⁴⁸ + incarnation; 0 for events of the whole cluster"),
    "idx": Column("int64", "number of the row among those of its process, from 0"),
    "n": Column("int64", "number of the event in the history, from 0; the rows of one batch share it"),
    "t": Column("int64", "virtual or monotonic time in nanoseconds"),
    "kind": Column("int8", "what happened: see the kinds of rows", repeats=True),
    "view_seq": Column("int64", "configuration in which it was delivered, or which was installed: seq"),
    "view_rep": Column("int64", "its representative", repeats=True),
    "ring_seq": Column("int64", "ring that ordered the message, that was visited, or of a view's position: seq"),
    "ring_rep": Column("int64", "its representative", repeats=True),
    "seq": Column("int64", "place in the order of that ring"),
    "slot": Column("int32", "place within the packet"),
    "sender_process": Column("int64", "process that stamped the message; null: the bytes carry no stamp", repeats=True),
    "sender": Column("int64", "client within that process"),
    "counter": Column("int64", "the how-many-eth message of that client, from 1"),
    "digest": Column("int64", "63 bits of a hash of the payload; null in a batch without messages"),
    "service": Column("int16", "service asked for: 0 unreliable to 5 safe", repeats=True),
    "size": Column("int32", "bytes of the payload"),
    "members": Column("processes", "members of a view; those alive when healed; senders that are saturated"),
    "transitional": Column("processes", "those who come to the view directly from the same old ring"),
    "previous_seq": Column("int64", "configuration that the view ends: seq"),
    "previous_rep": Column("int64", "its representative", repeats=True),
    "reason": Column("int16", "why the membership changed: a ChangeReason", repeats=True),
    "name": Column("string", "engine started, state left, message ignored, or occurrence", repeats=True),
    "target": Column("string", "state entered", repeats=True),
    "text": Column("string", "the reason in words; of a start the promises, as JSON", repeats=True),
    "flag": Column("bool", "started: kept its storage; saturated: begins; ended: complete"),
    "about": Column("int64", "process that an occurrence is about"),
    "count": Column("int64", "how often it occurred"),
    "round": Column("int64", "rotation of the token"),
    "aru": Column("int64", "aru on the token when it was forwarded"),
    "my_aru": Column("int64", "aru of the process visited"),
    "sent": Column("int64", "packets sent in this visit"),
    "retransmitted": Column("int64", "packets retransmitted in this visit"),
    "requested": Column("int64", "packets asked for in this visit"),
}
MESSAGE_COLUMNS = tuple(COLUMNS)[1 : tuple(COLUMNS).index("members")]
MESSAGE_KINDS = (int(RowKind.SUBMITTED), int(RowKind.DELIVERED))

Cells = dict[str, Any]
_HALF, _WHOLE = 1 << 63, 1 << 64


def signed(number: int) -> int:
    return number - _WHOLE if number >= _HALF else number


def unsigned(number: int) -> int:
    return number + _WHOLE if number < 0 else number


@dataclass(slots=True)
class Rows:
    """Messages column by column, because they are many; other events row by row, because no two kinds are alike."""

    messages: dict[str, list[Any]] = field(default_factory=lambda: {name: [] for name in MESSAGE_COLUMNS})
    control: list[Cells] = field(default_factory=list)


# From events to rows


def rows_from(events: Iterable[Event]) -> Rows:
    rows = Rows()
    counts: defaultdict[ProcessId, int] = defaultdict(int)
    for n, event in enumerate(events):
        process = NOBODY if isinstance(event, Healed | Saturated | Ended) else event.process
        base: Cells = {"process": signed(process), "idx": counts[process], "n": n, "t": event.at}
        if isinstance(event, Submitted | DeliveredBatch):
            counts[process] += _add_messages(rows.messages, event, base)
        else:
            rows.control.append(base | _cells_from(event))
            counts[process] += 1
    return rows


def _add_messages(columns: dict[str, list[Any]], event: Submitted | DeliveredBatch, base: Cells) -> int:
    """One row per message; an empty batch has one row without a message. Returns the number of rows."""
    shared: Cells = base | {"kind": int(RowKind.SUBMITTED)}
    if isinstance(event, DeliveredBatch):
        shared |= {"kind": int(RowKind.DELIVERED), **_ring("view", event.view), **_ring("ring", event.ring)}
    batch = [_message(message) for message in event.messages] or [{}]
    for name, column in columns.items():
        if name == "idx":
            column.extend(range(base["idx"], base["idx"] + len(batch)))
        elif name in shared:
            column.extend([shared[name]] * len(batch))
        else:
            column.extend([cells.get(name) for cells in batch])
    return len(batch)


def _message(message: SubmittedMessage | DeliveredMessage) -> Cells:
    cells: Cells = {"digest": message.digest, "service": int(message.service), "size": message.size}
    if message.message is not None:
        process, sender, counter = message.message
        cells |= {"sender_process": signed(process), "sender": sender, "counter": signed(counter)}
    if isinstance(message, DeliveredMessage):
        cells |= {"seq": signed(message.seq), "slot": message.slot}
    return cells


def _ring(name: str, ring: RingId) -> Cells:
    return {f"{name}_seq": signed(ring.seq), f"{name}_rep": signed(ring.representative)}


def _processes(processes: Sequence[ProcessId]) -> list[int]:
    return [signed(process) for process in processes]


ControlEvent = Started | Installed | Crashed | Departed | Noted | Healed | Saturated | Ended


def _cells_from(event: ControlEvent) -> Cells:
    match event:
        case Started(promises=promises):
            cells = {"name": promises.engine, "text": _promises_text(promises), "flag": event.kept_storage}
            return {"kind": RowKind.STARTED, **cells}
        case Installed(view=view):
            return _view_cells(view)
        case Crashed():
            return {"kind": RowKind.CRASHED}
        case Departed():
            return {"kind": RowKind.DEPARTED}
        case Noted(note=note):
            return _note_cells(note)
        case Healed():
            return {"kind": RowKind.HEALED, "members": _processes(event.alive)}
        case Saturated():
            return {"kind": RowKind.SATURATED, "members": _processes(event.senders), "flag": event.begins}
        case Ended():
            return {"kind": RowKind.ENDED, "flag": event.complete}
        case _:
            assert_never(event)


def _promises_text(promises: Promises) -> str:
    return json.dumps(
        {
            "promises": sorted(promise.value for promise in promises.promises),
            "services": sorted(int(service) for service in promises.services),
            "message_size_max": promises.message_size_max,
        }
    )


def _view_cells(view: View) -> Cells:
    is_regular = view.kind is ViewKind.REGULAR
    return {
        "kind": RowKind.REGULAR_VIEW if is_regular else RowKind.TRANSITIONAL_VIEW,
        **_ring("view", view.id),
        **_ring("previous", view.previous),
        **_ring("ring", view.position.ring),
        "seq": signed(view.position.seq),
        "slot": view.position.slot,
        "members": _processes(view.members),
        "transitional": _processes(view.transitional),
        "reason": int(view.reason),
    }


_VISITED = ("round", "seq", "aru", "my_aru", "sent", "retransmitted", "requested")


def _note_cells(note: Note) -> Cells:
    match note:
        case Moved():
            reason = None if note.reason is None else int(note.reason)
            named = {"name": note.origin, "target": note.target, "text": note.text}
            return {"kind": RowKind.MOVED, "reason": reason, **named}
        case Visited():
            numbers = {name: signed(getattr(note, name)) for name in _VISITED}
            return {"kind": RowKind.VISITED, **_ring("ring", note.ring), **numbers}
        case Ignored():
            return {"kind": RowKind.IGNORED, "name": note.what, "text": note.why}
        case Dropped():
            return {"kind": RowKind.DROPPED, "text": note.why}
        case Occurred():
            about = None if note.process is None else signed(note.process)
            return {"kind": RowKind.OCCURRED, "name": note.what.value, "count": note.count, "about": about}
        case _:
            assert_never(note)


# From rows to events


def events_from(rows: Rows) -> list[Event]:
    """ValueError, KeyError or TypeError when the rows are not those of a history. Messages come sorted by (n, idx)."""
    numbered = [(cells["n"], _event_from(cells)) for cells in rows.control]
    numbered.extend(_batches_from(rows.messages))
    numbered.sort(key=lambda pair: pair[0])
    if any(number != n for n, (number, _) in enumerate(numbered)):
        raise ValueError("events are missing or numbered twice")
    return [event for _, event in numbered]


def _batches_from(columns: Mapping[str, list[Any]]) -> Iterable[tuple[int, Event]]:
    numbers = columns["n"]
    rows = list(zip(*(columns[name] for name in MESSAGE_COLUMNS), strict=True))
    start = 0
    for end in range(1, len(rows) + 1):
        if end == len(rows) or numbers[end] != numbers[start]:
            yield numbers[start], _batch_from(rows[start:end])
            start = end


def _batch_from(rows: list[tuple[Any, ...]]) -> Event:
    process, _, _, at, kind, view_seq, view_rep, ring_seq, ring_rep, *_ = rows[0]
    filled = [row for row in rows if row[14] is not None]  # an empty batch has a row without a digest
    whose = Instant(at), ProcessId(unsigned(process))
    if kind == RowKind.SUBMITTED:
        return Submitted(*whose, tuple(_submitted_from(row) for row in filled))
    view, ring = _ring_from(view_seq, view_rep), _ring_from(ring_seq, ring_rep)
    return DeliveredBatch(*whose, view, ring, tuple(_delivered_from(row) for row in filled))


def _message_id_from(row: tuple[Any, ...]) -> MessageId | None:
    process, sender, counter = row[11:14]
    return None if process is None else MessageId(ProcessId(unsigned(process)), sender, unsigned(counter))


def _submitted_from(row: tuple[Any, ...]) -> SubmittedMessage:
    message = _message_id_from(row)
    if message is None:
        raise ValueError("a submission without identity")
    return SubmittedMessage(message, *row[14:17])


def _delivered_from(row: tuple[Any, ...]) -> DeliveredMessage:
    return DeliveredMessage(_message_id_from(row), *row[14:17], unsigned(row[9]), row[10])


def _ring_from(seq: int, representative: int) -> RingId:
    return RingId(unsigned(seq), ProcessId(unsigned(representative)))


def _processes_from(numbers: Iterable[int]) -> tuple[ProcessId, ...]:
    return tuple(ProcessId(unsigned(number)) for number in numbers)


def _event_from(cells: Cells) -> Event:
    at, process = Instant(cells["t"]), ProcessId(unsigned(cells["process"]))
    match RowKind(cells["kind"]):
        case RowKind.STARTED:
            return Started(at, process, _promises_from(cells), cells["flag"])
        case RowKind.REGULAR_VIEW:
            return Installed(at, process, _view_from(cells, ViewKind.REGULAR))
        case RowKind.TRANSITIONAL_VIEW:
            return Installed(at, process, _view_from(cells, ViewKind.TRANSITIONAL))
        case RowKind.CRASHED:
            return Crashed(at, process)
        case RowKind.DEPARTED:
            return Departed(at, process)
        case RowKind.HEALED:
            return Healed(at, _processes_from(cells["members"]))
        case RowKind.SATURATED:
            return Saturated(at, _processes_from(cells["members"]), cells["flag"])
        case RowKind.ENDED:
            return Ended(at, cells["flag"])
        case kind:
            return Noted(at, process, _note_from(kind, cells))


def _promises_from(cells: Cells) -> Promises:
    known = json.loads(cells["text"])
    promises = frozenset(Promise(name) for name in known["promises"])
    services = frozenset(Service(number) for number in known["services"])
    return Promises(cells["name"], promises, services, known["message_size_max"])


def _view_from(cells: Cells, kind: ViewKind) -> View:
    return View(
        kind=kind,
        id=_ring_from(cells["view_seq"], cells["view_rep"]),
        members=_processes_from(cells["members"]),
        previous=_ring_from(cells["previous_seq"], cells["previous_rep"]),
        transitional=_processes_from(cells["transitional"]),
        reason=ChangeReason(cells["reason"]),
        position=Position(_ring_from(cells["ring_seq"], cells["ring_rep"]), Seq(unsigned(cells["seq"])), cells["slot"]),
    )


def _note_from(kind: RowKind, cells: Cells) -> Note:
    match kind:
        case RowKind.MOVED:
            reason = None if cells["reason"] is None else ChangeReason(cells["reason"])
            return Moved(cells["name"], cells["target"], reason, cells["text"])
        case RowKind.VISITED:
            ring = _ring_from(cells["ring_seq"], cells["ring_rep"])
            return Visited(ring, *(unsigned(cells[name]) for name in _VISITED))
        case RowKind.IGNORED:
            return Ignored(cells["name"], cells["text"])
        case RowKind.DROPPED:
            return Dropped(cells["text"])
        case RowKind.OCCURRED:
            about = None if cells["about"] is None else ProcessId(unsigned(cells["about"]))
            return Occurred(Occurrence(cells["name"]), cells["count"], about)
        case _:
            raise ValueError(f"a row of kind {kind} among the control events")
