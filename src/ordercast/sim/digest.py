"""The digest of a run: the same on any machine, under any hash seed, and under any names.

It covers the values of a history, one after the other, and nothing of how they are held: no names of classes or fields,
no nesting, nothing that is absent or empty. Renaming moves no digest, and neither does a new field that a run leaves
empty; any step of any engine that differs moves it. Sentences for people are not covered: better wording is no other
run. Neither are occurrences that say more of one that is noted beside them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from enum import Enum
from operator import attrgetter
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
    return tuple(_leaves(event))


def _leaves(value: Any) -> Iterator[Any]:
    if value is None or isinstance(value, Promises | Ignored | PacketDropped):
        return
    if isinstance(value, Enum):
        yield value.value
    elif isinstance(value, tuple | list):
        for part in value:
            yield from _leaves(part)
    elif hasattr(value, "__dataclass_fields__"):
        for name in _names_of(type(value)):
            yield from _leaves(getattr(value, name))
    else:
        yield value


def _names_of(kind: type) -> list[str]:
    """Return the names of the fields that a digest covers, of a dataclass."""
    if kind not in _NAMES:
        _NAMES[kind] = [each.name for each in fields(kind) if each.name not in _SENTENCES]
    return _NAMES[kind]


_NAMES: dict[type, list[str]] = {}
