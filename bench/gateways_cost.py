"""What a network of rings costs its members: CPU per delivered message against the plain ring's, without sockets.

Engines of one process are joined by function calls, as in `core.py`; every member always has something to send, for
everybody. Three networks take turns: a plain ring of five, the same five as one ring of a network, and five processes
as two rings of three that share a gateway. Reported are CPU times of the engine's inputs (sending, token, receiving,
order, delivery), per message that a member delivers, and ratios to the plain ring's in the same run.

    python bench/gateways_cost.py [--json] [--seconds S] [--sizes 1350,100]
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass

from ordercast.model.effects import Broadcast, Burst, Deliver, Effect, Persist, SendTo, Then
from ordercast.model.ids import Attachment, Incarnation, Instant, NodeId, node_of
from ordercast.model.inputs import Lane, Packet, Submissions
from ordercast.order.engine import ObservedEngine
from ordercast.order.gateways.node import GatewayNode
from ordercast.order.ring.config import RingConfig
from ordercast.order.ring.node import RingNode
from ordercast.order.setup import Domain
from ordercast.wire.header import DESCRIPTOR_SIZE

BATCH = 400  # packets: more than a visit sends, so that no ring ever rests
CONFIG = RingConfig(queue_size_max=4 << 20, message_size_max=1 << 16, backlog_max=16_384)
ONE_RING = ((0,),) * 5
TWO_RINGS = ((0, 1), (0,), (0,), (1,), (1,))
TURNS = 3
READ_SIZE = 1 << 16  # bytes that one look at a socket brings at most

Segments = Sequence[Sequence[int]]  # of each member, by attachment


@dataclass(frozen=True)
class Measured:
    network: str
    size: int
    ordinary_us: float  # CPU per delivered message at an ordinary member
    gateway_us: float  # at the gateway, if there is one
    message_us: float  # at all members together


class RingCluster:
    """Members on segments, joined by function calls. Time stands still but for what forming a network needs."""

    def __init__(self, segments: Segments, make: Callable[[NodeId, Sequence[int]], ObservedEngine]) -> None:
        self.now = Instant(0)
        self.segments = segments
        self.members = [make(NodeId(node), mine) for node, mine in enumerate(segments)]
        self.tokens: deque[tuple[int, Packet]] = deque()
        self.delivered = [0] * len(segments)
        self.submitted = [0] * len(segments)
        self.spent_ns = [0] * len(segments)
        self.load: Submissions | None = None
        self.load_size = 0
        for node, member in enumerate(self.members):
            self.carry_out(node, member.start({}, Incarnation(1), self.now))

    def form(self) -> None:
        """Let everybody become a member of one configuration."""
        while any(
            len(member.configuration.members) < len(self.members) or not member.is_idle() for member in self.members
        ):
            self.now = Instant(self.now + 1_000_000)
            for node, member in enumerate(self.members):
                deadline = member.next_deadline()
                if deadline is not None and deadline <= self.now:
                    self.carry_out(node, member.wake(self.now))
            self.pass_tokens(10_000)
            if self.now > 60_000_000_000:
                sys.exit("the network did not form")

    def send(self, size: int, batch: int = BATCH) -> None:
        """Let everybody send messages of one size from now on, packets in batches."""
        count = batch * max(1, CONFIG.whole_size_max // (size + DESCRIPTOR_SIZE))
        self.load, self.load_size = Submissions([bytes(size)] * count), count * (size + 64)
        for node in range(len(self.members)):
            self.submit(node)

    def submit(self, node: int) -> None:
        member = self.members[node]
        if self.load is not None and member.room() > self.load_size:
            load = [self.load]
            self.submitted[node] += len(self.load.payloads)
            self.timed(node, lambda: member.submit(load, self.now))

    def pass_tokens(self, limit: int) -> None:
        for _ in range(limit):
            if not self.tokens:
                return
            node, token = self.tokens.popleft()
            self.submit(node)
            self.receive(node, [token])

    def receive(self, node: int, packets: list[Packet]) -> None:
        member = self.members[node]
        self.timed(node, lambda: member.receive(packets, self.now))

    def timed(self, node: int, call: Callable[[], list[Effect]]) -> None:
        start = time.process_time_ns()
        effects = call()
        self.spent_ns[node] += time.process_time_ns() - start
        self.carry_out(node, effects)

    def carry_out(self, node: int, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Broadcast):
                segment = self.segments[node][effect.attachment]
                for other, attachment in self.others(node, segment):
                    reads = [Packet(read, size, Lane.DATA, attachment) for read, size in as_read(effect.bursts)]
                    self.receive(other, reads)
            elif isinstance(effect, SendTo):
                segment, target = self.segments[node][effect.attachment], node_of(effect.process)
                attachment = dict(self.others(node, segment, itself=True))[target]
                token = Packet(effect.packet, len(effect.packet), Lane.TOKEN, attachment)
                self.tokens.append((target, token))
            elif isinstance(effect, Deliver):
                self.delivered[node] += len(effect)
            elif isinstance(effect, Then):
                self.timed(node, effect.work)
            elif isinstance(effect, Persist):
                self.carry_out(node, self.members[node].persisted(effect.key, self.now))

    def others(self, node: int, segment: int, *, itself: bool = False) -> list[tuple[int, Attachment]]:
        """Return who is on a segment, and with which attachment."""
        return [
            (other, Attachment(mine.index(segment)))
            for other, mine in enumerate(self.segments)
            if segment in mine and (itself or other != node)
        ]


def as_read(bursts: Sequence[Burst]) -> Iterator[Burst]:
    """Return bursts as sockets bring them: as many packets of one size as fit in a read."""
    for data, size in bursts:
        read = READ_SIZE // size * size
        yield from ((data[at : at + read], size) for at in range(0, len(data), read))


def plain(node: NodeId, _: Sequence[int]) -> ObservedEngine:
    return RingNode(node, CONFIG)


def attached(node: NodeId, segments: Sequence[int]) -> ObservedEngine:
    return GatewayNode(node, CONFIG, [Domain(segment, f"segment{segment}") for segment in segments])


NETWORKS = {
    "plain ring": (ONE_RING, plain),
    "one ring": (ONE_RING, attached),
    "two rings": (TWO_RINGS, attached),
}


def measure(name: str, size: int, seconds: float) -> Measured:
    segments, make = NETWORKS[name]
    cluster = RingCluster(segments, make)
    cluster.form()
    cluster.send(size)
    nodes = len(segments)
    cluster.pass_tokens(40 * nodes)
    cluster.delivered, cluster.spent_ns = [0] * nodes, [0] * nodes
    start = time.process_time()
    while time.process_time() - start < seconds:
        cluster.pass_tokens(4 * nodes)
    each = [spent / 1e3 / max(1, count) for spent, count in zip(cluster.spent_ns, cluster.delivered, strict=True)]
    ordinary = [cost for cost, mine in zip(each, segments, strict=True) if len(mine) == 1]
    gateways = [cost for cost, mine in zip(each, segments, strict=True) if len(mine) > 1]
    return Measured(name, size, sum(ordinary) / len(ordinary), sum(gateways) / max(1, len(gateways)), sum(each))


def best(name: str, size: int, runs: Sequence[Measured]) -> Measured:
    """Return the cheapest of several turns: others on the machine only add."""
    mine = [run for run in runs if (run.network, run.size) == (name, size)]
    return Measured(
        name,
        size,
        min(run.ordinary_us for run in mine),
        min(run.gateway_us for run in mine),
        min(run.message_us for run in mine),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--seconds", type=float, default=1.0, help="CPU time for each row and turn")
    parser.add_argument("--sizes", default="1350,100")
    arguments = parser.parse_args()
    sizes = [int(size) for size in str(arguments.sizes).split(",")]
    runs = [measure(name, size, arguments.seconds) for _ in range(TURNS) for size in sizes for name in NETWORKS]
    rows = [best(name, size, runs) for size in sizes for name in NETWORKS]
    if arguments.json:
        print(json.dumps({"python": platform.python_version(), "rows": [asdict(row) for row in rows]}))
        return
    print(f"CPython {platform.python_version()}, CPU microseconds per delivered message; all members send")
    print(
        f"{'network':12} {'bytes':>6} {'ordinary':>9} {'ratio':>6} {'gateway':>9} {'ratio':>6} {'all':>9} {'speed':>6}"
    )
    for row in rows:
        base = next(one for one in rows if one.size == row.size and one.network == "plain ring")
        gateway = f"{row.gateway_us:9.3f} {row.gateway_us / base.ordinary_us:6.2f}" if row.gateway_us else " " * 16
        print(
            f"{row.network:12} {row.size:6} {row.ordinary_us:9.3f} {row.ordinary_us / base.ordinary_us:6.2f}"
            f" {gateway} {row.message_us:9.3f} {base.message_us / row.message_us:6.2f}"
        )


if __name__ == "__main__":
    main()
