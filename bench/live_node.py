"""One node of `bench/live.py`, in a process (and usually a network namespace) of its own.

Reads one JSON line with what to do, answers with JSON lines: `ready` when all members are there, and after `go` the
result. Payloads begin with (sender, counter, time of sending); the order hash is taken over sender and counter of every
message in the order of delivery, so it is equal at all members exactly if the order was.
"""

from __future__ import annotations

import asyncio
import gc
import json
import resource
import struct
import sys
import time
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

from rig.worker import domains_of, rings_on

from ordercast.api.raw import RawNode
from ordercast.daemon.config.node import (
    PORT,
    NetworkConfig,
    NodeConfig,
    Peer,
    SecurityConfig,
    TraceConfig,
    TraceLevel,
    Transport,
)
from ordercast.model.configuration import Configuration, ConfigurationKind
from ordercast.model.effects import Deliver, Subscribed
from ordercast.model.ids import NodeId
from ordercast.model.inputs import Interest
from ordercast.model.roster import Place
from ordercast.model.service import Service
from ordercast.networks.config import NetworksConfig, Replication
from ordercast.order.gateways.config import GatewaysConfig
from ordercast.order.membership.stats import RingStats
from ordercast.order.ring.config import RingConfig

STAMP = struct.Struct("=IIq")  # sender, counter, monotonic time in ns
IDENTITY_SIZE = 8
QUEUE_SIZE = 2 << 20
EVERYBODY = "everybody"
LOCAL = 1 << 31  # beside the sender: for its own ring


class LocalNode(RawNode):
    """Wants the messages of its own ring and those for everybody, and sends to either."""

    def __init__(self, config: NodeConfig, ring: str) -> None:
        super().__init__(config)
        self.wanted = (ring, EVERYBODY)
        self.granted: set[str] = set()
        self.is_granted = asyncio.Event()

    async def subscribe(self) -> None:
        """Say what is wanted, and wait until that is in force."""
        self._tell_interest([Interest(group, is_wanted=True) for group in self.wanted])
        await self.is_granted.wait()

    def on_subscribed(self, effect: Subscribed) -> None:
        super().on_subscribed(effect)
        self.granted.update(effect.groups)
        if self.granted.issuperset(self.wanted):
            self.is_granted.set()

    async def send(self, payloads: list[bytes], service: Service, *, is_local: bool) -> None:
        size = sum(map(len, payloads)) + self._overhead * len(payloads)
        while not self._has_room_for(size):
            await self._room()
        self._hand_over(payloads, service, 0, size, (self.wanted[0] if is_local else EVERYBODY,))
        await self.give_turn()


