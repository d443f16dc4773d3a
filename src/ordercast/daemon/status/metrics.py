"""A status in the text format of Prometheus. Pure; docs/guides/monitor.md has the same table, and a test compares them.

Units are seconds and bytes, as is the custom there. Labels take few values: lanes, kinds of refusal, names of states,
and the one client, or the few, for whom everybody waits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ordercast.daemon.status.latency import histogram_lines
from ordercast.daemon.status.parts import LaneStatus, NetworkStatus, Status
from ordercast.daemon.status.rings_section import RingsSection, TokenStatus
from ordercast.daemon.status.sites_section import SiteLinkStatus, SitesSection
from ordercast.daemon.status.slots_section import SlotsSection
from ordercast.daemon.status.tree_section import TreeSection
from ordercast.model.ids import SECOND

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Samples = Iterable[tuple[dict[str, str], float]]  # labels and value


@dataclass(frozen=True, slots=True)
class Metric:
    name: str
    help: str
    read: Callable[[Status], Samples | float]  # a number alone: one sample without labels

    @property
    def kind(self) -> str:
        """As the suffix says, by the custom of Prometheus."""
        return "counter" if self.name.endswith("_total") else "gauge"

    def samples(self, status: Status) -> Samples:
        found = self.read(status)
        return [({}, found)] if isinstance(found, int | float) else found


def _tokens(value: Callable[[TokenStatus], float]) -> Callable[[Status], Samples]:
    """Return a sample of each ring that the node is on."""

    def samples(status: Status) -> Samples:
        section = status.section
        if isinstance(section, RingsSection):
            return [({"ring": own.ring}, value(own.token)) for own in section.attachments]
        if isinstance(section, SitesSection | TreeSection):
            return [({}, value(section.token))]
        return [({}, value(section))] if isinstance(section, TokenStatus) else []

    return samples


def _rings(value: Callable[[RingsSection], Samples | float]) -> Callable[[Status], Samples]:
    """Return samples of a network of rings; of others none."""

    def samples(status: Status) -> Samples:
        if not isinstance(status.section, RingsSection):
            return []
        found = value(status.section)
        return [({}, found)] if isinstance(found, int | float) else found

    return samples


def _slots(value: Callable[[SlotsSection], Samples | float]) -> Callable[[Status], Samples]:
    """Return samples of the adaptive engine; of others none."""

    def samples(status: Status) -> Samples:
        if not isinstance(status.section, SlotsSection):
            return []
        found = value(status.section)
        return [({}, found)] if isinstance(found, int | float) else found

    return samples


def _sites(value: Callable[[SitesSection], Samples | float]) -> Callable[[Status], Samples]:
    """Return samples of several sites; of others none."""

    def samples(status: Status) -> Samples:
        if not isinstance(status.section, SitesSection):
            return []
        found = value(status.section)
        return [({}, found)] if isinstance(found, int | float) else found

    return samples


def _tree(value: Callable[[TreeSection], Samples | float]) -> Callable[[Status], Samples]:
    """Return samples of the tree engine; of others none."""

    def samples(status: Status) -> Samples:
        if not isinstance(status.section, TreeSection):
            return []
        found = value(status.section)
        return [({}, found)] if isinstance(found, int | float) else found

    return samples


def _site_links(value: Callable[[SiteLinkStatus], float]) -> Callable[[Status], Samples]:
    """Return a sample of each link of this node."""
    return _sites(lambda s: [({"site": link.site, "node": link.peer}, value(link)) for link in s.links])


def _lanes(value: Callable[[LaneStatus], float]) -> Callable[[Status], Samples]:
    return lambda status: [({"lane": lane.name}, value(lane)) for lane in status.sockets.lanes]


def _networks(value: Callable[[NetworkStatus], float]) -> Callable[[Status], Samples]:
    return lambda status: [({"network": network.name}, value(network)) for network in status.networks]


def _by(label: str, values: Callable[[Status], dict[str, int]]) -> Callable[[Status], Samples]:
    return lambda status: [({label: name}, count) for name, count in values(status).items()]


def _build(status: Status) -> Samples:
    me = status.me
    labels = {"version": me.version, "wire_version": str(me.wire_version), "node": me.name, "cluster": me.cluster}
    labels |= {"engine": status.engine, "kernel": me.kernel}
    return [(labels, 1)]


METRICS = (
    Metric("build_info", "Versions and names, as labels; always 1", _build),
    Metric("uptime_seconds", "Since this node started", lambda s: s.uptime_ns / SECOND),
    Metric("operational", "1 when messages flow, 0 during a change", lambda s: s.configuration.is_ready),
    Metric("members", "Members of the configuration", lambda s: len(s.configuration.members)),
    Metric("missing_members", "Configured nodes outside of it", lambda s: len(s.configuration.missing)),
    Metric("messages_submitted_total", "Messages accepted here", lambda s: s.totals.messages_submitted),
    Metric("messages_delivered_total", "Messages delivered here", lambda s: s.totals.messages_delivered),
    Metric("bytes_submitted_total", "Their bytes", lambda s: s.totals.bytes_submitted),
    Metric("bytes_delivered_total", "Their bytes", lambda s: s.totals.bytes_delivered),
    Metric("token_visits_total", "Visits of the token", _tokens(lambda token: token.visits)),
    Metric("token_rotation_seconds", "Smoothed time of a rotation", _tokens(lambda token: token.rotation_ns / SECOND)),
    Metric(
        "packets_retransmitted_total",
        "Packets sent again by this node on request",
        lambda s: s.totals.packets_retransmitted,
    ),
    Metric(
        "packets_requested_total",
        "Requests on the tokens forwarded here, of all nodes",
        lambda s: s.totals.packets_requested,
    ),
    Metric(
        "limited_visits_total",
        "Visits on which flow control let this node send less than it had",
        _tokens(lambda token: token.limited_visits),
    ),
    Metric("queue_bytes", "Accepted and not yet sent", lambda s: s.flow.queue_size),
    Metric("queue_room_bytes", "What would be accepted now", lambda s: s.flow.queue_room),
    Metric("inbox_bytes", "Delivered and not yet taken by the application", lambda s: s.flow.inbox_size),
    Metric("behind", "1 when the application is so far behind that all wait", lambda s: s.flow.is_behind),
    Metric(
        "stalled",
        "1 when something has waited for a second while nothing may be sent",
        lambda s: s.flow.stalled is not None,
    ),
    Metric("client_sessions", "Clients that are connected here", lambda s: s.clients.sessions),
    Metric("groups", "Groups with members anywhere", lambda s: s.clients.groups),
    Metric("client_waiting_bytes", "Not yet taken by clients", lambda s: s.clients.waiting_size),
    Metric("client_sessions_total", "Clients so far", lambda s: s.clients.connected),
    Metric("client_received_bytes", "Of frames of clients that are not whole yet", lambda s: s.clients.received_size),
    Metric(
        "client_requests_bytes", "Sent by clients and not yet taken by the engine", lambda s: s.clients.requests_size
    ),
    Metric("client_memory_bytes", "Kept for all clients", lambda s: s.clients.memory_size),
    Metric("client_memory_max_bytes", "What may be kept for them", lambda s: s.clients.memory_max),
    Metric("client_memberships", "Groups that clients here are in", lambda s: s.clients.memberships),
    Metric(
        "client_strangers",
        "Connections that have not said who they are, or are being closed",
        lambda s: s.clients.strangers,
    ),
    Metric(
        "client_refusals_total",
        "Connections sent away or closed, and requests refused, by reason",
        _by("reason", lambda s: s.clients.refusals),
    ),
    Metric("clients_too_slow_total", "Clients disconnected for it", lambda s: s.clients.too_slow),
    Metric(
        "clients_over_memory_total",
        "Clients disconnected as they took the most of too much memory",
        lambda s: s.clients.over_memory,
    ),
    Metric(
        "clients_held_too_long_total",
        "Clients disconnected as everybody waited for them too long",
        lambda s: s.clients.held_too_long,
    ),
    Metric(
        "client_holding_seconds",
        "How long everybody has waited for a client, while it is so",
        lambda s: [({"client": hold.client}, hold.for_ns / SECOND) for hold in s.clients.holding],
    ),
    Metric(
        "client_messages_dropped_total",
        "Dropped for slow clients that had chosen that",
        lambda s: s.clients.messages_dropped,
    ),
    Metric("socket_packets_received_total", "Packets that came", _lanes(lambda s: s.counters.packets_received)),
    Metric("socket_packets_sent_total", "Packets sent", _lanes(lambda s: s.counters.packets_sent)),
    Metric("socket_bytes_received_total", "Bytes that came", _lanes(lambda s: s.counters.bytes_received)),
    Metric("socket_bytes_sent_total", "Bytes sent", _lanes(lambda s: s.counters.bytes_sent)),
    Metric("socket_reads_total", "System calls that brought packets", _lanes(lambda s: s.counters.reads)),
    Metric("socket_sends_total", "System calls that sent packets", _lanes(lambda s: s.counters.sends)),
    Metric("client_tls_refusals_total", "Refused by TLS, by reason", _by("reason", lambda s: s.clients.insecure)),
    Metric("client_denials_total", "What clients had no right to", _by("right", lambda s: s.clients.denials)),
    Metric("client_identity_sessions", "The most, by identity", _by("identity", lambda s: s.clients.identities)),
    Metric(
        "client_certificate_days",
        "Until the daemon's certificate ends",
        lambda s: [] if s.clients.certificate_days is None else [({}, s.clients.certificate_days)],
    ),
    Metric("socket_send_failures_total", "Sends that the kernel refused", _lanes(lambda s: s.counters.send_failures)),
    Metric("socket_kernel_drops_total", "Packets that found the receive buffer full", _lanes(lambda s: s.kernel_drops)),
    Metric("socket_receive_buffer_bytes", "Granted by the kernel", _lanes(lambda s: s.receive_buffer_size)),
    Metric("packets_refused_total", "Packets not taken, by reason", _by("reason", lambda s: s.refused)),
    Metric("state_moves_total", "Moves between the engine's states", _by("move", lambda s: s.moves)),
    Metric("occurrences_total", "Rare events of the engine", _by("what", lambda s: s.occurred)),
    Metric("pauses_total", "Times when this process did not run", lambda s: s.pauses.count),
    Metric("longest_pause_seconds", "The longest of them", lambda s: s.pauses.longest_ns / SECOND),
    Metric(
        "event_loop_lag_seconds",
        "How late the event loop was when it was last late",
        lambda s: s.pauses.loop_lag_ns / SECOND,
    ),
    Metric(
        "storage_used",
        "1 while stable storage is in use, 0 while the node goes on without it",
        lambda s: s.storage.is_used,
    ),
    Metric(
        "storage_free_ratio",
        "Part of the state folder's file system that is free",
        lambda s: [] if s.storage.free is None else [({}, s.storage.free)],
    ),
    Metric(
        "network_good",
        "1 while one of several networks is good, 0 while it is faulty or on trial",
        _networks(lambda network: network.state == "good"),
    ),
    Metric(
        "network_alarms_total",
        "Times that one of several networks was found faulty",
        _networks(lambda network: network.marked),
    ),
    Metric("rings", "Rings of the network", _rings(lambda s: len(s.parts))),
    Metric(
        "rings_gateways",
        "Members that join several rings",
        _rings(lambda s: sum(len(rings) > 1 for rings in s.attached.values())),
    ),
    Metric(
        "rings_front_ticks",
        "Logical time up to which everything of a ring is known here",
        _rings(lambda s: [({"ring": name}, front) for name, front in s.fronts.items()]),
    ),
    Metric("rings_place_ticks", "Logical time up to which everything is delivered", _rings(lambda s: s.place)),
    Metric(
        "rings_undelivered_packets", "Packets that wait for their place in the order", _rings(lambda s: s.undelivered)
    ),
    Metric(
        "rings_waiting_seconds",
        "How long what is next in the order has waited",
        _rings(lambda s: 0 if s.waiting is None else s.waiting.for_ns / SECOND),
    ),
    Metric("rings_silent_members", "Members that cannot be heard any more", _rings(lambda s: len(s.silent))),
    Metric(
        "rings_hold_seconds",
        "How long a member has asked everybody to stop sending, while it does",
        _rings(lambda s: [({"node": hold.process}, hold.for_ns / SECOND) for hold in s.holds]),
    ),
    Metric(
        "rings_carry_queue_bytes",
        "What waits to be carried onto a ring of this node",
        _rings(lambda s: [({"ring": own.ring}, own.queue_size) for own in s.attachments]),
    ),
    Metric(
        "rings_filtered_total",
        "Packets that were not carried on, as nobody there wants them",
        _rings(lambda s: s.filtered),
    ),
    Metric("slots_distribution", "Number of the distribution of places", _slots(lambda s: s.distribution)),
    Metric(
        "slots_weight",
        "Slots that a member has in a period",
        _slots(lambda s: [({"node": member.name}, member.weight) for member in s.members]),
    ),
    Metric(
        "slots_rank",
        "Rank of a member; nobody has to answer the messages of rank 0",
        _slots(lambda s: [({"node": member.name}, member.rank) for member in s.members]),
    ),
    Metric("slots_waiting_places", "Places from what is delivered to the highest", _slots(lambda s: s.waiting_places)),
    Metric("slots_marks_total", "Marks of this node that were multicast", _slots(lambda s: s.marks)),
    Metric("slots_asks_total", "Requests of this node for what is missing", _slots(lambda s: s.asks)),
    Metric("slots_answers_total", "Packets sent again in another's place", _slots(lambda s: s.answers)),
    Metric("slots_relayed_total", "Marks passed on in another's place", _slots(lambda s: s.relayed)),
    Metric("slots_distributions_total", "Distributions that were adopted", _slots(lambda s: s.distributions)),
    Metric(
        "slots_blocked_seconds",
        "How long packets have waited here for a member's word, while they do",
        _slots(lambda s: [({"node": name}, lasted / SECOND) for name, lasted in s.blockers.items()]),
    ),
    Metric("sites", "Rings of the view, one for each site that is whole", _sites(lambda s: len(s.sites))),
    Metric("sites_attempting", "1 while a new view is attempted", _sites(lambda s: s.attempt is not None)),
    Metric("sites_represents", "1 while this node speaks for its site", _sites(lambda s: s.is_representative)),
    Metric(
        "sites_undelivered_packets",
        "Packets of a site that wait for their place in the order",
        _sites(lambda s: [({"site": site.name, "node": site.representative}, site.undelivered) for site in s.sites]),
    ),
    Metric(
        "sites_unstable_bytes", "Of this node's messages, not known to be everywhere", _sites(lambda s: s.unstable_size)
    ),
    Metric("sites_updates_total", "Promises and acknowledgements of this node", _sites(lambda s: s.updates)),
    Metric("sites_link_up", "1 while a link of this node is up", _site_links(lambda link: link.state == "up")),
    Metric(
        "sites_link_round_trip_seconds", "Smoothed round trip", _site_links(lambda link: link.round_trip_ns / SECOND)
    ),
    Metric("sites_link_loss_ratio", "Part of the packets asked for again", _site_links(lambda link: link.loss)),
    Metric("sites_link_queue_bytes", "What waits to be sent on a link", _site_links(lambda link: link.queue_size)),
    Metric("tree_trees", "Trees of the forest", _tree(lambda s: s.trees)),
    Metric("tree_openings", "Number of the opening that is in effect here", _tree(lambda s: s.opened)),
    Metric("tree_depth", "Edges above this node", _tree(lambda s: s.depth)),
    Metric("tree_children", "Children of this node", _tree(lambda s: len(s.children))),
    Metric("tree_links", "Links of this node that are in use", _tree(lambda s: s.links)),
    Metric("tree_entries", "Groups whose messages enter here", _tree(lambda s: s.entries_count)),
    Metric(
        "tree_entry_messages_per_second",
        "Messages to a group that enters here, as senders told last; of the busiest",
        _tree(lambda s: [({"group": entry.group}, entry.rate) for entry in s.entries if entry.rate]),
    ),
    Metric("tree_waiting", "Messages of this node that were not sent yet", _tree(lambda s: s.waiting)),
    Metric("tree_unstable", "Cargoes of this node, not known to be everywhere", _tree(lambda s: s.unstable)),
    Metric("tree_held_blocks", "Kept here for others", _tree(lambda s: s.held)),
    Metric("tree_behind", "Nodes for whose applications their groups wait", _tree(lambda s: len(s.behind))),
    Metric("tree_broken_edges", "Links that failed and are not used", _tree(lambda s: len(s.broken))),
    Metric("tree_pauses_total", "Times that this node was between two trees", _tree(lambda s: s.pauses)),
    Metric(
        "tree_pause_seconds",
        "How long this node was between two trees, of its last times",
        _tree(
            lambda s: [
                ({"quantile": "0.5"}, s.pause_median_ns / SECOND),
                ({"quantile": "0.99"}, s.pause_p99_ns / SECOND),
            ]
        ),
    ),
    Metric("tree_reconciled_total", "Times that all trees ended at once", _tree(lambda s: s.reconciled)),
    Metric("tree_refused_total", "Cargoes that came to their entry too late", _tree(lambda s: s.refused)),
    Metric("sealed", "1 while packets go out sealed", lambda s: s.sealing.used != 0),
    Metric("insecure", "1 when clear packets are meant: insecure = true", lambda s: s.sealing.is_insecure),
    Metric("sealed_packets_total", "Packets that were sealed", lambda s: s.sealing.packets_sealed),
    Metric("opened_packets_total", "Sealed packets that were opened", lambda s: s.sealing.packets_opened),
    Metric(
        "seal_refused_packets_total",
        "Packets refused for want of a seal that counts, by `why`",
        _by("why", lambda s: s.sealing.refused),
    ),
    Metric(
        "key_accepted",
        "1 for each key that is accepted, by `key`; 0 is clear",
        lambda s: [({"key": str(key)}, 1) for key in s.sealing.accepted],
    ),
    Metric("key_used", "Number of the key that is used; 0: packets are clear", lambda s: s.sealing.used),
    Metric("key_awaited_nodes", "Nodes that do not yet accept the key that is next", lambda s: len(s.sealing.awaited)),
    Metric("segmentation", "1 when a system call carries many packets", lambda s: s.sockets.segmentation),
)
PREFIX = "ordercast_"
LATENCY, LATENCY_HELP = "delivery_latency_seconds", "From submission to delivery at the same node, of some messages"


def metrics_text(status: Status) -> str:
    lines = []
    for metric in METRICS:
        name = PREFIX + metric.name
        lines.append(f"# HELP {name} {metric.help}")
        lines.append(f"# TYPE {name} {metric.kind}")
        lines += [f"{name}{_labels(labels)} {_number(value)}" for labels, value in metric.samples(status)]
    lines += histogram_lines(PREFIX + LATENCY, LATENCY_HELP, status.latency)
    return "\n".join(lines) + "\n"


def _labels(labels: dict[str, str]) -> str:
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}" if labels else ""


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(float(value))
