"""A node that a status can be made of: a real engine, alone on its ring, and everything else made up."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ordercast.daemon.config.node import NodeConfig, Peer, Transport
from ordercast.daemon.status.counters import Counters, SocketCounters
from ordercast.daemon.status.parts import ClientsStatus, SealingStatus, StorageStatus
from ordercast.model.ids import MILLISECOND, SECOND, Incarnation, Instant, NodeId, ProcessId, node_of, process_text
from ordercast.networks.layer import Networks
from ordercast.order.adaptive.node import AdaptiveNode
from ordercast.order.engine import ObservedEngine
from ordercast.order.gateways.node import GatewayNode
from ordercast.order.ring.node import RingNode
from ordercast.order.tree.node import TreeNode

PEERS = tuple(Peer(NodeId(n), name, f"10.0.0.{n}") for n, name in ((1, "alpha"), (2, "beta"), (3, "gamma")))


@dataclass
class FakeLane:
    where: str
    counters: SocketCounters = field(default_factory=SocketCounters)
    receive_buffer_size: int = 32 << 20
    send_buffer_size: int = 32 << 20
    drops: int = 0

    def kernel_drops(self) -> int:
        return self.drops


@dataclass
class FakeSockets:
    data: FakeLane = field(default_factory=lambda: FakeLane("239.192.79.67 port 4700 on 10.0.0.1"))
    token: FakeLane = field(default_factory=lambda: FakeLane("10.0.0.1 port 4701"))
    link: FakeLane | None = None
    segmentation: bool = True
    transport: Transport = Transport.MULTICAST


@dataclass
class FakeInbox:
    size: int = 0


class FakeNode:
    def __init__(self, config: NodeConfig | None = None, engine: ObservedEngine | None = None) -> None:
        self.config = config or replace(NodeConfig(), name="alpha", node=NodeId(1), peers=PEERS)
        self.engine: ObservedEngine = engine or RingNode(NodeId(1), self.config.ring)
        if engine is None:
            self.engine.start({}, Incarnation(1), Instant(0))
            self.engine.enlist(self.config.roster, Instant(0))
        self.counters = Counters()
        self.sockets = FakeSockets()
        self.networks = [self.sockets]
        self.wide = None
        self.layers: tuple[Networks | None, ...] = (None,)
        self.reading = FakeInbox()
        self.is_behind = False
        self.started_at = Instant(0)
        self.clock = 100 * SECOND
        self.loop_lag_ns = 3 * MILLISECOND
        self.trace_error: str | None = None
        self.sealing = SealingStatus(True, False, 7, 7, (7,), (), "AES-256-GCM", 100, 200, {"forged": 3})
        self.storage = StorageStatus("/var/lib/ordercast", free=0.5)
        self.clients = ClientsStatus(sessions=2, groups=3)

    def begin(self) -> None:
        """The first ring is installed."""
        self.engine.persisted("configuration_seq", Instant(0))

    @property
    def process(self) -> ProcessId:
        engine = self.engine
        assert isinstance(engine, RingNode | GatewayNode | AdaptiveNode | TreeNode)
        return engine.process

    def clients_status(self) -> ClientsStatus:
        return self.clients

    def sealing_status(self) -> SealingStatus:
        return self.sealing

    def storage_status(self) -> StorageStatus:
        return self.storage

    def now(self) -> Instant:
        return Instant(self.clock)

    def name_of(self, process: ProcessId) -> str:
        known = {peer.node: peer.name for peer in self.config.peers}
        return known.get(node_of(process), process_text(process))
