"""The events of a history, as drivers record them and checkers read them. Pure.

A history is a sequence of events in the order in which they happened (simulation), or a merge of per-process sequences
in which each process's own order is kept (live). Every event names the process and the time.

Identity comes from outside the engine: the application stamps each payload with (process, sender, counter); the
recorder writes this and a digest of the bytes at submission, and reads both again from the delivered bytes. Origin,
number and slot of a delivery are the engine's own statement: evidence to be judged, not identity.

Live nodes stamp at trace level full alone. A stamp is announced to the engine by the bit `STAMPED` of the sender, so
that nobody takes the bytes of a node that does not stamp for a stamp.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from ordercast.model.configuration import Configuration
from ordercast.model.ids import ConfigurationId, Instant, ProcessId
from ordercast.model.notes import Note
from ordercast.model.promises import Promises

_STAMP = struct.Struct(">QIQ")
STAMP_SIZE = _STAMP.size
STAMPED = 0x8000_0000  # in the engine's sender number: the payload begins with a stamp
UNSTAMPED = 0  # a counter that no stamp has
UNKNOWN = ("",)  # destinations that nobody wants: they are lost, so that nobody is known to be owed the message


class MessageId(NamedTuple):
    """Who sent it, and the how-many-eth of that sender it is (from 1). The counter `UNSTAMPED` says that a live node
    sent it without a stamp: then it is no identity, and process and sender are the engine's word."""

    process: ProcessId
    sender: int
    counter: int


def stamped(message: MessageId, filler: bytes) -> bytes:
    """A payload that says who it is."""
    return _STAMP.pack(*message) + filler


def message_id_of(data: bytes) -> MessageId | None:
    """The identity stamped into a payload; None when the bytes carry none."""
    if len(data) < STAMP_SIZE:
        return None
    message = MessageId._make(_STAMP.unpack_from(data))
    return None if message.counter == UNSTAMPED else message


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
    number: int
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
    """The engine accepted these messages, in this order. `destinations` names the groups and daemons that they are for;
    none: all processes must have them."""

    at: Instant
    process: ProcessId
    messages: tuple[SubmittedMessage, ...]
    destinations: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DeliveredBatch:
    """These messages of `origin` were delivered, in this order, in this `configuration`."""

    at: Instant
    process: ProcessId
    configuration: ConfigurationId
    origin: ConfigurationId
    messages: tuple[DeliveredMessage, ...]


@dataclass(frozen=True, slots=True)
class Installed:
    at: Instant
    process: ProcessId
    configuration: Configuration


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


class Gap(Enum):
    """What of a process is not in the record. The value is in files."""

    EVENTS = "events"  # some in the middle: nothing can be judged
    MESSAGES = "messages"  # all of them: it was recorded at level control
    TAIL = "tail"  # the last before it crashed: they had not reached the disk
    END = "end"  # all after some moment, and nobody knows whether it goes on


@dataclass(frozen=True, slots=True)
class Unrecorded:
    """Something of this process is not in the record, so that less may be concluded from absence. `why` is a sentence
    for people. Only the reader of live traces says so: a simulation records everything."""

    at: Instant
    process: ProcessId
    gap: Gap
    why: str


@dataclass(frozen=True, slots=True)
class StorageTurned:
    """The process said that it goes on without stable storage, or that it uses it again. What it installs in between
    does not bind its next life."""

    at: Instant
    process: ProcessId
    in_use: bool


@dataclass(frozen=True, slots=True)
class Wanted:
    """From here on the process gets whatever is sent to these destinations (`begins`), or may lack some of it again.
    Said of engines that prune alone."""

    at: Instant
    process: ProcessId
    destinations: tuple[str, ...]
    begins: bool


Event = (
    Started
    | Submitted
    | DeliveredBatch
    | Installed
    | Crashed
    | Departed
    | Noted
    | Healed
    | Saturated
    | Ended
    | Unrecorded
    | StorageTurned
    | Wanted
)
