"""What the engine itself costs: N rings' members in one process, joined by function calls, no sockets, all sending.

Every member always has something to send. Packets of one size that a visit broadcasts reach each other member as one
read, as segmentation offload would bring them. Reported are CPU times: at a receiver (everything that `receive` does
with data: header, store, order, delivery as batches), and all in (sending, packing, token, harness too) per packet and
member.

    python bench/core.py [--json] [--sealed] [--seconds S] [--nodes 4,8,16,32,64] [--sizes 1350,100]
    python bench/core.py --engines ring,sites --sizes 1200,100 --calls    Python calls: no other program disturbs them
"""

from __future__ import annotations

import argparse
import cProfile
import json
import os
import platform
import sys
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial

from ordercast.daemon.sealed import AesGcm
from ordercast.model.effects import Broadcast, Deliver, Effect, Persist, SendTo, in_order
from ordercast.model.ids import MAIN, Incarnation, Instant, NodeId, node_of
from ordercast.model.inputs import Lane, Packet, Submissions
from ordercast.model.kernel import NAME
from ordercast.order.catalogue import DEFAULT, entry_of
from ordercast.order.engine import ObservedEngine
from ordercast.order.ring.config import RingConfig
from ordercast.order.ring.node import RingNode
from ordercast.order.setup import Setup
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
    engine: str = DEFAULT
    calls: float = 0.0  # of functions, all in, per message and member; CPU is of no use when they were counted
    inputs: float = 0.0  # likewise


def sealed(engines: Sequence[ObservedEngine]) -> list[Sealing]:
    """The same members of a ring, each above a seal with one key of all."""
    rings = [engine for engine in engines if isinstance(engine, RingNode)]
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
        self, nodes: int, size: int, config: RingConfig, *, is_sealed: bool = False, engine: str = DEFAULT
    ) -> None:
        self.size = size
        self.read_max = BATCH  # packets
        self.now = Instant(0)
        entry = entry_of(engine)
        tables = {name: config if name == "ring" else table() for name, table in entry.tables.items()}
        self.engines = [entry.make(Setup(NodeId(node), tables)) for node in range(nodes)]
        self.members: list[ObservedEngine | Sealing] = [*(sealed(self.engines) if is_sealed else self.engines)]
        self.tokens: deque[tuple[int, bytes]] = deque()
        self.delivered = [0] * nodes
        self.packets = 0
        self.inputs = 0
        self.receive_ns = 0
        self.load: list[Submissions] = []
        for node, member in enumerate(self.members):
            self.carry_out(node, member.start({}, Incarnation(1), self.now))

    def form(self) -> None:
        """Until all are on one ring."""
        count = len(self.engines)
        while any(len(one.configuration.members) < count or not one.is_idle() for one in self.engines):
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
            self.inputs += 1
            if self.load and member.room() > len(self.load[0].payloads) * (self.size + 64):
                self.carry_out(node, member.submit(self.load, self.now))
            self.carry_out(node, member.receive([Packet(token, len(token), Lane.TOKEN)], self.now))

    def carry_out(self, node: int, effects: list[Effect]) -> None:
        for effect in in_order(effects):
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
        reads = [
            Packet(data[at : at + size * self.read_max], size)
            for data, size in effect.bursts
            for at in range(0, len(data), size * self.read_max)
        ]
        self.packets += sum(-(-len(data) // size) for data, size in effect.bursts)
        for node in self.reached(source):
            self.inputs += 1
            start = time.process_time_ns()
            effects = self.members[node].receive(reads, self.now)
            self.receive_ns += time.process_time_ns() - start
            self.carry_out(node, effects)


def measure(
    nodes: int,
    size: int,
    seconds: float,
    *,
    accelerated: bool = False,
    is_sealed: bool = False,
    engine: str = DEFAULT,
    counts_calls: bool = False,
    read_max: int = BATCH,
) -> Measured:
    config = RingConfig(
        accelerated=accelerated,
        queue_size_max=4 << 20,
        message_size_max=1 << 16,
        window=max(256, 16 * nodes),
        backlog_max=16_384,
    )
    cluster = Cluster(nodes, size, config, is_sealed=is_sealed, engine=engine)
    cluster.form()
    cluster.read_max = read_max
    packets = -(-(size + DESCRIPTOR_SIZE) // config.whole_size_max)  # that a message takes
    count = max(1, BATCH // packets) * max(1, config.whole_size_max // (size + DESCRIPTOR_SIZE))
    cluster.load = [Submissions([bytes(size)] * count)]
    for node, member in enumerate(cluster.members):
        cluster.carry_out(node, member.submit(cluster.load, cluster.now))
    cluster.pass_tokens(10 * nodes)
    cluster.packets = cluster.receive_ns = cluster.inputs = 0
    before = cluster.delivered[0]
    profile = cProfile.Profile(builtins=False)
    start = time.process_time()
    while time.process_time() - start < seconds:
        if counts_calls:
            profile.runcall(cluster.pass_tokens, 4 * nodes)
        else:
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
        engine,
        sum(one.callcount for one in profile.getstats()) / (delivered * nodes),
        cluster.inputs / (delivered * nodes),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--seconds", type=float, default=2.0, help="CPU time for each row")
    parser.add_argument("--nodes", default="4,8,16,32,64")
    parser.add_argument("--sizes", default="1350,100", help="bytes of a message")
    parser.add_argument("--sealed", action="store_true", help="each row clear, then sealed: read the ratio")
    parser.add_argument("--engines", default=DEFAULT, help="with a token, in turns, as ring,sites: read the ratio")
    parser.add_argument("--calls", action="store_true", help="count calls of functions; CPU is then of no use")
    parser.add_argument("--reads", type=int, default=BATCH, help="packets that a read brings at most; 64 KiB has 45")
    arguments = parser.parse_args()
    rows = [
        measure(
            int(nodes),
            size,
            arguments.seconds,
            is_sealed=is_sealed,
            engine=engine,
            counts_calls=arguments.calls,
            read_max=arguments.reads,
        )
        for size in map(int, str(arguments.sizes).split(","))
        for nodes in str(arguments.nodes).split(",")
        for engine in str(arguments.engines).split(",")
        for is_sealed in ((False, True) if arguments.sealed else (False,))
    ]
    if arguments.json:
        print(json.dumps({"python": platform.python_version(), "kernel": NAME, "rows": [asdict(row) for row in rows]}))
        return
    print(f"CPython {platform.python_version()}, {NAME} kernel, CPU microseconds; all members send")
    print(
        f"{'engine':>8} {'members':>7} {'bytes':>6} {'msgs/packet':>11} {'receiver/packet':>15} {'all in/packet':>13}"
        f" {'all in/msg':>10} {'calls/msg':>9}"
    )
    for row in rows:
        print(
            f"{row.engine:>8} {row.nodes:7} {row.size:6} {row.per_packet:11} {row.receive_us:15.2f}"
            f" {row.packet_us:13.2f} {row.message_us:10.3f} {row.calls:9.3f}"
        )


if __name__ == "__main__":
    main()
