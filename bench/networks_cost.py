"""What the layer for several networks costs by itself: CPU per copy of a packet, on the way up and on the way down.

The engine under it does nothing, so the time of the loop around it is all that has to be taken off. Reads of many
packets are what a busy node gets from the kernel (segmentation offload); single packets are the worst that can come.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ordercast.model.configuration import ChangeReason, Configuration, ConfigurationKind
from ordercast.model.effects import Broadcast, Effect, Install
from ordercast.model.ids import NO_SEQ, ConfigurationId, Incarnation, Instant, NodeId, Position, Seq, process_id_from
from ordercast.model.inputs import Packet, Submission, Submissions
from ordercast.networks.config import NetworksConfig, Replication
from ordercast.networks.layer import Networks
from ordercast.order.ring.config import RingConfig
from ordercast.order.ring.node import RingNode
from ordercast.wire.head import cluster_id_from
from ordercast.wire.header import Heading
from ordercast.wire.run import build_data

NODES = tuple(process_id_from(NodeId(n), Incarnation(1)) for n in (1, 2, 3, 4))
RING = ConfigurationId(8, NODES[0])
PAYLOAD = bytes(1350)


@dataclass(frozen=True)
class Cost:
    what: str
    up_us: float  # per copy received
    down_us: float  # per copy sent


class Idle(RingNode):
    """An engine that does nothing but be there."""

    def __init__(self) -> None:
        super().__init__(NodeId(1), RingConfig())
        self.answer: list[Effect] = []

    def receive(self, packets: Sequence[Packet], now: Instant) -> list[Effect]:
        return []

    def submit(self, submissions: Sequence[Submission | Submissions], now: Instant) -> list[Effect]:
        return self.answer

    def start(self, stored: object, incarnation: Incarnation, now: Instant) -> list[Effect]:
        position = Position(RING, NO_SEQ, 0)
        return [
            Install(Configuration(ConfigurationKind.REGULAR, RING, NODES, RING, NODES, ChangeReason.MERGE, position))
        ]


def measured(style: Replication, networks: int, per_read: int, copies: int = 200_000) -> Cost:
    engine = Idle()
    layer = Networks(engine, NodeId(1), NetworksConfig(count=networks, replication=style), RingConfig())
    layer.start({}, Incarnation(1), Instant(0))
    reads = _reads(per_read, networks)
    rounds = max(1, copies // (per_read * len(reads)))
    up = _timed(lambda: [layer.receive([read], Instant(0)) for read in reads], rounds)
    idle = _timed(lambda: [engine.receive([read], Instant(0)) for read in reads], rounds)
    data = bytes(reads[0].data)
    size = reads[0].segment_size

    def send() -> None:
        engine.answer = [Broadcast([(data, size)])]
        layer.submit([], Instant(0))

    def send_nothing() -> None:
        engine.answer = [Broadcast([(data, size)])]
        engine.submit([], Instant(0))

    sent = networks if style is Replication.ACTIVE else 1 if style is Replication.PASSIVE else 2
    rounds = max(1, copies // (per_read * sent))
    down = _timed(send, rounds) - _timed(send_nothing, rounds)
    what = f"{style.value}, {networks} networks, {per_read} packet{'s' * (per_read > 1)} a read"
    return Cost(what, (up - idle) / (per_read * len(reads)) / 1000, down / (per_read * sent) / 1000)


def _reads(per_read: int, networks: int) -> list[Packet]:
    """Packets of three members in turn, each on every network."""
    heading = Heading(cluster_id_from("ordercast"), RING, NODES)
    reads = []
    for number, member in enumerate(NODES[1:]):
        first = 1 + number * per_read
        packets = [
            build_data(heading, 0, [(0, len(PAYLOAD), 4, PAYLOAD)], member, Seq(seq), 1, seq).packet(Seq(seq))
            for seq in range(first, first + per_read)
        ]
        data = b"".join(packets)
        reads += [Packet(data, len(packets[0]), network=network) for network in range(networks)]
    return reads


def _timed(work: Callable[[], object], rounds: int) -> float:
    """CPU time of one round in nanoseconds: the best of three."""
    best = float("inf")
    for _ in range(3):
        began = time.process_time_ns()
        for _ in range(rounds):
            work()
        best = min(best, (time.process_time_ns() - began) / rounds)
    return best


def costs() -> list[Cost]:
    cases = [(Replication.ACTIVE, 2), (Replication.PASSIVE, 2), (Replication.ACTIVE_PASSIVE, 3)]
    return [measured(style, networks, per_read) for style, networks in cases for per_read in (44, 1)]


def reference() -> float:
    """CPU time in microseconds of a dictionary's answer to twelve bytes cut out of a packet: for comparing machines."""
    table, packet = {bytes(12): 1}, bytes(1400)
    get = table.get

    def work() -> None:
        for _ in range(1000):
            get(packet[:12])

    return _timed(work, 200) / 1000 / 1000


def main() -> None:
    print("CPU of the layer per copy of a packet, in microseconds")
    print(f"  (on this machine now: {reference():.3f} for one look into a dictionary with a slice of a packet)")
    for cost in costs():
        print(f"  {cost.what:45} up {cost.up_us:6.3f}   down {cost.down_us:6.3f}")


if __name__ == "__main__":
    main()