class Load:
    """Sends, receives, counts."""

    def __init__(self, task: dict[str, Any], node: RawNode) -> None:
        self.task, self.node = task, node
        self.size = max(int(task["size"]), STAMP.size)
        self.service = Service[task["service"].upper()]
        self.delivered = 0
        self.hash = 0
        self.last = 0.0
        self.latencies: list[int] = []
        self.counter = 0
        self.near = frozenset(task.get("near", ()))  # who sends to the group of this node's ring, if that matters
        self.local = 0  # those of them that went to the own ring
        self.views: list[tuple[float, int, bool]] = []  # when, how many members, regular or transitional
        self.changed = asyncio.Event()
        self.total = -1  # how many there will be in the end, once that is known
        self.complete = asyncio.Event()
        self.stop = asyncio.Event()

    # Receiving

    async def receive(self) -> None:
        measured = bool(self.task["rate"])
        if self.task["delivery"] == "messages":
            await self._receive_messages(measured)
        else:
            await self._receive_batches(measured)

    async def _receive_batches(self, measured: bool) -> None:
        async for batch in self.node.batches():
            if isinstance(batch, Deliver):
                for _, _, _, _, payloads, *_ in batch.parcels:
                    if self.near and self._is_for_others(payloads[0]):
                        continue
                    self.delivered += len(payloads)
                    self.hash = zlib.crc32(b"".join([data[:IDENTITY_SIZE] for data in payloads]), self.hash)
                    if measured:  # the first of each run has waited longest
                        self.latencies.append(time.monotonic_ns() - STAMP.unpack_from(payloads[0])[2])
                if self.delivered == self.total:
                    self.complete.set()
            else:
                self._on_view(batch)

    def _is_for_others(self, payload: bytes) -> bool:
        """Whether messages went to a group that this node does not want: some come until that is known."""
        sender = STAMP.unpack_from(payload)[0]
        return bool(sender & LOCAL) and sender & ~LOCAL not in self.near

    async def _receive_messages(self, measured: bool) -> None:
        async for event in self.node.stream():
            if isinstance(event, Configuration):
                self._on_view(event)
                continue
            self.delivered += 1
            self.hash = zlib.crc32(event.data[:IDENTITY_SIZE], self.hash)
            if self.delivered == self.total:
                self.complete.set()
            if measured:
                self.latencies.append(time.monotonic_ns() - STAMP.unpack_from(event.data)[2])

    def _on_view(self, view: Configuration) -> None:
        self.views.append((time.monotonic(), len(view.members), view.kind is ConfigurationKind.REGULAR))
        self.changed.set()

    async def delivers(self, total: int) -> None:
        """Waits until so many were delivered."""
        self.total = total
        if self.delivered < total:
            await self.complete.wait()

    # Sending

    async def send(self) -> None:
        if not self.task["sends"]:
            return
        if self.task["rate"]:
            await self._send_at_rate(float(self.task["rate"]))
        else:
            await self._send_all_it_can()

    async def _send_all_it_can(self) -> None:
        batch = max(1, min(256, 131072 // self.size))
        filler = bytes(self.size - STAMP.size)
        me, pack = int(self.task["node"]), STAMP.pack
        while not self.stop.is_set():
            now, counter = time.monotonic_ns(), self.counter
            self.counter += batch
            is_local = bool(self.near) and self.local <= counter * (1 - float(self.task["spread"]))
            name = me | LOCAL * is_local
            payloads = [pack(name, counter + i, now) + filler for i in range(batch)]
            if isinstance(self.node, LocalNode):
                self.local += batch * is_local
                await self.node.send(payloads, self.service, is_local=is_local)
            else:
                await self.node.submit_many(payloads, self.service)

    async def _send_at_rate(self, rate: float) -> None:
        filler = bytes(self.size - STAMP.size)
        per_tick = max(1, round(rate / 1000))  # timers are no finer than a millisecond
        period = per_tick / rate
        next_at = (time.monotonic() // period + 1 + float(self.task.get("phase", 0.0))) * period  # all have one clock
        await asyncio.sleep(next_at - time.monotonic())
        while not self.stop.is_set():
            now = time.monotonic_ns()
            stamps = [STAMP.pack(int(self.task["node"]), self.counter + i, now) for i in range(per_tick)]
            self.counter += per_tick
            await self.node.submit_many([stamp + filler for stamp in stamps], self.service)
            next_at += period
            await asyncio.sleep(max(0.0, next_at - time.monotonic()))


def config_from(task: dict[str, Any]) -> NodeConfig:
    more = list(zip(*task.get("more_addresses", ()), strict=True)) or [()] * len(task["addresses"])
    peers = tuple(
        Peer(
            NodeId(i),
            f"n{i}",
            address,
            more=tuple(Place(other, PORT + 1, PORT) for other in others),
            rings=rings_on(i, task.get("rings", [])),
        )
        for i, (address, others) in enumerate(zip(task["addresses"], more, strict=True), 1)
    )
    ring = replace(
        RingConfig(queue_size_max=QUEUE_SIZE, message_size_max=1 << 20),
        accelerated=bool(task["accelerated"]),
        **task.get("ring", {}),
    )
    network = NetworkConfig(
        transport=Transport(task.get("transport", "multicast")),
        segmentation=bool(task["segmentation"]),
        mtu=int(task.get("mtu", NetworkConfig().mtu)),
    )
    trace = TraceConfig(TraceLevel(task["trace"]), Path(task["trace_folder"])) if task.get("trace_folder") else None
    config = NodeConfig(
        f"n{task['node']}",
        NodeId(int(task["node"])),
        peers if len(peers) else (),
        ring,
        network,
        (network,) * len(task.get("more_addresses", ())),
        NetworksConfig(replication=Replication(task.get("replication", "active"))),
        trace or TraceConfig(),
        security=SecurityConfig(Path(task["key"])) if "key" in task else SecurityConfig(insecure=True),
        engine=task.get("engine", "ring"),
        gateways=replace(GatewaysConfig(), **({"gateway_share": task["share"]} if "share" in task else {})),
        rings=domains_of(task.get("rings", []), network),
    )
    return config.with_packet_size() if "mtu" in task else config


async def work(task: dict[str, Any]) -> None:
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    config, ring = config_from(task), task.get("local_ring")
    node = RawNode(config) if ring is None else LocalNode(config, ring)
    await node.start()
    load = Load(task, node)
    receiving = asyncio.create_task(load.receive())
    while len(node.members) < int(task["members"]):
        load.changed.clear()
        await load.changed.wait()
    if isinstance(node, LocalNode):
        await node.subscribe()
    tell({"ready": task["node"]})
    if (await lines.readline()).strip() == b"watch":
        await watch(load, node)
    views = len(load.views)
    sending = asyncio.create_task(load.send())
    await asyncio.sleep(0.5)  # until everybody is at it
    before, began, cpu = load.delivered, time.monotonic(), time.process_time()
    load.latencies.clear()
    idle_before, packets_before = resource.getrusage(resource.RUSAGE_SELF), packets_sent(node)
    await asyncio.sleep(float(task["seconds"]))
    delivered, seconds, spent = load.delivered - before, time.monotonic() - began, time.process_time() - cpu
    idle_after, packets = resource.getrusage(resource.RUSAGE_SELF), packets_sent(node) - packets_before
    tell({"measured": task["node"]})
    await lines.readline()  # stop
    load.stop.set()
    await sending
    tell({"stopped": load.counter, "local": load.local})
    total = int((await lines.readline()).decode())  # everybody has stopped: so many were sent
    await load.delivers(total)
    sockets, stats = node.sockets, node.engine.stats
    token = stats if isinstance(stats, RingStats) else RingStats()
    alarms = [alarm.text for _, alarm in node.counters.alarms if alarm.network is not None]
    tell(
        {
            "alarms": alarms,
            "node": task["node"],
            "ring": task.get("local_ring"),
            "delivered": delivered,
            "seconds": seconds,
            "cpu": spent,
            "system": idle_after.ru_stime - idle_before.ru_stime,
            "hash": load.hash,
            "total": load.delivered,
            "latencies": sorted(load.latencies),
            "new_views": len(load.views) - views,
            "retransmitted": stats.packets_retransmitted,
            "visits": token.visits,
            "limited": token.limited_visits,
            "rotation_ns": token.rotation_ns,
            "occurred": dict(node.counters.occurred),
            "segmentation": sockets.segmentation,
            "reads": sockets.data.counters.reads,
            "packets": sockets.data.counters.packets_received,
            "drops": sockets.data.kernel_drops(),
            "sent": packets,
            "refused": dict(node.counters.refused),
            "rss_kib": idle_after.ru_maxrss,
        }
    )
    await lines.readline()  # all have told
    await node.leave()
    await receiving


def packets_sent(node: RawNode) -> int:
    return sum(lane.counters.packets_sent for sockets in node.networks for lane in sockets.lanes)


async def watch(load: Load, node: RawNode) -> None:
    """Send a little, and tell every view as it comes, until killed."""
    sending = asyncio.create_task(load.send())
    load.views.clear()
    while not sending.done():
        load.changed.clear()
        for at, members, regular in load.views:
            tell({"at": at, "members": members, "regular": regular})
        load.views.clear()
        await load.changed.wait()


def tell(document: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(document) + "\n")
    sys.stdout.flush()


def main() -> None:
    task = json.loads(sys.stdin.readline())
    gc.freeze()
    asyncio.run(work(task))


if __name__ == "__main__":
    main()
