"""The digest of a run: the same on any machine, under any hash seed, and under any names.

It covers the values of a history, one after the other, and nothing of how they are held: no names of classes or fields,
no nesting, nothing that is absent or empty. Renaming moves no digest, and neither does a new field that a run leaves
empty; any step of any engine that differs moves it. Sentences for people are not covered: better wording is no other
run. Neither are occurrences that say more of one that is noted beside them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from operator import attrgetter
from types import NoneType
from typing import Any

from ordercast.model.notes import Ignored, Occurred, Occurrence, PacketDropped, Visited
from ordercast.model.promises import Promises
from ordercast.trace.client_records import ClientEvent
from ordercast.trace.records import DeliveredBatch, Event, Noted
from ordercast.trace.replica_records import ReplicaEvent

_SENTENCES = {"why", "text"}  # fields that are written for people
_CLOSER = {Occurrence.PROMISE_DIFFERS, Occurrence.GAP_AMONG_COMPANIONS}  # looks at what is covered
_visited = attrgetter("ring.seq", "round", "seq", "aru", "my_aru", "sent", "retransmitted", "requested")


@dataclass(slots=True)
class Digest:
    """Observes a history and tells its digest. Notes are covered too, since they show every step of every engine."""

    _hash: Any = field(default_factory=lambda: hashlib.blake2b(digest_size=16))

    def observe(self, event: Event | ClientEvent | ReplicaEvent) -> None:
        if isinstance(event, Noted) and isinstance(event.note, Occurred) and event.note.what in _CLOSER:
            return
        self._hash.update(repr(_values_of(event)).encode())

    def text(self) -> str:
        return str(self._hash.hexdigest())


def _values_of(event: Event | ClientEvent | ReplicaEvent) -> tuple[Any, ...]:
    """Return the values of an event in a row; the two kinds that are most of a history go the short way."""
    if isinstance(event, Noted) and type(event.note) is Visited:
        return event.at, event.process, *_visited(event.note)
    if isinstance(event, DeliveredBatch):  # a message's digest covers its bytes, and with them its identity
        messages = [number for message in event.messages for number in (message[1], message[4], message[5])]
        return event.at, event.process, *event.configuration, *event.origin, *messages
    values: list[Any] = []
    _spread((event,), values)
    return tuple(values)


def _spread(parts: Iterable[Any], values: list[Any]) -> None:
    """Append the values of these parts, and of the parts of each."""
    for part in parts:
        kind = type(part)
        if kind not in _PARTS:
            _PARTS[kind] = _parts_of(kind)
        parts_of = _PARTS[kind]
        if parts_of is None:
            values.append(part)
        else:
            _spread(parts_of(part), values)


def _parts_of(kind: type) -> Callable[[Any], Iterable[Any]] | None:
    """Return what tells the parts of a value of this type, none where the value has no parts."""
    if issubclass(kind, NoneType | Promises | Ignored | PacketDropped):
        return lambda value: ()
    if issubclass(kind, Enum):
        return lambda value: (value.value,)
    if issubclass(kind, tuple | list):
        return iter
    if is_dataclass(kind):
        names = [each.name for each in fields(kind) if each.name not in _SENTENCES]
        return attrgetter(*names) if len(names) > 1 else lambda value: [getattr(value, name) for name in names]
    return None


_PARTS: dict[type, Callable[[Any], Iterable[Any]] | None] = {}
