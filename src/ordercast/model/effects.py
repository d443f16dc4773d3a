"""What an engine asks its driver to do: a closed union, carried out in the order of the list.

Each effect carries a batch. `Deliver.parcels` has one tuple per run of packets with the messages in columns: on the
data path nothing is made, called or looked up per message. Who wants messages one by one iterates over
`Deliver.messages()`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import count
from typing import NamedTuple

from ordercast.model.configuration import Configuration
from ordercast.model.ids import MAIN, Attachment, ConfigurationId, Duration, ProcessId
from ordercast.model.notes import Evidence, Note, Occurred, Occurrence
from ordercast.model.roster import Entry, Roster

# The messages of one packet, or of several in a row with equally many: (number of the first, originator, senders,
# services, payloads, messages in each packet, base slot). The process that sent them; for each message the client
# within that process, the service asked for (a `Service` number) and the bytes. With `Deliver.origin` this gives the
# `Places` of the messages.
Parcel = tuple[int, ProcessId, Sequence[int], Sequence[int], Sequence[bytes], int, int]

# Packets in a row: their bytes, and the size of each; the last one may be shorter.
Burst = tuple[bytes, int]

# Which of several redundant networks a packet goes out on. Engines know one; the layer below (`networks/`) chooses.
ONE_NETWORK = (0,)

# One message: (number, slot, originator, sender, service, data).
Delivered = tuple[int, int, ProcessId, int, int, bytes]


def packets_of(bursts: Sequence[Burst]) -> list[bytes]:
    """Return the packets one by one."""
    return [data[at : at + size] for data, size in bursts for at in range(0, len(data), size)]


@dataclass(slots=True)
class Broadcast:
    """Multicast these packets on the data lane, in order."""

    bursts: list[Burst]
    attachment: Attachment = MAIN
    networks: tuple[int, ...] = ONE_NETWORK  # a copy on each, in this order

    @property
    def packets(self) -> list[bytes]:
        """One by one."""
        return packets_of(self.bursts)

    def piece(self, bursts: list[Burst], networks: tuple[int, ...]) -> Broadcast:
        """Return the same with some of the packets, on some of the networks."""
        return Broadcast(bursts, self.attachment, networks)


@dataclass(slots=True)
class SendTo:
    """Unicast one packet on the token lane."""

    process: ProcessId
    packet: bytes
    attachment: Attachment = MAIN
    networks: tuple[int, ...] = ONE_NETWORK  # a copy on each, in this order
    is_vital: bool = False  # it was lost once, or its loss would be noticed late: worth more than one copy


class Endpoint(NamedTuple):
    """An address that no process is known at yet."""

    host: str  # IPv4 or IPv6 as digits; in the simulator the number of a host
    port: int


@dataclass(slots=True)
class Unicast:
    """Send these packets to one process, or to whoever is at an address, on the link lane, in order."""

    target: ProcessId | Endpoint
    bursts: list[Burst]
    attachment: Attachment = MAIN
    networks: tuple[int, ...] = ONE_NETWORK  # a copy on each, in this order

    @property
    def packets(self) -> list[bytes]:
        """One by one."""
        return packets_of(self.bursts)

    def piece(self, bursts: list[Burst], networks: tuple[int, ...]) -> Unicast:
        """Return the same with some of the packets, on some of the networks."""
        return Unicast(self.target, bursts, self.attachment, networks)


@dataclass(slots=True)
class Deliver:
    """Messages whose positions have this origin, in order, delivered in this configuration. `ordered` tells delivery in
    the order of all messages from early delivery, which an engine declares for some services (`Promises.early`)."""

    configuration: ConfigurationId
    origin: ConfigurationId
    parcels: list[Parcel]
    ordered: bool = True  # of an enclosed ring: False beyond a gap of its transitional configuration
    stamps: list[list[int]] | None = None  # for an enclosing engine that asks: of each parcel, those of its packets
    views_of: ConfigurationId | None = None  # which views of groups that these messages make name, if not this one

    def messages(self) -> Iterator[Delivered]:
        """One by one, in order."""
        for number, originator, senders, services, payloads, each, base in self.parcels:
            for place, sender, service, data in zip(count(), senders, services, payloads, strict=False):
                yield number + place // each, base + place % each, originator, sender, service, data

    def __len__(self) -> int:
        """How many messages."""
        return sum(len(parcel[4]) for parcel in self.parcels)


@dataclass(slots=True)
class Install:
    configuration: Configuration
    parts: bool = field(default=False, kw_only=True)  # it is transitional, and begins for groups as `Parted` names them
    is_uneven: bool = field(default=False, kw_only=True)  # it is regular: companions may come by other views of groups


@dataclass(slots=True)
class Persist:
    """Write, sync, then call `persisted(key)`. A write that fails is tried again until it succeeds; a newer one of the
    same key may take its place, and `persisted` is then called for both."""

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
    RECORDING_ENDED = "recording ended"
    SMALL_BUFFER = "small buffer"
    NARROW_PATH = "narrow path"  # to another node, for the packets that this one makes
    TWIN_NAMES = "twin names"
    NETWORK_FAULTY = "network faulty"
    NETWORK_REPAIRED = "network repaired"
    NO_GOOD_NETWORK = "no good network"
    UNLISTED_NODE = "unlisted node"
    NODE_LISTS_DIFFER = "node lists differ"
    REMOVED = "removed from the cluster"
    IMPLAUSIBLE = "implausible number"
    FORGED = "forged packet"
    WIRE_VERSION = "wire version"  # a node of this cluster runs a release whose packets cannot be read
    STALLED = "stalled"
    STALL_ENDED = "stall ended"
    GATEWAY_LOST = "gateway lost"  # of a network of rings
    GATEWAY_BACK = "gateway back"
    NETWORK_IN_TWO = "network in two"  # whole rings cannot be heard
    NETWORK_ONE_AGAIN = "network one again"
    RING_SILENT = "ring silent"  # delivery waits for it
    RING_HEARD = "ring heard"
    WRONG_SITE = "wrong site"  # two files put a node into different sites
    SITE_STUCK = "site stuck"  # it was left out, since all others waited for it
    STORAGE_FAILED = "storage failed"  # a write was refused; it is tried again
    WITHOUT_STORAGE = "without storage"  # a configuration was formed whose seq is not stored
    STORAGE_REPAIRED = "storage repaired"
    STORAGE_DAMAGED = "storage damaged"  # what an earlier life had stored cannot be read
    KEY_CHANGED = "key changed"  # packets are sealed with another key, or not any more
    PACKETS_REFUSED = "packets refused"  # for want of the right seal


@dataclass(slots=True)
class Alarm:
    """Something that a person should know, in one sentence."""

    kind: AlarmKind
    text: str
    process: ProcessId | None = None
    duration: Duration | None = None
    network: int | None = None  # which of several redundant networks
    evidence: Evidence | None = None  # what speaks against it
    domain: int | None = None  # which of several broadcast domains
    attachment: Attachment = MAIN  # whose ring, or whose networks, it speaks of

    @property
    def about(self) -> tuple[AlarmKind, ProcessId | None, int | None, int | None]:
        """What it is about: two alarms about the same are one that lasts."""
        return self.kind, self.process, self.network, self.domain


@dataclass(slots=True)
class Enlisted:
    """The roster of this process has changed, or whom it has to reach beside the nodes on it."""

    roster: Roster
    tolerated: tuple[Entry, ...] = ()  # dropped here, and not yet by all others
    attachment: Attachment = MAIN  # whose node list it is, of a process with several


@dataclass(slots=True)
class Subscribed:
    """What is sent to these groups from now on reaches this process: a join may be submitted. Answers
    `Engine.interest`."""

    groups: tuple[str, ...]


@dataclass(slots=True)
class Parted:
    """For these groups, or for all that are left, the transitional configuration begins here."""

    groups: tuple[str, ...] | None


@dataclass(slots=True)
class Placed:
    """Messages of this process, which it is not owed itself, have final positions with this origin, in the order of
    sending."""

    origin: ConfigurationId
    parcels: list[Parcel]


@dataclass(slots=True)
class Then:
    """Go on with the input, and carry out what comes of that in this place, before anything else is told to the engine.
    What was sent before it, a token above all, need not wait for the work."""

    work: Callable[[], list[Effect]]


@dataclass(slots=True)
class LeaveDone:
    """The orderly leave is complete: nothing more will come from this engine."""


@dataclass(slots=True)
class Record:
    """A trace entry: the only voice of a pure layer."""

    note: Note
    attachment: Attachment = MAIN  # whose ring, or whose networks, it speaks of


def noted(counts: Mapping[Occurrence, int]) -> Iterator[Record]:
    """Return a note of each that has happened, with how often."""
    return (Record(Occurred(what, int(count))) for what, count in counts.items() if count)


Act = (
    Broadcast
    | SendTo
    | Unicast
    | Deliver
    | Install
    | Persist
    | Room
    | Alarm
    | Enlisted
    | Subscribed
    | Parted
    | Placed
    | LeaveDone
    | Record
)
Effect = Act | Then


def in_order(effects: Sequence[Effect]) -> Iterator[Act]:
    """Yield what is to be carried out; what a `Then` brings is worked out when all before it has been."""
    for effect in effects:
        if isinstance(effect, Then):
            yield from in_order(effect.work())
        else:
            yield effect
