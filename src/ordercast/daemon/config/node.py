"""What a live node needs to know, as plain values. `config_file.py` reads them from TOML.

Nothing is needed on one machine: `local_config()` is a node on the loopback interface, which takes the first free node
id when it opens its sockets. On one machine all nodes share the multicast address and each has ports of its own, which
follow from its id, so that nobody needs a list.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from ipaddress import ip_address
from pathlib import Path
from typing import NamedTuple

from ordercast.daemon.config.defaults import LOCAL_NODES_MAX as LOCAL_NODES_MAX
from ordercast.daemon.config.defaults import LOOPBACK as LOOPBACK
from ordercast.daemon.config.defaults import PORT as PORT
from ordercast.daemon.config.defaults import TraceLevel as TraceLevel
from ordercast.groups.names import MEMBERSHIPS_MAX
from ordercast.model.effects import Endpoint
from ordercast.model.errors import UsageError
from ordercast.model.ids import MILLISECOND, SECOND, NodeId
from ordercast.model.roster import Entry, Place, Roster
from ordercast.networks.config import NetworksConfig
from ordercast.order.adaptive.config import AdaptiveConfig
from ordercast.order.catalogue import DEFAULT, ENGINES
from ordercast.order.gateways.config import GatewaysConfig
from ordercast.order.ring.config import RingConfig
from ordercast.order.setup import FarNode
from ordercast.order.sites.config import SitesConfig
from ordercast.order.sizes import Sizes
from ordercast.order.tree.config import TreeConfig
from ordercast.session.outbound import HOLD_MAX_NS
from ordercast.session.quota import ALL_MEMBERSHIPS_MAX
from ordercast.session.rights import AccessRule

GROUP = "239.192.79.67"
PORT_MAX = 65535
LINK_OFFSET = 128  # from a node's token port to its link port
LOCAL_NODES_EXPECTED = 10  # where nobody says how many there will be
MIB = 1 << 20


class Transport(Enum):
    MULTICAST = "multicast"
    UNICAST = "unicast"  # a packet for everybody is sent to each


class LinkProtocol(Enum):
    """What carries the packets of a link between two sites."""

    UDP = "udp"
    TCP = "tcp"  # for paths that let nothing else through


class WidePlace(NamedTuple):
    """Where the nodes of other sites reach a node."""

    address: str
    port: int
    listen_port: int  # where it listens; another port where a router in between translates


@dataclass(frozen=True, slots=True)
class SiteLink:
    """Two sites whose representatives speak to each other."""

    one: str
    other: str
    protocol: LinkProtocol = LinkProtocol.UDP
    cost_ns: int = 0  # from the first to the second; 0: as measured
    cost_back_ns: int = 0  # and back; 0: the same

    def cost_from(self, site: str) -> int:
        """Return what it costs from one of the two to the other, in whole milliseconds; 0: as measured."""
        cost = self.cost_ns if site == self.one else self.cost_back_ns or self.cost_ns
        return -(-cost // MILLISECOND)

    def beyond(self, site: str) -> str | None:
        """Return the site at the other end; None when this one is at neither."""
        return {self.one: self.other, self.other: self.one}.get(site)


@dataclass(frozen=True, slots=True)
class Peer:
    """Where a node receives."""

    node: NodeId
    name: str
    address: str  # IPv4 or IPv6, as digits
    token_port: int = PORT + 1
    data_port: int = PORT  # used by the unicast transport alone
    more: tuple[Place, ...] = ()  # and on the other networks, where there are several
    rings: tuple[str, ...] = ()  # that it is on, where the file has several; what its users send goes out on the first
    wide: WidePlace | None = None  # for other sites; None: its address here, and its link port

    @property
    def wide_place(self) -> WidePlace:
        return self.wide or WidePlace(self.address, self.link_port, self.link_port)

    @property
    def link_port(self) -> int:
        """Return the port of the link lane, if its engine has links. It follows from the token port, which no other
        node at this address has, so that node lists need no third port."""
        above = self.token_port + LINK_OFFSET
        return above if above <= PORT_MAX else self.token_port - LINK_OFFSET

    @property
    def addresses(self) -> tuple[str, ...]:
        """Everywhere where it can be reached."""
        return self.address, *(place.address for place in self.more), *((self.wide.address,) if self.wide else ())

    @property
    def entry(self) -> Entry:
        """The same in a roster."""
        return Entry(self.node, self.name, (Place(self.address, self.token_port, self.data_port), *self.more))


AUTO_MTU = 0  # the file leaves it to the interface


@dataclass(frozen=True, slots=True)
class NetworkConfig:
    transport: Transport = Transport.MULTICAST
    group: str = GROUP  # multicast address
    port: int = PORT  # multicast port
    ttl: int = 1  # routers that a multicast packet may pass, plus one
    mtu: int = 1500  # of the narrowest link: IP packets are never larger; AUTO_MTU until the interface was asked
    segmentation: bool = True  # many packets per system call (UDP_SEGMENT, UDP_GRO) where the kernel can
    buffer_size: int = 32 * MIB  # asked of the kernel, for each socket
    name: str = ""  # for people, where there are several; empty: its number


@dataclass(frozen=True, slots=True)
class RingDomain:
    """A broadcast domain: whoever is attached to it forms a ring there. It is one of a network of rings, or a site."""

    name: str
    number: int  # its id, in the ids of its rings
    network: NetworkConfig = field(default_factory=NetworkConfig)
    more_networks: tuple[NetworkConfig, ...] = ()  # redundant ones beside it
    peers: tuple[Peer, ...] = ()  # who is attached, and where each receives


@dataclass(frozen=True, slots=True)
class TraceConfig:
    level: TraceLevel = TraceLevel.OFF
    folder: Path = Path("traces")
    file_size_max: int = 64 * MIB  # then a new file begins
    files_max: int = 0  # the oldest are removed beyond this many; 0 keeps all


@dataclass(frozen=True, slots=True)
class StatusConfig:
    address: str = LOOPBACK
    port: int | None = None  # of /status and /metrics over HTTP; None: not served
    hosts: tuple[str, ...] = ()  # names of this host that may be asked for, beside its addresses and localhost
    ports: tuple[tuple[str, int], ...] = ()  # of all nodes of the file, by name; 0: not served
    token: Path | None = None  # the file with what whoever reads it must show; None: nothing
    insecure: bool = False  # everybody may read it, from other hosts too


@dataclass(frozen=True, slots=True)
class ClientsConfig:
    """Where a daemon serves clients."""

    folder: Path | None = None  # of its unix socket NAME.sock; None: the usual place, see `session/addresses.py`
    mode: int = 0o600  # permissions of the unix socket: who may connect
    address: str = LOOPBACK
    port: int | None = None  # over TCP; None: not served
    sessions_max: int = 10_000
    queue_size_max: int | None = None  # that may wait for one client; None: as its policy says (`session/outbound.py`)
    memory_max: int | None = None  # bytes kept for all clients together; None: a quarter of the machine's memory
    groups_max: int = MEMBERSHIPS_MAX  # that one client may be in
    memberships_max: int = ALL_MEMBERSHIPS_MAX  # of all clients together
    hold_ns: int = HOLD_MAX_NS  # in which a client for which all wait must have read half of what waits for it
    certificates: Path | None = None  # the folder with NAME.pem, for TLS over TCP; None: in the clear
    insecure: bool = False  # clients in the clear are meant, from other hosts too


@dataclass(frozen=True, slots=True)
class SecurityConfig:
    key: Path | None = None  # the file with the keys of the cluster; None: on one machine, the key of its user
    insecure: bool = False  # clear packets are meant


@dataclass(frozen=True, slots=True)
class NodeConfig:
    name: str = ""  # empty: n1, n2, …
    node: NodeId | None = None  # None: the first that is free on this machine
    peers: tuple[Peer, ...] = ()  # everybody, this node too; empty: all on this machine
    ring: RingConfig = field(default_factory=RingConfig)
    network: NetworkConfig = field(default_factory=NetworkConfig)
    more_networks: tuple[NetworkConfig, ...] = ()  # redundant ones beside it
    redundancy: NetworksConfig = field(default_factory=NetworksConfig)  # how several are used; their count is not read
    trace: TraceConfig = field(default_factory=TraceConfig)
    status: StatusConfig = field(default_factory=StatusConfig)
    clients: ClientsConfig = field(default_factory=ClientsConfig)  # for `ordercast daemon`
    inbox_size_max: int = 32 * MIB  # delivered and not taken by the application: beyond it, senders wait
    stall_ns: int = 30 * SECOND  # an application that takes nothing for so long while all wait is given up
    state_folder: Path | None = None  # stable storage; None: nothing is kept, and every start is a new process
    nodes_version: int = 1  # of the list of peers
    source: Path | None = None  # the file that says all this; read again by a reload
    security: SecurityConfig = field(default_factory=SecurityConfig)  # whether packets are sealed, and with what
    rights: tuple[AccessRule, ...] = ()  # of clients; none: whoever may connect may do nearly everything
    engine: str = DEFAULT  # which engine orders messages: the same at all nodes
    rings: tuple[RingDomain, ...] = ()  # several rings, or sites; none: one ring, on `network` and `more_networks`
    adaptive: AdaptiveConfig = field(default_factory=AdaptiveConfig)  # for the engine of this name
    gateways: GatewaysConfig = field(default_factory=GatewaysConfig)  # how such a network works
    sites: SitesConfig = field(default_factory=SitesConfig)  # how several sites work
    site_links: tuple[SiteLink, ...] = ()  # which sites are joined; their names are in `rings`
    tree: TreeConfig = field(default_factory=TreeConfig)  # for the engine of this name

    @property
    def sizes(self) -> Sizes:
        """What every engine has in its configuration; for all of them it is in this table."""
        return self.ring

    @property
    def is_local(self) -> bool:
        return not self.peers

    @property
    def is_on_one_machine(self) -> bool:
        """No other host can be a member, and none is meant to be."""
        peers = (peer for ring in self.each_ring for peer in ring.peers)
        return all(ip_address(address).is_loopback for peer in peers for address in peer.addresses)

    def me(self) -> Peer:
        assert self.node is not None
        return self.peer(self.node)

    def peer(self, node: NodeId) -> Peer:
        """Where a node receives; on one machine it follows from its id."""
        if self.is_local:
            return local_peer(node, self.network.port)
        for peer in self.peers:
            if peer.node == node:
                return peer
        raise UsageError(f"node {node} is not in the configuration")

    @property
    def roster(self) -> Roster:
        """Everybody; on one machine all nodes that it can have."""
        everybody = self.peers or tuple(local_peer(NodeId(n), self.network.port) for n in range(1, LOCAL_NODES_MAX + 1))
        entries = tuple(sorted(peer.entry for peer in everybody))
        return Roster(self.nodes_version if self.peers else 0, entries)

    @property
    def networks(self) -> tuple[NetworkConfig, ...]:
        return self.network, *self.more_networks

    @property
    def layer(self) -> NetworksConfig:
        """How several networks are used, with their number and names."""
        names = tuple(network.name or f"network {number}" for number, network in enumerate(self.networks))
        return replace(self.redundancy, count=len(names), names=names)

    @property
    def nodes_expected(self) -> int:
        """How many nodes the timers must suit."""
        return len(self.peers) or LOCAL_NODES_EXPECTED

    # A network of rings

    @property
    def my_rings(self) -> tuple[RingDomain, ...]:
        """The rings that this node is on, in the order of its attachments; none where the file has one ring alone."""
        by_name = {ring.name: ring for ring in self.rings}
        return tuple(by_name[name] for name in self.me().rings) if self.rings else ()

    @property
    def attachments(self) -> tuple[NodeConfig, ...]:
        """The same, for each attachment of this node, as if its ring were the only one."""
        return tuple(self.on_ring(ring) for ring in self.my_rings) or (self,)

    @property
    def each_ring(self) -> tuple[NodeConfig, ...]:
        """The same, for each ring of the cluster, as if it were the only one."""
        return tuple(self.on_ring(ring) for ring in self.rings) or (self,)

    @property
    def has_sites(self) -> bool:
        """Each node is in one of several sites, which links join."""
        return bool(self.rings) and ENGINES[self.engine].has_sites

    @property
    def has_link_lane(self) -> bool:
        """Nodes speak to each other on links, on a port of its own beside those for tokens and data."""
        entry = ENGINES[self.engine]
        return entry.has_links and not entry.has_sites

    @property
    def domain_table(self) -> str:
        """What the file calls its rings."""
        return "sites" if self.has_sites else "rings"

    def beyond(self) -> tuple[tuple[Peer, LinkProtocol], ...]:
        """Return the nodes that a link of this node may lead to, and over what."""
        if not self.has_sites:
            return ()
        (mine,) = self.me().rings
        reached = {link.beyond(mine): link.protocol for link in self.site_links}
        return tuple((peer, reached[peer.rings[0]]) for peer in self.peers if peer.rings[0] in reached)

    def far_nodes(self) -> tuple[FarNode, ...]:
        """Return the same for the engine."""
        if not self.has_sites:
            return ()
        (mine,) = self.me().rings
        costs = {link.beyond(mine): link.cost_from(mine) for link in self.site_links}
        numbers = {domain.name: domain.number for domain in self.rings}
        return tuple(
            FarNode(peer.node, Endpoint(*peer.wide_place[:2]), numbers[site], costs[site], peer.name)
            for peer, _ in self.beyond()
            for site in peer.rings
        )

    def on_ring(self, ring: RingDomain) -> NodeConfig:
        return replace(self, network=ring.network, more_networks=ring.more_networks, peers=ring.peers, rings=())

    def with_peers(self, peers: tuple[Peer, ...], version: int, attachment: int) -> NodeConfig:
        """The same with another node list: of the ring of this attachment, where there are several."""
        if not self.rings:
            return replace(self, peers=peers, nodes_version=version)
        name = self.my_rings[attachment].name
        rings = tuple(replace(ring, peers=peers) if ring.name == name else ring for ring in self.rings)
        return replace(self, rings=rings, nodes_version=version)

    @property
    def places(self) -> tuple[str, ...]:
        """What distinguishes the sockets of this node, for people: of each attachment, each network; empty for the only
        one."""
        names = [ring.name for ring in self.my_rings] or [""]
        return tuple(
            ", ".join(part for part in (name, network) if part)
            for name, leg in zip(names, self.attachments, strict=True)
            for network in (leg.layer.names if leg.more_networks else [""])
        )

    def on(self, number: int) -> NodeConfig:
        """The same as if this network were the only one."""
        if number == 0:
            return self
        peers = tuple(replace(peer, **peer.more[number - 1]._asdict()) for peer in self.peers)
        return replace(self, network=self.networks[number], peers=peers)

    def others(self) -> tuple[Peer, ...]:
        """Whom a packet for everybody is sent to, by unicast."""
        everybody = self.peers or tuple(local_peer(NodeId(n), self.network.port) for n in range(1, LOCAL_NODES_MAX + 1))
        return tuple(peer for peer in everybody if peer.node != self.node)

    def beside(self, cluster: str | None, port: int | None) -> NodeConfig:
        """Return the same for another cluster on the same machine, of this name or at this port."""
        if cluster is None and port is not None:
            cluster = name_at(self.ring.cluster, port)
        ring = self.ring if cluster is None else replace(self.ring, cluster=cluster)
        network = self.network if port is None else replace(self.network, port=port)
        return replace(self, ring=ring, network=network)

    def with_packet_size(self) -> NodeConfig:
        """Packets as large as every network of every ring allows: the MTU less the headers of IP and UDP."""
        each = (ring.on(number) for ring in self.each_ring for number in range(len(ring.networks)))
        size = min(one._packet_size() for one in each)
        return replace(self, ring=replace(self.ring, packet_size_max=size))

    def _packet_size(self) -> int:
        version = ip_address(self.peers[0].address if self.peers else LOOPBACK).version
        return self.network.mtu - (28 if version == 4 else 48)


def name_at(cluster: str, port: int) -> str:
    """Return the name of a cluster of one machine at this port. Another port makes another name: clusters of one user
    have one key, and packets of one that are copied to the other must not open."""
    return cluster if port == PORT else f"{cluster}-{port}"


def peer_from(entry: Entry) -> Peer:
    return Peer(entry.node, entry.name, *entry.places[0], entry.places[1:])


def local_peer(node: NodeId, port: int = PORT) -> Peer:
    return Peer(node, f"n{node}", LOOPBACK, port + 2 * node, port + 2 * node + 1)
