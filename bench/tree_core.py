"""What the tree engine itself costs beside the ring: all nodes in one process, joined by function calls, no sockets.

    python -m bench.tree_core --nodes 8 64
    python -m bench.tree_core --nodes 8 --calls          # Python calls, which no other program disturbs

Groups are those of `bench.tree`. Time is made up: every turn of all nodes takes 200 microseconds, and what one of them
sends comes with the next turn, each burst as one read. CPU and calls are those of all nodes together for one message;
inputs are turns of a node in which something came or was due: live, each of them is a turn of an event loop. The order
of every group is compared among its members.
"""

from __future__ import annotations

import argparse
import cProfile
import sys
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from statistics import median
from struct import Struct

from bench.tree import ENGINES, GROUPS_PER_HOST, LOADS, RATE, memberships
from ordercast.cli.tables import new_table
from ordercast.cli.terminal import output
from ordercast.model.effects import Broadcast, Deliver, Effect, Persist, SendTo, Subscribed, Unicast
from ordercast.model.ids import Incarnation, Instant, NodeId, node_of
from ordercast.model.inputs import Interest, Lane, Packet, Submissions
from ordercast.order.catalogue import entry_of
from ordercast.order.ring.config import RingConfig
from ordercast.order.setup import Setup

START = Instant(0)
TURN_NS = 200_000
SECOND_NS = 1_000_000_000
QUEUE_SIZE, MESSAGE_SIZE_MAX = 128 << 10, 64 << 10
BATCH = 16  # messages of one submission
BATCHES_MAX = 16  # of one node in one turn
HEAD = Struct(">IIQQ")  # topic, sender, time, number
FORMED_NS = 60 * SECOND_NS


@dataclass
class CoreRow:
    """What one load cost one engine."""

    messages: int = 0
    cpu_us: float = 0.0  # of all nodes, for each message; likewise the next four
    calls: float = 0.0
    sent: float = 0.0  # packets
    taken: float = 0.0
    inputs: float = 0.0
    latency_us: float = 0.0  # median, of made-up time
    is_same_order: bool = True


