"""The events of a history, as drivers record them and checkers read them. Pure.

A history is a sequence of events in the order in which they happened (simulation), or a merge of per-process sequences
in which each process's own order is kept (live). Every event names the process and the time.

Identity comes from outside the engine: the application stamps each payload with (process, sender, counter); the
recorder writes this and a digest of the bytes at submission, and reads both again from the delivered bytes. Ring, seq
and slot of a delivery are the engine's own statement: evidence to be judged, not identity.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass
from typing import NamedTuple

from ordercast.model.ids import Instant, ProcessId, RingId
from ordercast.model.notes import Note
from ordercast.model.promises import Promises
from ordercast.model.view import View

_STAMP = struct.Struct(">QIQ")
STAMP_SIZE = _STAMP.size


class MessageId(NamedTuple):
    """Who sent it, and the how-many-eth of that sender it is (from 1)."""

    process: ProcessId
    sender: int
    counter: int


def stamped(message: MessageId, filler: bytes) -> bytes:
    """A payload that says who it is."""
    return _STAMP.pack(*message) + filler


def message_id_of(data: bytes) -> MessageId | None:
    """The identity stamped into a payload; None when it is too short to carry one."""
    return MessageId._make(_STAMP.unpack_from(data)) if len(data) >= STAMP_SIZE else None


def digest_of(data: bytes) -> int:
    """63 bits of a cryptographic hash: fits a signed column."""
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "big") >> 1


class SubmittedMessage(NamedTuple):
    message: MessageId
    digest: int
    service: int
    size: int


class DeliveredMessage(NamedTuple):
    message: MessageId | None  # None: the bytes carry no identity at all
    digest: int
    service: int
    size: int
    seq: int
    slot: int


@dataclass(frozen=True, slots=True)
class Started:
    """A process begins its life. `kept_storage` tells a restart that remembers from one that lost its disk."""

    at: Instant
    process: ProcessId
    promises: Promises
    kept_storage: bool = True


@dataclass(frozen=True, slots=True)
class Submitted:
    """The engine accepted these messages, in this order."""

    at: Instant
    process: ProcessId
    messages: tuple[SubmittedMessage, ...]


@dataclass(frozen=True, slots=True)
class DeliveredBatch:
    """These messages of `ring` were delivered, in this order, while the configuration was `view`."""

    at: Instant
    process: ProcessId
    view: RingId
    ring: RingId
    messages: tuple[DeliveredMessage, ...]


@dataclass(frozen=True, slots=True)
class Installed:
    at: Instant
    process: ProcessId
    view: View


@dataclass(frozen=True, slots=True)
class Crashed:
    """The process ended without a word: it fails, in the papers' sense."""

    at: Instant
    process: ProcessId


@dataclass(frozen=True, slots=True)
class Departed:
    """The process left in order."""

    at: Instant
    process: ProcessId


@dataclass(slots=True)
class Noted:
    """A note of the engine. (Not frozen: these are most of a history.)"""

    at: Instant
    process: ProcessId
    note: Note


@dataclass(frozen=True, slots=True)
class Healed:
    """From here on the network is whole, nobody crashes, and `alive` are all that run. Nothing is owed before it."""

    at: Instant
    alive: tuple[ProcessId, ...]


@dataclass(frozen=True, slots=True)
class Saturated:
    """From here on (`begins`) or up to here every one of `senders` always has something to send."""

    at: Instant
    senders: tuple[ProcessId, ...]
    begins: bool


@dataclass(frozen=True, slots=True)
class Ended:
    """The recording ends. `complete` is false when it was cut short, so that nothing may be concluded from absence."""

    at: Instant
    complete: bool = True


Event = Started | Submitted | DeliveredBatch | Installed | Crashed | Departed | Noted | Healed | Saturated | Ended
