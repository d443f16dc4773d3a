"""One node in a process of its own, which does what it is told: the program behind `cluster.py`.

Started as `python -m rig.worker '<task>'`, where the task is one JSON object (see `Task`). Orders come as JSON lines on
standard input, `{"do": …}`; what happens goes out as JSON lines, `{"event": …}`: started, view, alarm, answer, left,
failed. An order with an `id` is answered when it is done. When standard input ends, so does the program.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import sys
import time
from collections.abc import Callable, Coroutine
from dataclasses import asdict, dataclass, field, replace
from itertools import combinations
from pathlib import Path
from random import Random
from typing import Any

from ordercast.api.raw import RawNode
from ordercast.cli.topology_text import explained
from ordercast.daemon.config.node import (
    LINK_OFFSET,
    MIB,
    PORT,
    NetworkConfig,
    NodeConfig,
    Peer,
    RingDomain,
    SecurityConfig,
    SiteLink,
    TraceConfig,
    TraceLevel,
    Transport,
    WidePlace,
)
from ordercast.daemon.key_file import keys_of_node
from ordercast.daemon.participant import NodeFailed, Participant
from ordercast.daemon.status.rings_section import rings_section
from ordercast.model.effects import Alarm, Deliver, Install
from ordercast.model.errors import UsageError
from ordercast.model.ids import Instant, NodeId, ProcessId, node_of
from ordercast.model.inputs import EVERYWHERE
from ordercast.model.roster import Place, Roster
from ordercast.model.service import Service
from ordercast.networks.config import NetworksConfig, Replication
from ordercast.order.adaptive.config import AdaptiveConfig
from ordercast.order.gateways.node import GatewayNode
from ordercast.order.links.config import FAR
from ordercast.order.ring.config import RingConfig
from ordercast.order.sites.config import SitesConfig
from ordercast.sealing.opener import counts_of

TICK_S = 0.02  # a sender at a rate wakes up so often
LOOK_S = 0.02  # who waits for a quiet node looks so often
QUEUE_SIZE = 1 * MIB  # short, so that what is sent is soon in the order
MESSAGE_SIZE_MAX = 512 << 10
OWN_CHANCE, TWO_CHANCE = 0.9, 0.05  # that messages go to a topic of their sender; to two at once

Order = dict[str, Any]


@dataclass(frozen=True)
class Task:
    """What a worker is given when it starts."""

    node: int
    addresses: list[str]  # of all nodes, from node 1
    trace: str
    state: str | None
    cluster: str = "chaos"
    transport: str = "multicast"
    group: str = "239.192.79.67"
    segmentation: bool = True
    inbox_size_max: int = 32 * MIB
    stall_ns: int = 30_000_000_000
    ring: dict[str, Any] = field(default_factory=dict)  # keys of RingConfig that are not as usual
    more_addresses: list[list[str]] = field(default_factory=list)  # of all nodes on each further network
    transports: list[str] = field(default_factory=list)  # of each further network; what is left out is as the first
    listed: list[int] | None = None  # nodes on the node list at first; None: all
    version: int = 1  # of that list
    rings: list[dict[str, list[str]]] = field(default_factory=list)  # of each of several: nodes, and addresses there
    wide: list[str] = field(default_factory=list)  # addresses for other sites, where the rings are sites
    link_loss_ns: int = 2_500_000_000  # silence that ends a link between sites
    engine: str = "ring"
    adaptive: dict[str, Any] = field(default_factory=dict)  # keys of AdaptiveConfig that are not as usual
    topics: dict[str, list[int]] = field(default_factory=dict)  # nodes that want each; messages go to some of them
    replication: str = "active"
    redundancy: dict[str, Any] = field(default_factory=dict)  # keys of NetworksConfig that are not as usual
    key: str | None = None  # the key file; None: packets are clear

    def peers(self, listed: list[int] | None) -> tuple[Peer, ...]:
        more = list(zip(*self.more_addresses, strict=True)) or [()] * len(self.addresses)
        return tuple(
            Peer(
                NodeId(n),
                f"n{n}",
                address,
                more=tuple(Place(other, PORT + 1, PORT) for other in others),
                rings=rings_on(n, self.rings),
                wide=WidePlace(self.wide[n - 1], PORT + LINK_OFFSET, PORT + LINK_OFFSET) if self.wide else None,
            )
            for n, (address, others) in enumerate(zip(self.addresses, more, strict=True), 1)
            if listed is None or n in listed
        )

    def config(self) -> NodeConfig:
        ring = {"queue_size_max": QUEUE_SIZE, "message_size_max": MESSAGE_SIZE_MAX, **self.ring}
        return NodeConfig(
            name=f"n{self.node}",
            node=NodeId(self.node),
            peers=self.peers(self.listed),
            nodes_version=self.version,
            ring=RingConfig(cluster=self.cluster, **ring),
            security=SecurityConfig(insecure=True) if self.key is None else SecurityConfig(Path(self.key)),
            engine=self.engine,
            adaptive=AdaptiveConfig(**self.adaptive),
            sites=SitesConfig(links=replace(FAR, silence_ns=self.link_loss_ns)),
            site_links=self._site_links(),
            rings=domains_of(self.rings, self._network(self.transport), len(self.more_addresses)),
            network=self._network(self.transport),
            more_networks=tuple(self._network(kind) for kind in self._transports()),
            redundancy=NetworksConfig(replication=Replication(self.replication), **self.redundancy),
            trace=TraceConfig(TraceLevel.FULL, Path(self.trace)),
            inbox_size_max=self.inbox_size_max,
            stall_ns=self.stall_ns,
            state_folder=None if self.state is None else Path(self.state),
        )

    def _site_links(self) -> tuple[SiteLink, ...]:
        """Every two sites are joined."""
        names = [f"r{number}" for number, _ in enumerate(self.rings, 1)]
        return tuple(SiteLink(*pair) for pair in combinations(names, 2)) if self.wide else ()

    def _network(self, transport: str) -> NetworkConfig:
        return NetworkConfig(Transport(transport), self.group, segmentation=self.segmentation)

    def _transports(self) -> list[str]:
        return [*self.transports, *[self.transport] * len(self.more_addresses)][: len(self.more_addresses)]

    def text(self) -> str:
        return json.dumps(asdict(self))


def domains_of(rings: list[dict[str, list[str]]], network: NetworkConfig, more: int = 0) -> tuple[RingDomain, ...]:
    """The rings, on networks of their own that have one multicast group: nothing of one is heard on another."""

    def peer(node: str, addresses: list[str]) -> Peer:
        places = tuple(Place(address, PORT + 1, PORT) for address in addresses[1:])
        return Peer(NodeId(int(node)), f"n{node}", addresses[0], more=places)

    return tuple(
        RingDomain(f"r{number}", number, network, (network,) * more, tuple(peer(*one) for one in ring.items()))
        for number, ring in enumerate(rings, 1)
    )


def rings_on(node: int, rings: list[dict[str, list[str]]]) -> tuple[str, ...]:
    """Return the names of those that a node is on."""
    return tuple(f"r{number}" for number, ring in enumerate(rings, 1) if str(node) in ring)


def tell(event: str, **details: Any) -> None:
    """One line, in one write."""
    os.write(sys.stdout.fileno(), f"{json.dumps({'event': event, **details})}\n".encode())


class Telling(Participant):
    """Tells of views and alarms when they happen, whatever the application does."""

    def on_view(self, effect: Install, at: Instant) -> None:
        super().on_view(effect, at)
        view = effect.configuration
        tell("view", kind=view.kind.value, id=str(view.id), members=nodes_of(view.members), reason=view.reason.name)

    def on_alarm(self, alarm: Alarm, at: Instant) -> None:
        super().on_alarm(alarm, at)
        about = None if alarm.process is None else node_of(alarm.process)
        evidence = None if alarm.evidence is None else alarm.evidence.name
        tell("alarm", kind=alarm.kind.name, text=alarm.text, about=about, network=alarm.network, evidence=evidence)


class ToldNode(Telling, RawNode):
    pass


def resident_mib() -> float:
    """Return the memory that this process holds now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / MIB


