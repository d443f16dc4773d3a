"""A status in the text format of Prometheus. Pure; docs/guides/monitor.md has the same table, and a test compares them.

Units are seconds and bytes, as is the custom there. Labels take few values: lanes, kinds of refusal, names of states,
and the one client, or the few, for whom everybody waits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from ordercast.daemon.status.parts import LaneStatus, NetworkStatus, Status
from ordercast.daemon.status.sections import RingSection
from ordercast.model.ids import SECOND

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Samples = Iterable[tuple[dict[str, str], float]]  # labels and value


@dataclass(frozen=True, slots=True)
class Metric:
    name: str
    kind: Literal["counter", "gauge"]
    help: str
    read: Callable[[Status], Samples]


def _one(value: Callable[[Status], float]) -> Callable[[Status], Samples]:
    return lambda status: [({}, value(status))]


def _ring(value: Callable[[RingSection], float]) -> Callable[[Status], Samples]:
    """Return a sample of nodes whose engine is the ring."""
    return lambda status: [({}, value(status.section))] if status.engine == "ring" else []


def _lanes(value: Callable[[LaneStatus], float]) -> Callable[[Status], Samples]:
    return lambda status: [({"lane": lane.name}, value(lane)) for lane in status.sockets.lanes]


def _networks(value: Callable[[NetworkStatus], float]) -> Callable[[Status], Samples]:
    return lambda status: [({"network": network.name}, value(network)) for network in status.networks]


def _by(label: str, values: Callable[[Status], dict[str, int]]) -> Callable[[Status], Samples]:
    return lambda status: [({label: name}, count) for name, count in values(status).items()]


def _build(status: Status) -> Samples:
    me = status.me
    labels = {"version": me.version, "wire_version": str(me.wire_version), "node": me.name, "cluster": me.cluster}
    labels["engine"] = status.engine
    return [(labels, 1)]


METRICS = (
    Metric("build_info", "gauge", "Versions and names, as labels; always 1", _build),
    Metric("uptime_seconds", "gauge", "Since this node started", _one(lambda s: s.uptime_ns / SECOND)),
    Metric("operational", "gauge", "1 when messages flow, 0 during a change", _one(lambda s: s.configuration.is_ready)),
    Metric("members", "gauge", "Members of the configuration", _one(lambda s: len(s.configuration.members))),
    Metric("missing_members", "gauge", "Configured nodes outside of it", _one(lambda s: len(s.configuration.missing))),
    Metric(
        "messages_submitted_total", "counter", "Messages accepted here", _one(lambda s: s.totals.messages_submitted)
    ),
    Metric(
        "messages_delivered_total", "counter", "Messages delivered here", _one(lambda s: s.totals.messages_delivered)
    ),
    Metric("bytes_submitted_total", "counter", "Their bytes", _one(lambda s: s.totals.bytes_submitted)),
    Metric("bytes_delivered_total", "counter", "Their bytes", _one(lambda s: s.totals.bytes_delivered)),
    Metric("token_visits_total", "counter", "Visits of the token", _ring(lambda section: section.visits)),
    Metric(
        "token_rotation_seconds",
        "gauge",
        "Smoothed time of a rotation",
        _ring(lambda section: section.rotation_ns / SECOND),
    ),
    Metric(
        "packets_retransmitted_total",
        "counter",
        "Packets sent again by this node on request",
        _one(lambda s: s.totals.packets_retransmitted),
    ),
    Metric(
        "packets_requested_total",
        "counter",
        "Requests on the tokens forwarded here, of all nodes",
        _one(lambda s: s.totals.packets_requested),
    ),
    Metric(
        "limited_visits_total",
        "counter",
        "Visits on which flow control let this node send less than it had",
        _ring(lambda section: section.limited_visits),
    ),
    Metric("queue_bytes", "gauge", "Accepted and not yet sent", _one(lambda s: s.flow.queue_size)),
    Metric("queue_room_bytes", "gauge", "What would be accepted now", _one(lambda s: s.flow.queue_room)),
    Metric("inbox_bytes", "gauge", "Delivered and not yet taken by the application", _one(lambda s: s.flow.inbox_size)),
    Metric(
        "behind", "gauge", "1 when the application is so far behind that all wait", _one(lambda s: s.flow.is_behind)
    ),
    Metric(
        "stalled",
        "gauge",
        "1 when something has waited for a second while nothing may be sent",
        _one(lambda s: s.flow.stalled is not None),
    ),
    Metric("client_sessions", "gauge", "Clients that are connected here", _one(lambda s: s.clients.sessions)),
    Metric("groups", "gauge", "Groups with members anywhere", _one(lambda s: s.clients.groups)),
    Metric("client_waiting_bytes", "gauge", "Not yet taken by clients", _one(lambda s: s.clients.waiting_size)),
    Metric("client_sessions_total", "counter", "Clients so far", _one(lambda s: s.clients.connected)),
    Metric(
        "client_received_bytes",
        "gauge",
        "Of frames of clients that are not whole yet",
        _one(lambda s: s.clients.received_size),
    ),
    Metric(
        "client_requests_bytes",
        "gauge",
        "Sent by clients and not yet taken by the engine",
        _one(lambda s: s.clients.requests_size),
    ),
    Metric("client_memory_bytes", "gauge", "Kept for all clients", _one(lambda s: s.clients.memory_size)),
    Metric("client_memory_max_bytes", "gauge", "What may be kept for them", _one(lambda s: s.clients.memory_max)),
    Metric("client_memberships", "gauge", "Groups that clients here are in", _one(lambda s: s.clients.memberships)),
    Metric(
        "client_strangers",
        "gauge",
        "Connections that have not said who they are, or are being closed",
        _one(lambda s: s.clients.strangers),
    ),
    Metric(
        "client_refusals_total",
        "counter",
        "Connections sent away or closed, and requests refused, by reason",
        _by("reason", lambda s: s.clients.refusals),
    ),
    Metric("clients_too_slow_total", "counter", "Clients disconnected for it", _one(lambda s: s.clients.too_slow)),
    Metric(
        "clients_over_memory_total",
        "counter",
        "Clients disconnected as they took the most of too much memory",
        _one(lambda s: s.clients.over_memory),
    ),
    Metric(
        "clients_held_too_long_total",
        "counter",
        "Clients disconnected as everybody waited for them too long",
        _one(lambda s: s.clients.held_too_long),
    ),
    Metric(
        "client_holding_seconds",
        "gauge",
        "How long everybody has waited for a client, while it is so",
        lambda s: [({"client": hold.client}, hold.for_ns / SECOND) for hold in s.clients.holding],
    ),
    Metric(
        "client_messages_dropped_total",
        "counter",
        "Dropped for slow clients that had chosen that",
        _one(lambda s: s.clients.messages_dropped),
    ),
    Metric(
        "socket_packets_received_total", "counter", "Packets that came", _lanes(lambda s: s.counters.packets_received)
    ),
    Metric("socket_packets_sent_total", "counter", "Packets sent", _lanes(lambda s: s.counters.packets_sent)),
    Metric("socket_bytes_received_total", "counter", "Bytes that came", _lanes(lambda s: s.counters.bytes_received)),
    Metric("socket_bytes_sent_total", "counter", "Bytes sent", _lanes(lambda s: s.counters.bytes_sent)),
    Metric("socket_reads_total", "counter", "System calls that brought packets", _lanes(lambda s: s.counters.reads)),
    Metric("socket_sends_total", "counter", "System calls that sent packets", _lanes(lambda s: s.counters.sends)),
    Metric(
        "socket_send_failures_total",
        "counter",
        "Sends that the kernel refused",
        _lanes(lambda s: s.counters.send_failures),
    ),
    Metric(
        "socket_kernel_drops_total",
        "counter",
        "Packets that found the receive buffer full",
        _lanes(lambda s: s.kernel_drops),
    ),
    Metric(
        "socket_receive_buffer_bytes",
        "gauge",
        "Granted by the kernel",
        _lanes(lambda s: s.receive_buffer_size),
    ),
    Metric("packets_refused_total", "counter", "Packets not taken, by reason", _by("reason", lambda s: s.refused)),
    Metric("state_moves_total", "counter", "Moves between the engine's states", _by("move", lambda s: s.moves)),
    Metric("occurrences_total", "counter", "Rare events of the engine", _by("what", lambda s: s.occurred)),
    Metric("pauses_total", "counter", "Times when this process did not run", _one(lambda s: s.pauses.count)),
    Metric("longest_pause_seconds", "gauge", "The longest of them", _one(lambda s: s.pauses.longest_ns / SECOND)),
    Metric(
        "event_loop_lag_seconds",
        "gauge",
        "How late the event loop was when it was last late",
        _one(lambda s: s.pauses.loop_lag_ns / SECOND),
    ),
    Metric(
        "storage_used",
        "gauge",
        "1 while stable storage is in use, 0 while the node goes on without it",
        _one(lambda s: s.storage.is_used),
    ),
    Metric(
        "storage_free_ratio",
        "gauge",
        "Part of the state folder's file system that is free",
        lambda s: [] if s.storage.free is None else [({}, s.storage.free)],
    ),
    Metric(
        "network_good",
        "gauge",
        "1 while one of several networks is good, 0 while it is faulty or on trial",
        _networks(lambda network: network.state == "good"),
    ),
    Metric(
        "network_alarms_total",
        "counter",
        "Times that one of several networks was found faulty",
        _networks(lambda network: network.marked),
    ),
    Metric(
        "segmentation", "gauge", "1 when a system call carries many packets", _one(lambda s: s.sockets.segmentation)
    ),
)
PREFIX = "ordercast_"


def metrics_text(status: Status) -> str:
    lines = []
    for metric in METRICS:
        name = PREFIX + metric.name
        lines.append(f"# HELP {name} {metric.help}")
        lines.append(f"# TYPE {name} {metric.kind}")
        lines += [f"{name}{_labels(labels)} {_number(value)}" for labels, value in metric.read(status)]
    return "\n".join(lines) + "\n"


def _labels(labels: dict[str, str]) -> str:
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}" if labels else ""


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(float(value))
