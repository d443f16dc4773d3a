"""The parts of a status: frozen values, and the forms in which programs and people read them. Pure.

`document()` is what `/status` serves: keys are only ever added to it.
"""

from __future__ import annotations

import platform
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from enum import Enum
from typing import Any

from ordercast import __version__
from ordercast.daemon.status.counters import SocketCounters
from ordercast.daemon.status.latency import LatencyStatus
from ordercast.daemon.status.sections import Section
from ordercast.model.configuration import ConfigurationKind
from ordercast.model.kernel import NAME
from ordercast.session.counters import CallbackCounters
from ordercast.wire.head import VERSION


@dataclass(frozen=True, slots=True)
class Identity:
    name: str
    node: int
    process: int  # node and incarnation in one number
    cluster: str
    version: str = __version__
    wire_version: int = VERSION
    python: str = platform.python_version()
    kernel: str = NAME  # what reads and builds packets: pure or compiled


@dataclass(frozen=True, slots=True)
class MemberStatus:
    name: str
    node: int
    address: str
    is_me: bool
    is_representative: bool


@dataclass(frozen=True, slots=True)
class ConfigurationStatus:
    """Who is together, by the word of the engine."""

    id: str  # seq and representative
    state: str  # of the engine, a word of its own
    is_ready: bool  # messages flow
    representative: str
    members: tuple[MemberStatus, ...]
    missing: tuple[str, ...]  # configured, and not a member


@dataclass(frozen=True, slots=True)
class Totals:
    """Numbers that rise."""

    messages_submitted: int
    messages_delivered: int
    bytes_submitted: int
    bytes_delivered: int
    packets_sent: int
    packets_received: int
    packets_retransmitted: int
    packets_requested: int


@dataclass(frozen=True, slots=True)
class Rates:
    """Per second, over the last few seconds."""

    over_ns: int = 0
    messages_submitted: float = 0.0
    messages_delivered: float = 0.0
    bytes_submitted: float = 0.0
    bytes_delivered: float = 0.0
    packets_sent: float = 0.0
    packets_received: float = 0.0
    packets_retransmitted: float = 0.0
    packets_requested: float = 0.0


@dataclass(frozen=True, slots=True)
class Flow:
    queue_size: int  # bytes accepted and not yet sent
    queue_room: int
    inbox_size: int  # bytes delivered and not yet taken by the application
    is_behind: bool  # so many that everybody's senders wait
    stalled: str | None = None  # why nothing may be sent although something waits, once that has lasted a second


@dataclass(frozen=True, slots=True)
class HoldStatus:
    """A client for which everybody in the cluster waits, as it has asked for and reads slowly."""

    client: str
    for_ns: int
    waiting_size: int


@dataclass(frozen=True, slots=True)
class ReplicatedStatus:
    """A replicated state, and who has a replica of it."""

    name: str
    replicas: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ClientsStatus:
    """Sessions that send and receive here, and the groups of the whole cluster."""

    sessions: int = 0  # clients, and the program that embeds the node
    groups: int = 0  # with members, here or elsewhere
    is_merging: bool = False  # daemons came together and tell each other who is in which group: nobody sends
    waiting_size: int = 0  # bytes that the sessions have not taken
    connected: int = 0  # sessions so far
    refused: int = 0  # connections that were sent away, or said something wrong
    too_slow: int = 0  # clients that were disconnected for it
    messages_dropped: int = 0  # for slow clients that had chosen that
    received_size: int = 0  # bytes of frames that are not whole yet
    requests_size: int = 0  # bytes that clients have sent and the engine has not taken
    memory_size: int = 0  # bytes kept for all clients: what is not taken, not whole, not sent yet
    memory_max: int = 0  # that may be; 0: no clients are served here
    memberships: int = 0  # groups that the clients here are in, each counted as often as somebody is in it
    strangers: int = 0  # connections that have not said who they are, or are being closed
    over_memory: int = 0  # clients that were disconnected, as all took too much memory and they the most
    held_too_long: int = 0  # clients that were disconnected, as everybody waited for them too long
    refusals: dict[str, int] = field(default_factory=dict)  # `refused` by reason
    insecure: dict[str, int] = field(default_factory=dict)  # connections that TLS refused, by reason
    denials: dict[str, int] = field(default_factory=dict)  # what clients had no right to, by right
    certificate_days: int | None = None  # until the daemon's certificate ends; None without one
    identities: dict[str, int] = field(default_factory=dict)  # sessions by who they are
    states: tuple[ReplicatedStatus, ...] = ()  # replicated states with replicas anywhere, the first hundred by name
    callback: CallbackCounters | None = None  # of the program that embeds the node, if it has given on_message
    holding: tuple[HoldStatus, ...] = ()  # for whom everybody waits now


@dataclass(frozen=True, slots=True)
class ViewChange:
    at: datetime
    kind: str
    id: str
    members: tuple[str, ...]
    joined: tuple[str, ...]
    gone: tuple[str, ...]
    restarted: tuple[str, ...]  # the same node, in a new life
    reason: str
    is_leave: bool  # nobody failed


@dataclass(frozen=True, slots=True)
class AlarmStatus:
    at: datetime  # of the last
    kind: str
    text: str
    count: int = 1  # as often about the same, within a minute


