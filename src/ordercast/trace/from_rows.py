"""From the rows that `columns.py` describes back to events. Pure.

ValueError, KeyError or TypeError when the rows are not those of a history.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import attrgetter

from ordercast.model.configuration import ChangeReason, Configuration, ConfigurationKind
from ordercast.model.ids import ConfigurationId, Instant, Position, ProcessId
from ordercast.model.promises import TOTALLY_ORDERED_GROUPS, GroupPromise, Promise, Promises, ReplicaPromise
from ordercast.model.service import Service
from ordercast.trace.columns import Cells, MessageRow, RowKind, Rows, unsigned
from ordercast.trace.note_rows import note_from
from ordercast.trace.records import (
    Crashed,
    DeliveredBatch,
    DeliveredMessage,
    Departed,
    Ended,
    Event,
    Gap,
    Healed,
    Installed,
    MessageId,
    Noted,
    Saturated,
    Started,
    StorageTurned,
    Submitted,
    SubmittedMessage,
    Unrecorded,
    Wanted,
)


def events_from(rows: Rows, first: int | None = 0) -> list[Event]:
    """The events in order, from the one numbered `first`; None: some were left out. The messages must come sorted by
    (n, idx)."""
    numbered = [(cells["n"], control_event_from(cells)) for cells in rows.control]
    numbered.extend(_batches_from(rows.messages))
    numbered.sort(key=lambda pair: pair[0])
    if first is not None and any(number != n for n, (number, _) in enumerate(numbered, first)):
        raise ValueError("events are missing or numbered twice")
    return [event for _, event in numbered]


def _batches_from(rows: list[MessageRow]) -> Iterator[tuple[int, Event]]:
    for n, batch in groupby(rows, key=attrgetter("n")):
        yield n, _batch_from(list(batch))


def _batch_from(rows: list[MessageRow]) -> Event:
    first = rows[0]
    filled = [row for row in rows if row.digest is not None]  # an empty batch has a row without a message
    at, process = Instant(first.t), ProcessId(unsigned(first.process))
    if first.kind == RowKind.SUBMITTED:
        return Submitted(at, process, tuple(_submitted_from(row) for row in filled), tuple(first.destinations or ()))
    configuration = _pair_from(first.configuration_seq, first.configuration_rep)
    origin = _pair_from(first.origin_seq, first.origin_rep)
    return DeliveredBatch(at, process, configuration, origin, tuple(_delivered_from(row) for row in filled))


def _message_id_from(row: MessageRow) -> MessageId | None:
    if row.sender_process is None:
        return None
    return MessageId(ProcessId(unsigned(row.sender_process)), _known(row.sender), unsigned(_known(row.counter)))


def _submitted_from(row: MessageRow) -> SubmittedMessage:
    message = _message_id_from(row)
    if message is None:
        raise ValueError("a submission has no identity")
    return SubmittedMessage(message, _known(row.digest), _known(row.service), _known(row.size))


def _delivered_from(row: MessageRow) -> DeliveredMessage:
    message, number = _message_id_from(row), unsigned(_known(row.number))
    what = _known(row.digest), _known(row.service), _known(row.size)
    return DeliveredMessage(message, *what, number, _known(row.slot))


def _known(number: int | None) -> int:
    if number is None:
        raise ValueError("a number is missing")
    return number


def _pair_from(seq: int | None, representative: int | None) -> ConfigurationId:
    return ConfigurationId(unsigned(_known(seq)), ProcessId(unsigned(_known(representative))))


def _processes_from(numbers: Iterable[int]) -> tuple[ProcessId, ...]:
    return tuple(ProcessId(unsigned(number)) for number in numbers)


def control_event_from(cells: Cells) -> Event:
    """The event of a row that is no message."""
    at, process = Instant(cells["t"]), ProcessId(unsigned(cells["process"]))
    match RowKind(cells["kind"]):
        case RowKind.STARTED:
            return Started(at, process, _promises_from(cells), cells["flag"])
        case RowKind.REGULAR_VIEW:
            return Installed(at, process, _view_from(cells, ConfigurationKind.REGULAR))
        case RowKind.TRANSITIONAL_VIEW:
            return Installed(at, process, _view_from(cells, ConfigurationKind.TRANSITIONAL))
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
        case RowKind.UNRECORDED:
            return Unrecorded(at, process, Gap(cells["name"]), cells["text"])
        case RowKind.STORAGE_TURNED:
            return StorageTurned(at, process, cells["flag"])
        case RowKind.WANTED:
            return Wanted(at, process, tuple(cells["destinations"]), cells["flag"])
        case kind:
            return Noted(at, process, note_from(kind, cells))


def _promises_from(cells: Cells) -> Promises:
    known = json.loads(cells["text"])
    promises = frozenset(Promise(name) for name in known["promises"])
    services = frozenset(Service(number) for number in known["services"])
    early = frozenset(Service(number) for number in known["early"])
    groups = frozenset(GroupPromise(name) for name in known.get("groups", TOTALLY_ORDERED_GROUPS))
    replicas = frozenset(ReplicaPromise(name) for name in known.get("replicas", ReplicaPromise))
    size = known["message_size_max"]
    shares_views = known.get("shares_views", True)
    return Promises(cells["name"], promises, services, size, early, known["prunes"], groups, replicas, shares_views)


def _view_from(cells: Cells, kind: ConfigurationKind) -> Configuration:
    return Configuration(
        kind=kind,
        id=_pair_from(cells["configuration_seq"], cells["configuration_rep"]),
        members=_processes_from(cells["members"]),
        previous=_pair_from(cells["previous_seq"], cells["previous_rep"]),
        transitional=_processes_from(cells["transitional"]),
        reason=ChangeReason(cells["reason"]),
        position=Position(
            _pair_from(cells["origin_seq"], cells["origin_rep"]), unsigned(cells["number"]), cells["slot"]
        ),
    )
