"""One node of `bench.tree`, in a process of its own: it wants topics, sends to them, and says what came of it.

Orders come as JSON lines on standard input: `{"seconds": …, "rate": …, "size": …}` is a run (rate null: all that is
accepted), an empty object the end. Each is answered by one line. All nodes are on one machine, so that clocks compare.
"""

from __future__ import annotations

import asyncio
import json
import struct
import sys
import time
import zlib
from contextlib import suppress
from random import Random
from typing import Any

from ordercast.api.raw import RawNode
from ordercast.daemon.config.node import NodeConfig, Peer, SecurityConfig
from ordercast.model.effects import Deliver, Subscribed
from ordercast.model.ids import NodeId
from ordercast.order.ring.config import RingConfig

HEAD = struct.Struct("=HHIq")  # topic, sender, number, time
QUEUE_SIZE, MESSAGE_SIZE_MAX = 128 << 10, 64 << 10
BATCH = 16
LOOK_S = 0.02
IDLE_S = 60.0  # to deliver what was accepted
KEPT_MAX = 20_000  # latencies of one run


class Waiting(RawNode):
    """Knows whether all that it wants comes here."""

    subscribed = 0

    def on_subscribed(self, effect: Subscribed) -> None:
        super().on_subscribed(effect)
        self.subscribed += len(effect.groups)


class TreeBenchNode:
    def __init__(self, task: dict[str, Any]) -> None:
        self.me: int = task["node"]
        self.topics: dict[int, list[int]] = {int(topic): nodes for topic, nodes in task["topics"].items()}
        self.mine = [topic for topic, nodes in self.topics.items() if self.me in nodes]
        self.count = len(task["addresses"])
        peers = tuple(Peer(NodeId(n), f"n{n}", address) for n, address in enumerate(task["addresses"], 1))
        ring = RingConfig("bench tree", queue_size_max=QUEUE_SIZE, message_size_max=MESSAGE_SIZE_MAX, **task["ring"])
        self.node = Waiting(
            NodeConfig(
                name=f"n{self.me}",
                node=NodeId(self.me),
                peers=peers,
                ring=ring,
                engine=task["engine"],
                security=SecurityConfig(insecure=True),
            )
        )
        self.rng = Random(self.me)
        self.hashes: dict[int, int] = {}  # of the messages to each topic, in order
        self.sent = 0
        self.wanted = set(self.mine)
        self.first = {topic for topic in self.mine if self.topics[topic][0] == self.me}
        self._begin()

    def _begin(self) -> None:
        self.took: list[int] = []
        self.counted = 0  # messages to topics of which this node is the first member
        self.is_counting = True

    def _take(self, deliver: Deliver) -> None:
        now, took, hashes, me = time.monotonic_ns(), self.took, self.hashes, self.me
        for _, _, _, _, payloads, *_ in deliver.parcels:
            for data in payloads:
                topic, sender, _, at = HEAD.unpack_from(data)
                if topic not in self.wanted:
                    continue
                hashes[topic] = zlib.crc32(data[: HEAD.size], hashes.get(topic, 0))
                if self.is_counting:
                    self.counted += topic in self.first
                    if sender != me and len(took) < KEPT_MAX:
                        took.append(now - at)

    async def _listen(self) -> None:
        async for piece in self.node.batches():
            if isinstance(piece, Deliver):
                self._take(piece)

    def _message(self, topic: int, size: int) -> bytes:
        self.sent += 1
        return HEAD.pack(topic, self.me, self.sent, time.monotonic_ns()).ljust(size, b"\xa5")

    async def _send(self, count: int, size: int) -> None:
        if self.mine:
            topic = self.rng.choice(self.mine)
            await self.node.submit_many([self._message(topic, size) for _ in range(count)], to=(f"t{topic}",))

    async def run(self, order: dict[str, Any]) -> dict[str, Any]:
        self._begin()
        rate, size, began, cpu = order["rate"], order["size"], time.monotonic(), time.process_time()
        until, first, packets = began + order["seconds"], self.sent, self._packets()
        due = began + self.rng.random() / rate if rate else 0.0
        while (now := time.monotonic()) < until:
            if not rate:
                with suppress(TimeoutError):  # nothing is accepted any more
                    async with asyncio.timeout(until - now):
                        await self._send(BATCH, size)
                await asyncio.sleep(0)
            elif now >= due:
                due += 1 / rate
                await self._send(1, size)
            else:
                await asyncio.sleep(min(due, until) - now)
        self.is_counting = False
        cpu, packets = time.process_time() - cpu, self._packets() - packets
        ended = time.monotonic() + IDLE_S
        while not (is_idle := self.node.engine.is_idle()) and time.monotonic() < ended:  # noqa: ASYNC110
            await asyncio.sleep(LOOK_S)
        return {
            "sent": self.sent - first,
            "counted": self.counted,
            "cpu_s": cpu,
            "packets": packets,
            "took_ns": sorted(self.took)[:: max(1, len(self.took) // 500)],
            "is_idle": is_idle,
        }

    def _packets(self) -> int:
        """Return how many packets this node has sent and taken."""
        lanes = [lane.counters for network in self.node.networks for lane in network.lanes]
        return sum(lane.packets_sent + lane.packets_received for lane in lanes)

    async def work(self) -> None:
        lines = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
        async with self.node as node:
            if self.mine:
                node.want(*(f"t{topic}" for topic in self.mine))
            listening = asyncio.create_task(self._listen())
            while len(node.members) < self.count or node.subscribed < len(self.mine):  # noqa: ASYNC110
                await asyncio.sleep(LOOK_S)
            say({"ready": self.me})
            while order := json.loads(await lines.readline() or "{}"):
                if "seconds" in order:
                    say(await self.run(order))
                else:  # all are idle: what came is final
                    say({"hashes": self.hashes, "occurred": dict(node.counters.occurred)})
                    self.hashes = {}
            listening.cancel()


def say(document: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(document) + "\n")
    sys.stdout.flush()


def main() -> int:
    asyncio.run(TreeBenchNode(json.loads(sys.argv[1])).work())
    return 0


if __name__ == "__main__":
    sys.exit(main())