def _network_report(node: RawNode) -> dict[str, Any]:
    """Return who asks all to stop in a network of rings, and what a person is told; nothing of other engines."""
    if not isinstance(node.engine, GatewayNode):
        return {}
    section = asdict(rings_section(node))
    return {"holds": [hold["process"] for hold in section["holds"]], "explained": explained(section)}


def _sealing_report(node: RawNode) -> dict[str, Any]:
    """Return the key that is used, and what was refused."""
    if node.sealing is None:
        return {}
    return {"key": node.sealing.keys.used, "refused": counts_of(node.sealing.opener.refused)}


def nodes_of(processes: tuple[ProcessId, ...]) -> list[int]:
    return sorted(node_of(process) for process in processes)


class Worker:
    def __init__(self, task: Task) -> None:
        self.node = ToldNode(task.config())
        self._task = task
        self._rng = Random(task.node)
        self._senders: set[asyncio.Task[None]] = set()
        self._may_read = asyncio.Event()
        self._may_read.set()
        self._is_reading = False  # something that was delivered is being taken
        self._delivered = 0
        self._delivered_at = time.monotonic()
        self._silence_s = 0.0  # the longest between two deliveries since somebody asked for it
        self._sent = 0

    # Orders

    async def obey(self, order: Order) -> bool:
        """False when that was the last one."""
        match order["do"]:
            case "send":
                sender = asyncio.create_task(self._send(order))
                self._senders.add(sender)
                sender.add_done_callback(self._on_sent)
            case "hush":
                for sender in self._senders:
                    sender.cancel()
            case "report" | "ping":
                pass
            case "time":  # from now on
                self._delivered_at, self._silence_s = time.monotonic(), 0.0
            case "drain":
                await self._until(self._is_drained)
            case "hear":
                goal = self.node.counters.messages_delivered + order["messages"]
                await self._until(lambda: self.node.counters.messages_delivered >= goal)
            case "block":
                time.sleep(order["seconds"])  # noqa: ASYNC251 (that is the fault)
            case "enlist":
                peers = self._task.peers(order["nodes"])
                self.node.enlist(Roster(order["version"], tuple(peer.entry for peer in peers)))
            case "rekey":
                keys = keys_of_node(self.node.config)
                assert keys is not None
                self.node.rekey(replace(keys, at_once=order["at_once"]))
            case "read":
                self._may_read.set() if order["on"] else self._may_read.clear()
            case "leave":
                for sender in self._senders:
                    sender.cancel()
                await asyncio.gather(*self._senders, return_exceptions=True)
                await self.node.leave()
                tell("left")
                return False
            case unknown:
                raise ValueError(f"what is {unknown}?")
        if "id" in order:
            tell("answer", to=order["id"], report=self._report())
        return True

    def _report(self) -> dict[str, Any]:
        node, counters = self.node, self.node.counters
        lanes = [lane for network in node.networks for lane in network.lanes]
        return {
            "state": node.engine.state_name,
            "ring": str(node.engine.configuration.id),
            "members": nodes_of(node.members),
            "sending": len(self._senders),
            "idle": node.engine.is_idle() and not self._has_unread(),
            "room": node.engine.room(),
            "submitted": counters.messages_submitted,
            "delivered": counters.messages_delivered,
            "taken": self._delivered,
            "silence_s": self._silence_s,
            "views": len(counters.views),
            "pauses": counters.pauses,
            "longest_pause_ns": counters.longest_pause_ns,
            "refused": dict(counters.refused),
            "occurred": dict(counters.occurred),
            "kernel_drops": sum(lane.kernel_drops() for lane in lanes),
            "packets_received": sum(lane.counters.packets_received for lane in lanes),
            "retransmitted": node.engine.stats.packets_retransmitted,
            "segmentation": node.sockets.segmentation,
            "trace_error": node.trace_error,
            "resident_mib": resident_mib(),
            **_network_report(node),
            **_sealing_report(node),
        }

    # The application

    async def receive(self) -> None:
        async for batch in self.node.batches():
            await self._may_read.wait()
            if isinstance(batch, Deliver):
                self._delivered += len(batch)
                self._silence_s = max(self._silence_s, time.monotonic() - self._delivered_at)
                self._delivered_at = time.monotonic()

    def _has_unread(self) -> bool:
        return self._delivered < self.node.counters.messages_delivered

    async def _send(self, order: Order) -> None:
        """`count` messages (None: without end), `rate` in a second (None: as fast as they are accepted)."""
        left, rate = order["count"], order["rate"]
        began, sent = time.monotonic(), 0
        while left is None or left > 0:
            due = order["batch"] if rate is None else int((time.monotonic() - began) * rate) - sent
            due = due if left is None else min(due, left)
            # One service at a time: a batch has one.
            service = Service[self._rng.choice(order["services"])]
            payloads = [self._payload(self._rng.choice(order["sizes"])) for _ in range(min(due, order["batch"]))]
            if payloads:
                await self.node.submit_many(payloads, service, self._destinations())
                sent += len(payloads)
                left = None if left is None else left - len(payloads)
            await asyncio.sleep(TICK_S if rate is not None else 0)

    def _topics(self) -> list[str]:
        """Return those that this node wants."""
        return [topic for topic, nodes in sorted(self._task.topics.items()) if self._task.node in nodes]

    def _destinations(self) -> tuple[str, ...]:
        """Draw where the next messages go: mostly to a topic of this node, at times to others or to two; without topics
        everywhere."""
        topics, mine = sorted(self._task.topics), self._topics()
        if not topics:
            return EVERYWHERE
        known = mine if mine and self._rng.random() < OWN_CHANCE else topics
        count = min(len(known), 2 if self._rng.random() < TWO_CHANCE else 1)
        return tuple(sorted(self._rng.sample(known, count)))

    def _on_sent(self, sender: asyncio.Task[None]) -> None:
        self._senders.discard(sender)
        if not sender.cancelled() and (error := sender.exception()) is not None:
            tell("failed", why=f"sending: {error}")

    def _payload(self, size: int) -> bytes:
        self._sent += 1
        return self._sent.to_bytes(8, "big").ljust(size, b"\xa5")[:size]

    def _is_drained(self) -> bool:
        """All that was submitted is delivered, and taken; nothing is under way."""
        return not self._senders and bool(self._report()["idle"])

    async def _until(self, is_so: Callable[[], bool]) -> None:
        """The engine tells nobody that it has become quiet, so it is looked at."""
        while not is_so():  # noqa: ASYNC110
            await asyncio.sleep(LOOK_S)

    # The program

    async def run(self) -> None:
        lines = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
        await self.node.start()
        if mine := self._topics():
            self.node.want(*mine)
        tell("started", process=self.node.process, pid=os.getpid())
        receiving = asyncio.create_task(self.receive())
        obeying = asyncio.create_task(self._obey_all(lines))
        await asyncio.wait((receiving, obeying), return_when=asyncio.FIRST_COMPLETED)
        if receiving.done() and not receiving.cancelled() and receiving.exception() is not None:
            receiving.result()
        await obeying
        self._may_read.set()
        await self.node.leave()
        await receiving

    async def _obey_all(self, lines: asyncio.StreamReader) -> None:
        """One after the other but for those that wait: they do not hold up the next."""
        waiting: set[asyncio.Task[bool]] = set()
        while line := await lines.readline():
            order = json.loads(line)
            if order["do"] in ("drain", "hear"):
                task = asyncio.create_task(self.obey(order))
                waiting.add(task)
                task.add_done_callback(waiting.discard)
            elif not await self.obey(order):
                break
        for task in waiting:
            task.cancel()


def main() -> int:
    worker_task = Task(**json.loads(sys.argv[1]))

    async def work() -> None:
        await Worker(worker_task).run()

    return protected(work)


def protected(work: Callable[[], Coroutine[Any, Any, None]]) -> int:
    try:
        asyncio.run(work())
    except (UsageError, NodeFailed) as error:
        tell("failed", why=str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
