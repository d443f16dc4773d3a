"""What an engine asks its driver to do: a closed union, carried out in the order of the list.

Each effect carries a batch. `Deliver.messages` holds plain tuples, not objects, because their number is the number of
messages: see `Delivered` for the fields.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from ordercast.model.ids import MAIN, Attachment, Duration, Position, ProcessId, RingId, Seq
from ordercast.model.notes import Note
from ordercast.model.view import View

# (seq, slot, originator, sender, service, data): position in the order (see `position_of`), the process that sent it,
# the client within that process, the service asked for (a `Service` number), and the bytes.
Delivered = tuple[Seq, int, ProcessId, int, int, bytes]


@dataclass(slots=True)
class Broadcast:
    """Multicast these packets on the data lane, in order."""

    packets: list[bytes]
    attachment: Attachment = MAIN


@dataclass(slots=True)
class SendTo:
    """Unicast one packet on the token lane."""

    process: ProcessId
    packet: bytes
    attachment: Attachment = MAIN


@dataclass(slots=True)
class Deliver:
    """Messages of `ring`, in order, delivered in the configuration `view`. `ordered` tells agreed or safe delivery from
    early delivery of a weaker service."""

    view: RingId
    ring: RingId
    messages: list[Delivered]
    ordered: bool = True


@dataclass(slots=True)
class InstallView:
    view: View


@dataclass(slots=True)
class Persist:
    """Write, sync, then call `persisted(key)`. What depends on it is sent only then."""

    key: str
    value: bytes


@dataclass(slots=True)
class Room:
    """`submit` will take this many bytes again."""

    size: int


class AlarmKind(Enum):
    PAUSED = "paused"
    CONFIGURATION_MISMATCH = "configuration mismatch"
    FAILED_TO_RECEIVE = "failed to receive"
    BAD_PACKET = "bad packet"


@dataclass(slots=True)
class Alarm:
    """Something that a person should know, in one sentence."""

    kind: AlarmKind
    text: str
    process: ProcessId | None = None
    duration: Duration | None = None


@dataclass(slots=True)
class Left:
    """The orderly leave is complete: nothing more will come from this engine."""


@dataclass(slots=True)
class Record:
    """A trace entry: the only voice of a pure layer."""

    note: Note


Effect = Broadcast | SendTo | Deliver | InstallView | Persist | Room | Alarm | Left | Record


def position_of(deliver: Deliver, message: Delivered) -> Position:
    return Position(deliver.ring, message[0], message[1])