@dataclass
class CoreCluster:
    """Nodes joined by function calls."""

    engine: str
    nodes: int
    now: Instant = START
    sent: int = 0
    taken: int = 0
    inputs: int = 0
    counted: int = 0
    took: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        entry = entry_of(self.engine)
        ring = RingConfig(
            "bench tree", queue_size_max=QUEUE_SIZE, message_size_max=MESSAGE_SIZE_MAX, members_max=max(2, self.nodes)
        )
        tables = {name: ring if name == "ring" else table() for name, table in entry.tables.items()}
        self.engines = [entry.make(Setup(NodeId(node), tables)) for node in range(self.nodes)]
        drawn = memberships(self.nodes, max(1, round(self.nodes * GROUPS_PER_HOST)), "racks")
        self.topics = {topic: [node - 1 for node in on] for topic, on in drawn.items()}
        self.mine = [[topic for topic, on in self.topics.items() if node in on] for node in range(self.nodes)]
        self.inbox: list[list[Packet]] = [[] for _ in range(self.nodes)]
        self.arriving: list[list[Packet]] = [[] for _ in range(self.nodes)]
        self.subscribed = [0] * self.nodes
        self.hashes: list[dict[int, int]] = [{} for _ in range(self.nodes)]
        self.deadlines: list[Instant | None] = [None] * self.nodes
        self.number = 0
        self.rng = Random(1)
        for node, engine in enumerate(self.engines):
            self.carry_out(node, engine.start({}, Incarnation(1), self.now))

    def form(self) -> None:
        """Let all be together, with what they want."""
        while any(len(engine.configuration.members) < self.nodes for engine in self.engines):
            self.turn()
            if self.now > FORMED_NS:
                sys.exit("the nodes did not come together")
        for node, engine in enumerate(self.engines):
            wanted = [Interest(f"t{topic}", is_wanted=True) for topic in self.mine[node]]
            self.carry_out(node, engine.interest(wanted, self.now))
        while any(got < len(mine) for got, mine in zip(self.subscribed, self.mine, strict=True)):
            self.turn()
        self.rest()

    def rest(self) -> None:
        """Let all be idle."""
        while not all(engine.is_idle() for engine in self.engines):
            self.turn()

    def turn(self) -> None:
        """Let every node take what came since the last turn, and do what is due."""
        self.inbox, self.arriving = self.arriving, [[] for _ in range(self.nodes)]
        for node, engine in enumerate(self.engines):
            if packets := self.inbox[node]:
                self.inputs += 1
                self.taken += sum(-(-len(packet.data) // packet.segment_size) for packet in packets)
                self.carry_out(node, engine.receive(packets, self.now))
            deadline = self.deadlines[node]
            if deadline is not None and deadline <= self.now:
                self.inputs += 1
                self.carry_out(node, engine.wake(self.now))
        self.now = Instant(self.now + TURN_NS)

    def carry_out(self, node: int, effects: Sequence[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Broadcast):
                reads = [Packet(data, size) for data, size in effect.bursts]
                self.sent += sum(-(-len(data) // size) for data, size in effect.bursts)
                for other in range(self.nodes):
                    if other != node:
                        self.arriving[other] += reads
            elif isinstance(effect, SendTo):
                self.sent += 1
                packet = Packet(effect.packet, len(effect.packet), Lane.TOKEN)
                self.arriving[node_of(effect.process)].append(packet)
            elif isinstance(effect, Unicast):
                assert isinstance(effect.target, int)
                self.sent += sum(-(-len(data) // size) for data, size in effect.bursts)
                self.arriving[node_of(effect.target)] += [Packet(data, size, Lane.LINK) for data, size in effect.bursts]
            elif isinstance(effect, Deliver):
                self._take(node, effect)
            elif isinstance(effect, Persist):
                self.carry_out(node, self.engines[node].persisted(effect.key, self.now))
            elif isinstance(effect, Subscribed):
                self.subscribed[node] += len(effect.groups)
        self.deadlines[node] = self.engines[node].next_deadline()

    def _take(self, node: int, deliver: Deliver) -> None:
        for _, _, _, _, payloads, *_ in deliver.parcels:
            topic, sender, at = _read(payloads[0])
            if len(payloads) > 1 and _read(payloads[-1])[0] != topic:
                for data in payloads:
                    self._note(node, *_read(data), data[: HEAD.size], 1)
            else:
                self._note(node, topic, sender, at, b"".join([data[: HEAD.size] for data in payloads]), len(payloads))

    def _note(self, node: int, topic: int, sender: int, at: int, heads: bytes, count: int) -> None:
        on = self.topics[topic]
        if node in on:
            self.hashes[node][topic] = zlib.crc32(heads, self.hashes[node].get(topic, 0))
            self.counted += count * (node == on[0])
            if sender != node:
                self.took.append(self.now - at)

    def send(self, node: int, count: int, size: int) -> None:
        """Send to one of a node's groups."""
        if not self.mine[node]:
            return
        topic = self.rng.choice(self.mine[node])
        self.number += count
        numbers = range(self.number - count, self.number)
        filling = b"\xa5" * (size - HEAD.size)
        payloads = [HEAD.pack(topic, node, self.now, number) + filling for number in numbers]
        self.carry_out(node, self.engines[node].submit([Submissions(payloads, destinations=(f"t{topic}",))], self.now))

    def flood(self, size: int, turns: int) -> None:
        """Let everybody send all that is accepted."""
        for _ in range(turns):
            for node, engine in enumerate(self.engines):
                for _ in range(BATCHES_MAX):
                    if engine.room() < BATCH * (size + 64):
                        break
                    self.send(node, BATCH, size)
            self.turn()

    def trickle(self, size: int, turns: int) -> None:
        """Let somebody send now and then."""
        due = self.now
        for _ in range(turns):
            while due <= self.now:
                due = Instant(due + round(self.rng.expovariate(RATE / SECOND_NS)))
                self.send(self.rng.randrange(self.nodes), 1, size)
            self.turn()


def _read(data: bytes) -> tuple[int, int, int]:
    topic, sender, at, _ = HEAD.unpack_from(data)
    return topic, sender, at


def measured(engine: str, nodes: int, rate: float | None, size: int, turns: int, *, counts_calls: bool) -> CoreRow:
    """Run one load on one engine."""
    cluster = CoreCluster(engine, nodes)
    cluster.form()
    load: Callable[[int, int], None] = cluster.flood if rate is None else cluster.trickle
    load(size, max(20, turns // 10))  # until it flows evenly
    profile = cProfile.Profile()
    cluster.sent = cluster.taken = cluster.inputs = cluster.counted = 0
    cluster.took.clear()
    began = time.process_time()
    if counts_calls:
        profile.runcall(load, size, turns)
    else:
        load(size, turns)
    spent, messages = time.process_time() - began, max(1, cluster.counted)
    row = CoreRow(messages, spent * 1e6 / messages, sum(one.callcount for one in profile.getstats()) / messages)
    row.sent, row.taken, row.inputs = cluster.sent / messages, cluster.taken / messages, cluster.inputs / messages
    row.latency_us = median(cluster.took) / 1000 if cluster.took else 0.0
    cluster.rest()
    for topic, on in cluster.topics.items():
        row.is_same_order &= len({cluster.hashes[node].get(topic) for node in on}) == 1
    return row


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.tree_core", description=__doc__.partition("\n")[0])
    parser.add_argument("--nodes", type=int, nargs="+", default=[8])
    parser.add_argument("--engines", nargs="+", default=ENGINES, choices=ENGINES)
    parser.add_argument("--loads", type=int, nargs="+", default=[0, 1, 2], help="0: 200/s; 1: 1,350 B; 2: 100 B")
    parser.add_argument("--turns", type=int, default=500, help="of a saturated run; 200/s has ten times as many")
    parser.add_argument("--calls", action="store_true", help="count Python calls; CPU is then of no use")
    options = parser.parse_args()
    figures = ("nodes", "messages", "CPU us", "calls", "sent", "taken", "inputs", "latency us")
    table = new_table("load", "engine", *figures, "order", right=figures)
    is_same = True
    for nodes in options.nodes:
        for name, rate, size in [LOADS[load] for load in options.loads]:
            for engine in options.engines:
                turns = options.turns if rate is None else 10 * options.turns
                row = measured(engine, nodes, rate, size, turns, counts_calls=options.calls)
                cells = (row.cpu_us, row.calls, row.sent, row.taken, row.inputs, row.latency_us)
                order = "same" if row.is_same_order else "NOT THE SAME"
                is_same &= row.is_same_order
                table.add_row(name, engine, str(nodes), f"{row.messages:,}", *(f"{cell:,.1f}" for cell in cells), order)
    output().print(table)
    return 0 if is_same else 1


if __name__ == "__main__":
    sys.exit(main())