@dataclass(frozen=True, slots=True)
class Pauses:
    """Times when this process did not run."""

    count: int
    longest_ns: int
    last_at: datetime | None
    loop_lag_ns: int  # how late the event loop was lately


@dataclass(frozen=True, slots=True)
class LaneStatus:
    name: str
    address: str
    receive_buffer_size: int  # granted
    send_buffer_size: int
    kernel_drops: int  # packets that came and found the buffer full
    counters: SocketCounters


@dataclass(frozen=True, slots=True)
class SocketsStatus:
    transport: str
    segmentation: bool
    buffer_asked: int
    lanes: tuple[LaneStatus, ...]


@dataclass(frozen=True, slots=True)
class NetworkStatus:
    """One of several redundant networks."""

    name: str
    state: str  # good, on trial, faulty
    packets_received: int  # data and control, copies too
    marked: int  # how often it was found faulty


@dataclass(frozen=True, slots=True)
class NodesStatus:
    """The node list."""

    version: int
    is_ordered: bool  # made by `ordercast cluster add | remove`, not by a file
    names: tuple[str, ...]
    differences: tuple[str, ...]  # between the lists of other members and this one
    is_removed: bool  # this node is not on its own list any more


@dataclass(frozen=True, slots=True)
class NodePlace:
    """A node of the cluster as this one knows it: where its status is, and since when it is away."""

    name: str
    node: int
    status: str | None  # HOST:PORT; None: it serves none that can be asked from elsewhere
    is_member: bool
    away_ns: int | None = None  # None: it is a member, or was never seen
    last_view: str = ""  # in which it was seen
    why: str = ""  # it is away


class Refusal(Enum):
    """Why a packet was not taken."""

    STRANGER = "not an Ordercast packet"
    OTHER_CLUSTER = "another cluster"
    OTHER_ENGINE = "another engine"
    OTHER_VERSION = "another wire version"
    SEALED = "sealed, where this node has no key"
    UNLISTED = "not on the node list"
    STALE = "of a ring or link that is over, or not known yet"  # as changes bring it: nobody has to do anything
    MALFORMED = "malformed"


@dataclass(frozen=True, slots=True)
class TraceStatus:
    level: str
    folder: str | None
    error: str | None


@dataclass(frozen=True, slots=True)
class StorageStatus:
    """How stable storage fares."""

    folder: str | None = None  # None: nothing is kept
    is_used: bool = True  # False: the node went on without it
    error: str | None = None  # of the last write, if it failed
    free: float | None = None  # part of the file system that is free, where known


@dataclass(frozen=True, slots=True)
class SealingStatus:
    """Whether packets are sealed, with what, and what was refused for want of a seal."""

    is_sealed: bool = False  # there is a key file
    is_insecure: bool = False  # clear packets are meant
    used: int = 0  # number of the key; 0: packets go out in the clear
    next: int = 0  # the one that will be used once all accept it
    accepted: tuple[int, ...] = ()
    awaited: tuple[str, ...] = ()  # nodes that have not said that they accept it
    cipher: str = ""
    packets_sealed: int = 0
    packets_opened: int = 0
    refused: dict[str, int] = field(default_factory=dict)  # packets by reason


@dataclass(frozen=True, slots=True)
class Status:
    at: datetime
    uptime_ns: int
    me: Identity
    engine: str
    configuration: ConfigurationStatus
    totals: Totals
    rates: Rates
    flow: Flow
    section: Section  # what its engine alone has
    clients: ClientsStatus
    sockets: SocketsStatus
    pauses: Pauses
    trace: TraceStatus
    refused: dict[str, int]  # packets by reason
    occurred: dict[str, int]  # rare events of the engine
    moves: dict[str, int]  # between the engine's states
    views: tuple[ViewChange, ...]  # the latest last
    alarms: tuple[AlarmStatus, ...]
    networks: tuple[NetworkStatus, ...] = ()  # where there are several
    nodes: NodesStatus | None = None  # None where the cluster has no node list
    storage: StorageStatus = StorageStatus()
    sealing: SealingStatus = SealingStatus()
    everybody: tuple[NodePlace, ...] = ()  # all nodes that are known
    latency: tuple[LatencyStatus, ...] = ()  # from submission here to delivery here, by service
    warnings: tuple[str, ...] = ()  # what a person should look at, one sentence each

    def document(self) -> dict[str, Any]:
        """For JSON. The section of an engine has the engine's name."""
        document = _plain(asdict(self))
        assert isinstance(document, dict)
        document[self.engine] = document.pop("section")
        return document | self.section.as_before(document)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, datetime):
        return time_text(value)
    return round(value, 3) if isinstance(value, float) else value


def time_text(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def change_text(view: ViewChange) -> str:
    """`view 24.alpha of alpha beta, gamma is gone: a member left …`"""
    kind = "view" if view.kind == ConfigurationKind.REGULAR.value else f"{view.kind} view"
    parts = [f"{kind} {view.id} of {' '.join(view.members)}"]
    if view.kind == ConfigurationKind.REGULAR.value:
        gone = ("left", "left") if view.is_leave else ("is gone", "are gone")
        changes = ((view.joined, ("joined", "joined")), (view.gone, gone), (view.restarted, ("restarted", "restarted")))
        parts += [f"{' '.join(who)} {verbs[len(who) > 1]}" for who, verbs in changes if who]
    return f"{', '.join(parts)}: {view.reason}"
