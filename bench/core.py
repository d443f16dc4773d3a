"""What the engine itself costs: N rings' members in one process, joined by function calls, no sockets, all sending.

Every member always has something to send. Packets of one size that a visit broadcasts reach each other member as one
read, as segmentation offload would bring them. Reported are CPU times: at a receiver (everything that `receive` does
with data: header, store, order, delivery as batches), and all in (sending, packing, token, harness too) per packet and
member.

    python bench/core.py [--json] [--sealed] [--seconds S] [--nodes 4,8,16,32,64] [--sizes 1350,100]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial

from ordercast.daemon.sealed import AesGcm
from ordercast.model.effects import Broadcast, Deliver, Effect, Persist, SendTo
from ordercast.model.ids import MAIN, Incarnation, Instant, NodeId, node_of
from ordercast.model.inputs import Lane, Packet, Submissions
from ordercast.model.kernel import NAME
from ordercast.order.adaptive.node import AdaptiveNode
from ordercast.order.ring.config import RingConfig
from ordercast.order.ring.node import RingNode
from ordercast.sealing.cipher import SALT_SIZE, SECRET_SIZE
from ordercast.sealing.keys import ClusterKey, KeyRing
from ordercast.sealing.layer import Sealing
from ordercast.wire.header import DESCRIPTOR_SIZE

BATCH = 400  # packets: more than a visit sends, so that the ring never rests


@dataclass(frozen=True)
class Measured:
    nodes: int
    size: int
    per_packet: int  # messages in a packet
    delivered: int  # messages, at each member
    receive_us: float  # CPU per packet at a receiver
    packet_us: float  # CPU all in, per packet and member
    message_us: float  # CPU all in, per message and member


def sealed(rings: Sequence[RingNode | AdaptiveNode]) -> list[Sealing]:
    """The same members, each above a seal with one key of all."""
    key = ClusterKey(os.urandom(SECRET_SIZE))
    keys, cipher = KeyRing((key,), key.id, key.id), AesGcm()
    return [
        Sealing(
            ring, NodeId(node), keys, cipher, partial(os.urandom, SALT_SIZE), lambda *_: rings[0].cluster, {MAIN: 1}
        )
        for node, ring in enumerate(rings)
    ]


class Cluster:
    """Members joined by function calls. Time stands still but for what forming the ring needs."""

    def __init__(
        self, nodes: int, size: int, make: Callable[[NodeId], RingNode | AdaptiveNode], *, is_sealed: bool = False
    ) -> None:
        self.size = size
        self.now = Instant(0)
        self.rings = [make(NodeId(node)) for node in range(nodes)]
        self.members: list[RingNode | AdaptiveNode | Sealing] = [*(sealed(self.rings) if is_sealed else self.rings)]
        self.tokens: deque[tuple[int, bytes]] = deque()
        self.delivered = [0] * nodes
        self.packets = 0
        self.receive_ns = 0
        self.load: list[Submissions] = []
        for node, member in enumerate(self.members):
            self.carry_out(node, member.start({}, Incarnation(1), self.now))

    def form(self) -> None:
        """Until all are on one ring."""
        while any(len(ring.ring.members) < len(self.rings) or not ring.is_idle() for ring in self.rings):
            self.now = Instant(self.now + 1_000_000)
            for node, member in enumerate(self.members):
                deadline = member.next_deadline()
                if deadline is not None and deadline <= self.now:
                    self.carry_out(node, member.wake(self.now))
            self.pass_tokens(10_000)
            if self.now > 60_000_000_000:
                sys.exit("the ring did not form")

    def pass_tokens(self, limit: int) -> None:
        for _ in range(limit):
            if not self.tokens:
                return
            node, token = self.tokens.popleft()
            member = self.members[node]
            if self.load and member.room() > len(self.load[0].payloads) * (self.size + 64):
                self.carry_out(node, member.submit(self.load, self.now))
            self.carry_out(node, member.receive([Packet(token, len(token), Lane.TOKEN)], self.now))

    def carry_out(self, node: int, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Broadcast):
                self.broadcast(node, effect)
            elif isinstance(effect, SendTo):
                self.tokens.append((node_of(effect.process), effect.packet))
            elif isinstance(effect, Deliver):
                self.delivered[node] += len(effect)
            elif isinstance(effect, Persist):
                self.carry_out(node, self.members[node].persisted(effect.key, self.now))

    def reached(self, source: int) -> list[int]:
        return [node for node in range(len(self.members)) if node != source]

    def broadcast(self, source: int, effect: Broadcast) -> None:
        reads = [Packet(data, size) for data, size in effect.bursts]
        self.packets += sum(-(-len(data) // size) for data, size in effect.bursts)
        for node in self.reached(source):
            start = time.process_time_ns()
            effects = self.members[node].receive(reads, self.now)
            self.receive_ns += time.process_time_ns() - start
            self.carry_out(node, effects)


def measure(nodes: int, size: int, seconds: float, *, accelerated: bool = False, is_sealed: bool = False) -> Measured:
    config = RingConfig(
        accelerated=accelerated,
        queue_size_max=4 << 20,
        message_size_max=1 << 16,
        window=max(256, 16 * nodes),
        backlog_max=16_384,
    )
    cluster = Cluster(nodes, size, lambda node: RingNode(node, config), is_sealed=is_sealed)
    cluster.form()
    packets = -(-(size + DESCRIPTOR_SIZE) // config.whole_size_max)  # that a message takes
    count = max(1, BATCH // packets) * max(1, config.whole_size_max // (size + DESCRIPTOR_SIZE))
    cluster.load = [Submissions([bytes(size)] * count)]
    for node, member in enumerate(cluster.members):
        cluster.carry_out(node, member.submit(cluster.load, cluster.now))
    cluster.pass_tokens(10 * nodes)
    cluster.packets = cluster.receive_ns = 0
    before = cluster.delivered[0]
    start = time.process_time()
    while time.process_time() - start < seconds:
        cluster.pass_tokens(4 * nodes)
    spent = time.process_time() - start
    delivered = cluster.delivered[0] - before
    packets = cluster.packets
    return Measured(
        nodes,
        size,
        round(delivered / packets),
        delivered,
        cluster.receive_ns / 1e3 / (packets * (nodes - 1)),
        spent * 1e6 / (packets * nodes),
        spent * 1e6 / (delivered * nodes),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--seconds", type=float, default=2.0, help="CPU time for each row")
    parser.add_argument("--nodes", default="4,8,16,32,64")
    parser.add_argument("--sizes", default="1350,100", help="bytes of a message")
    parser.add_argument("--sealed", action="store_true", help="each row clear, then sealed: read the ratio")
    arguments = parser.parse_args()
    rows = [
        measure(int(nodes), size, arguments.seconds, is_sealed=is_sealed)
        for size in map(int, str(arguments.sizes).split(","))
        for nodes in str(arguments.nodes).split(",")
        for is_sealed in ((False, True) if arguments.sealed else (False,))
    ]
    if arguments.json:
        print(json.dumps({"python": platform.python_version(), "kernel": NAME, "rows": [asdict(row) for row in rows]}))
        return
    print(f"CPython {platform.python_version()}, {NAME} kernel, CPU microseconds; all members send")
    print(
        f"{'members':>7} {'bytes':>6} {'msgs/packet':>11} {'receiver/packet':>15} {'all in/packet':>13}"
        f" {'all in/msg':>10}"
    )
    for row in rows:
        print(
            f"{row.nodes:7} {row.size:6} {row.per_packet:11} {row.receive_us:15.2f} {row.packet_us:13.2f} "
            f"{row.message_us:10.3f}"
        )


if __name__ == "__main__":
    main()
