"""What a node looks like at one moment, as plain values: for `/status`, `/metrics`, `ordercast status` and the log.

`status_of` only reads. Rates need two moments: a `Meter` remembers the earlier ones. Times of the node's own clock
become times of day here, so that they can be compared with the logs of other hosts.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime, timedelta
from typing import Protocol

from ordercast.daemon.config.node import NodeConfig, TraceLevel, Transport
from ordercast.daemon.status.alarms import KeptAlarm, text_of
from ordercast.daemon.status.counters import Counters, SocketCounters
from ordercast.daemon.status.parts import (
    AlarmStatus,
    ClientsStatus,
    ConfigurationStatus,
    Flow,
    Identity,
    LaneStatus,
    MemberStatus,
    NetworkStatus,
    NodesStatus,
    Pauses,
    Rates,
    Refusal,
    SealingStatus,
    SocketsStatus,
    Status,
    StorageStatus,
    Totals,
    TraceStatus,
    ViewChange,
)
from ordercast.daemon.status.places import everybody, id_text
from ordercast.daemon.status.sections import SECTIONS
from ordercast.model.configuration import ChangeReason, Configuration, ConfigurationKind
from ordercast.model.ids import SECOND, Instant, ProcessId, node_of
from ordercast.networks.layer import Networks
from ordercast.order.engine import ObservedEngine
from ordercast.order.neighbours import OTHER_ENGINE
from ordercast.wire.head import SEALED

RATE_SPAN_NS = 5 * SECOND
SAMPLES_MAX = 64


# What is read


class ObservedLane(Protocol):
    @property
    def where(self) -> str: ...
    @property
    def counters(self) -> SocketCounters: ...
    @property
    def receive_buffer_size(self) -> int: ...
    @property
    def send_buffer_size(self) -> int: ...
    def kernel_drops(self) -> int: ...


class ObservedSockets(Protocol):
    @property
    def data(self) -> ObservedLane: ...
    @property
    def token(self) -> ObservedLane: ...
    @property
    def link(self) -> ObservedLane | None: ...
    @property
    def segmentation(self) -> bool: ...
    @property
    def transport(self) -> Transport: ...


class ObservedWide(Protocol):
    @property
    def link(self) -> ObservedLane: ...


class ObservedReading(Protocol):
    @property
    def size(self) -> int: ...


class ObservedNode(Protocol):
    """The part of `Node` that a status is made of."""

    @property
    def is_behind(self) -> bool: ...

    @property
    def config(self) -> NodeConfig: ...
    @property
    def process(self) -> ProcessId: ...
    @property
    def engine(self) -> ObservedEngine: ...
    @property
    def counters(self) -> Counters: ...
    @property
    def sockets(self) -> ObservedSockets: ...
    @property
    def networks(self) -> Sequence[ObservedSockets]: ...
    @property
    def wide(self) -> ObservedWide | None: ...
    @property
    def layers(self) -> Sequence[Networks | None]: ...
    @property
    def reading(self) -> ObservedReading: ...
    @property
    def started_at(self) -> Instant: ...
    @property
    def loop_lag_ns(self) -> int: ...
    @property
    def trace_error(self) -> str | None: ...
    def clients_status(self) -> ClientsStatus: ...
    def storage_status(self) -> StorageStatus: ...
    def sealing_status(self) -> SealingStatus: ...
    def now(self) -> Instant: ...
    def name_of(self, process: ProcessId) -> str: ...


# Making it


@dataclass(slots=True)
class Meter:
    """Remembers totals, so that a rate over the last few seconds can be told however often somebody asks."""

    _samples: deque[tuple[Instant, Totals]] = field(default_factory=lambda: deque(maxlen=SAMPLES_MAX))

    def observe(self, now: Instant, totals: Totals) -> Rates:
        samples = self._samples
        while len(samples) > 1 and now - samples[1][0] >= RATE_SPAN_NS:
            samples.popleft()
        since, before = samples[0] if samples else (now, totals)
        if not samples or now - samples[-1][0] >= RATE_SPAN_NS // (SAMPLES_MAX // 2):
            samples.append((now, totals))
        span = now - since
        if span <= 0:
            return Rates()
        names = [item.name for item in fields(Totals)]
        return Rates(span, **{name: (getattr(totals, name) - getattr(before, name)) * SECOND / span for name in names})


def _alarm(at: datetime, entry: KeptAlarm, node: ObservedNode) -> AlarmStatus:
    return AlarmStatus(at, entry.alarm.kind.value, text_of(entry.alarm, node.name_of), entry.count)


def status_of(node: ObservedNode, meter: Meter | None = None) -> Status:
    """What it looks like now; with a meter, rates since earlier calls with the same one."""
    now, today, config, engine = node.now(), datetime.now(UTC), node.config, node.engine
    totals = _totals(node)

    def time_of(at: Instant) -> datetime:
        return today - timedelta(microseconds=(now - at) / 1000)

    counters, room = node.counters, engine.room()
    return Status(
        at=today,
        uptime_ns=now - node.started_at,
        me=Identity(config.name, node_of(node.process), node.process, config.sizes.cluster),
        engine=config.engine,
        configuration=_configuration(node),
        totals=totals,
        rates=meter.observe(now, totals) if meter is not None else Rates(),
        section=SECTIONS[config.engine](node),
        flow=Flow(
            config.sizes.queue_size_max - room,
            room,
            node.reading.size,
            node.is_behind,
            engine.stalled(now),
        ),
        clients=node.clients_status(),
        sockets=_sockets(node),
        networks=_networks(node),
        nodes=_nodes(node, now),
        pauses=Pauses(
            counters.pauses,
            counters.longest_pause_ns,
            None if counters.last_pause_at is None else time_of(counters.last_pause_at),
            node.loop_lag_ns,
        ),
        trace=_trace(node),
        storage=node.storage_status(),
        sealing=node.sealing_status(),
        refused=refusals(counters),
        occurred=dict(sorted(counters.occurred.items())),
        moves=dict(sorted(counters.moves.items())),
        views=tuple(_views(node, [(time_of(at), view) for at, view in counters.views])),
        latency=counters.latency.told(),
        everybody=everybody(node, now),
        alarms=tuple(_alarm(time_of(entry.at), entry, node) for entry in counters.alarms.entries()),
    )


def _totals(node: ObservedNode) -> Totals:
    counters, stats, lanes = (
        node.counters,
        node.engine.stats,
        [lane for network in node.networks for _, lane in _lanes(network)],
    )
    return Totals(
        counters.messages_submitted,
        counters.messages_delivered,
        counters.bytes_submitted,
        counters.bytes_delivered,
        sum(lane.counters.packets_sent for lane in lanes),
        sum(lane.counters.packets_received for lane in lanes),
        stats.packets_retransmitted,
        stats.packets_requested,
    )


def _configuration(node: ObservedNode) -> ConfigurationStatus:
    configuration, config = node.engine.configuration, node.config
    here = {node_of(process) for process in configuration.members}
    addresses = {peer.node: peer.address for peer in (config.peers or map(config.peer, here))}
    members = tuple(
        MemberStatus(
            name=node.name_of(process),
            node=node_of(process),
            address=addresses.get(node_of(process), ""),
            is_me=process == node.process,
            is_representative=process == configuration.representative,
        )
        for process in configuration.members
    )
    roster = node.engine.roster
    listed = () if config.is_local or roster is None else roster.entries
    everybody = config.peers if config.rings else listed
    missing = tuple(entry.name for entry in everybody if entry.node not in here)
    return ConfigurationStatus(
        id=id_text(configuration.id, node),
        state=node.engine.state_name,
        is_ready=node.engine.is_ready,
        representative=node.name_of(configuration.representative),
        members=members,
        missing=missing,
    )


def _lanes(network: ObservedSockets) -> tuple[tuple[str, ObservedLane], ...]:
    lanes = ("token", network.token), ("data", network.data)
    return lanes if network.link is None else (*lanes, ("link", network.link))


def _lane(name: str, lane: ObservedLane) -> LaneStatus:
    sizes = lane.receive_buffer_size, lane.send_buffer_size
    return LaneStatus(name, lane.where, *sizes, lane.kernel_drops(), replace(lane.counters))


def _sockets(node: ObservedNode) -> SocketsStatus:
    sockets, asked = node.sockets, node.config.attachments[0].network.buffer_size
    far = () if node.wide is None else (_lane("link to other sites", node.wide.link),)
    lanes = tuple(
        _lane(f"{name} on {place}" if place else name, lane)
        for place, network in zip(node.config.places, node.networks, strict=True)
        for name, lane in _lanes(network)
    )
    return SocketsStatus(sockets.transport.value, sockets.segmentation, asked, lanes + far)


def _networks(node: ObservedNode) -> tuple[NetworkStatus, ...]:
    """Return the networks of rings that have several; nothing where each has one alone."""
    places = iter(zip(node.config.places, node.networks, strict=True))
    found: list[NetworkStatus] = []
    for layer in node.layers:
        states = layer.marks.states if layer is not None else [None]
        for number, (state, (name, sockets)) in enumerate(zip(states, places, strict=False)):
            if layer is not None and state is not None:
                found.append(NetworkStatus(name, state.value, _received(sockets), layer.stats.alarms[number]))
    return tuple(found)


def _nodes(node: ObservedNode, now: Instant) -> NodesStatus | None:
    roster = node.engine.roster
    if roster is None or node.config.is_local:
        return None
    names = tuple(entry.name for entry in roster.entries)
    differences = tuple(node.engine.roster_differences(now))
    return NodesStatus(roster.version, roster.is_ordered, names, differences, node.config.node not in roster)


def _received(network: ObservedSockets) -> int:
    return network.data.counters.packets_received + network.token.counters.packets_received


def _trace(node: ObservedNode) -> TraceStatus:
    trace = node.config.trace
    folder = None if trace.level is TraceLevel.OFF else str(trace.folder)
    return TraceStatus(trace.level.value, folder, node.trace_error)


def _views(node: ObservedNode, views: list[tuple[datetime, Configuration]]) -> Iterator[ViewChange]:
    before: tuple[ProcessId, ...] | None = None
    for at, view in views:
        yield view_change(node, at, view, before)
        if view.kind is ConfigurationKind.REGULAR:
            before = view.members


def view_change(
    node: ObservedNode, at: datetime, view: Configuration, before: tuple[ProcessId, ...] | None
) -> ViewChange:
    """`before`: the members of the last regular view, when that is known."""

    def names(processes: set[ProcessId]) -> set[str]:
        return {node.name_of(process) for process in processes}

    came, went = (
        (names(set(view.members) - set(before)), names(set(before) - set(view.members))) if before else ((), ())
    )
    restarted = set(came) & set(went)
    return ViewChange(
        at=at,
        kind=view.kind.value,
        id=id_text(view.id, node),
        members=tuple(node.name_of(process) for process in view.members),
        joined=tuple(sorted(set(came) - restarted)),
        gone=tuple(sorted(set(went) - restarted)),
        restarted=tuple(sorted(restarted)),
        reason="; ".join(filter(None, (view.reason.text, node.counters.remarks.get(view.id)))),
        is_leave=view.reason is ChangeReason.LEFT,
    )


def refusals(counters: Counters) -> dict[str, int]:
    """By kind, all of them: the engine's own sentences are too many to be labels."""
    kinds = Counter({kind.value: 0 for kind in Refusal})
    for why, count in counters.refused.items():
        kinds[refusal_of(why).value] += count
    return dict(kinds)


STALE = (
    "packets of a ring that is not known",
    "a link packet of one who is not a member",
    "a packet of another epoch of the link, or of another process",
    "a packet of a link that is not there",
)


def refusal_of(why: str) -> Refusal:
    if why.startswith("wire version"):
        return Refusal.OTHER_VERSION
    if why.startswith("another cluster's packet"):
        return Refusal.OTHER_CLUSTER
    if why == OTHER_ENGINE:
        return Refusal.OTHER_ENGINE
    if why.startswith(SEALED):
        return Refusal.SEALED
    if why in ("not an Ordercast packet", "shorter than a head", "an empty datagram"):
        return Refusal.STRANGER
    if why == "a node that is not on this node's list":
        return Refusal.UNLISTED
    return Refusal.STALE if why in STALE else Refusal.MALFORMED
