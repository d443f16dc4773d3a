"""From events to the rows that `columns.py` describes. Pure; `from_rows.py` is the way back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, assert_never

from ordercast.model.configuration import Configuration, ConfigurationKind
from ordercast.model.ids import NOBODY, ConfigurationId, ProcessId
from ordercast.model.promises import Promises
from ordercast.trace.columns import Cells, MessageRow, RowKind, Rows, signed
from ordercast.trace.note_rows import note_cells
from ordercast.trace.records import (
    Crashed,
    DeliveredBatch,
    DeliveredMessage,
    Departed,
    Ended,
    Event,
    Healed,
    Installed,
    Noted,
    Saturated,
    Started,
    StorageTurned,
    Submitted,
    SubmittedMessage,
    Unrecorded,
    Wanted,
)


def rows_from(events: Iterable[Event], first: int = 0, counts: dict[ProcessId, int] | None = None) -> Rows:
    """`first` is the number of the first event; `counts` the rows there are of each process, and is kept up to date."""
    rows = Rows()
    counts = {} if counts is None else counts
    for n, event in enumerate(events, first):
        if isinstance(event, Submitted | DeliveredBatch):
            idx = counts.get(event.process, 0)
            batch = list(_message_rows(event, idx, n))
            counts[event.process] = idx + len(batch)
            rows.messages += batch
            continue
        process = NOBODY if isinstance(event, Healed | Saturated | Ended) else event.process
        idx = counts.get(process, 0)
        base: Cells = {"process": signed(process), "idx": idx, "n": n, "t": event.at}
        rows.control.append(base | _cells_from(event))
        counts[process] = idx + 1
    return rows


def _message_rows(event: Submitted | DeliveredBatch, idx: int, n: int) -> Iterator[MessageRow]:
    """One row per message; an empty batch has one row without a message."""
    process, at = signed(event.process), event.at
    places: tuple[int | None, ...]
    rows: list[tuple[Any, ...]]
    if isinstance(event, Submitted):
        kind, places = int(RowKind.SUBMITTED), (None, None, None, None)
        goal = _destinations(event)
        rows = [(None, None, *_identity(message), goal) for message in event.messages]
    else:
        kind, places = int(RowKind.DELIVERED), (*_signed_pair(event.configuration), *_signed_pair(event.origin))
        rows = [(signed(message.number), message.slot, *_identity(message)) for message in event.messages]
    for offset, row in enumerate(rows):
        yield MessageRow(process, idx + offset, n, at, kind, *places, *row)
    if not rows:
        yield MessageRow(process, idx, n, at, kind, *places)._replace(destinations=_destinations(event))


def _destinations(event: Submitted | DeliveredBatch) -> tuple[str, ...] | None:
    return (event.destinations or None) if isinstance(event, Submitted) else None


def _identity(message: SubmittedMessage | DeliveredMessage) -> tuple[Any, ...]:
    """From `sender_process` to `size`."""
    if message.message is None:
        return None, None, None, message.digest, int(message.service), message.size
    process, sender, counter = message.message
    return signed(process), sender, signed(counter), message.digest, int(message.service), message.size


def _signed_pair(pair: ConfigurationId) -> tuple[int, int]:
    return signed(pair.seq), signed(pair.representative)


def _pair(name: str, pair: ConfigurationId) -> Cells:
    seq, representative = _signed_pair(pair)
    return {f"{name}_seq": seq, f"{name}_rep": representative}


def _processes(processes: Sequence[ProcessId]) -> list[int]:
    return [signed(process) for process in processes]


ControlEvent = (
    Started | Installed | Crashed | Departed | Noted | Healed | Saturated | Ended | Unrecorded | StorageTurned | Wanted
)


def _cells_from(event: ControlEvent) -> Cells:
    match event:
        case Started(promises=promises):
            cells = {"name": promises.engine, "text": _promises_text(promises), "flag": event.kept_storage}
            return {"kind": RowKind.STARTED, **cells}
        case Installed(configuration=view):
            return _view_cells(view)
        case Crashed():
            return {"kind": RowKind.CRASHED}
        case Departed():
            return {"kind": RowKind.DEPARTED}
        case Noted(note=note):
            return note_cells(note)
        case Healed():
            return {"kind": RowKind.HEALED, "members": _processes(event.alive)}
        case Saturated():
            return {"kind": RowKind.SATURATED, "members": _processes(event.senders), "flag": event.begins}
        case Ended():
            return {"kind": RowKind.ENDED, "flag": event.complete}
        case Unrecorded():
            return {"kind": RowKind.UNRECORDED, "name": event.gap.value, "text": event.why}
        case StorageTurned():
            return {"kind": RowKind.STORAGE_TURNED, "flag": event.in_use}
        case Wanted():
            return {"kind": RowKind.WANTED, "destinations": event.destinations, "flag": event.begins}
        case _:
            assert_never(event)


def _promises_text(promises: Promises) -> str:
    return json.dumps(
        {
            "promises": sorted(promise.value for promise in promises.promises),
            "services": sorted(int(service) for service in promises.services),
            "message_size_max": promises.message_size_max,
            "early": sorted(int(service) for service in promises.early),
            "prunes": promises.prunes,
            "groups": sorted(promise.value for promise in promises.groups),
            "replicas": sorted(promise.value for promise in promises.replicas),
        }
    )


def _view_cells(view: Configuration) -> Cells:
    is_regular = view.kind is ConfigurationKind.REGULAR
    return {
        "kind": RowKind.REGULAR_VIEW if is_regular else RowKind.TRANSITIONAL_VIEW,
        **_pair("configuration", view.id),
        **_pair("previous", view.previous),
        **_pair("origin", view.position.origin),
        "number": signed(view.position.number),
        "slot": view.position.slot,
        "members": _processes(view.members),
        "transitional": _processes(view.transitional),
        "reason": int(view.reason),
    }
