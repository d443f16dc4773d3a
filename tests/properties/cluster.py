"""A handful of engines on a table: every effect is carried out at once, virtual time passes when nothing is left to do.

No more than is needed to bring real engines into real states with real packets; `ordercast.sim` is the simulator.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from functools import cache

from ordercast.model.effects import Broadcast, Deliver, Effect, Persist, SendTo
from ordercast.model.ids import Incarnation, Instant, NodeId, ProcessId
from ordercast.model.inputs import Packet, Submission
from ordercast.model.service import Service
from ordercast.order.ring.config import RingConfig
from ordercast.order.ring.node import RingNode
from ordercast.sim.rosters import sim_roster
from ordercast.wire.codec import decode
from ordercast.wire.head import cluster_id_from, kind_of
from ordercast.wire.header import RECOVERED, MessageKind
from tests.packets import header_of, is_of_ring, seq_of

CLUSTER = cluster_id_from("ordercast")
MOMENTS_PER_SITUATION = 4

Work = tuple[ProcessId, bytes | str]  # a packet that comes, or a key that was written


@dataclass(frozen=True, slots=True)
class Moment:
    """A node just before a packet comes."""

    situation: str
    node: RingNode
    packet: bytes
    now: Instant

    def copied(self) -> RingNode:
        return deepcopy(self.node)


class Cluster:
    def __init__(self, size: int, config: RingConfig | None = None) -> None:
        self.now = Instant(0)
        self.nodes: dict[ProcessId, RingNode] = {}
        self.work: deque[Work] = deque()
        self.delivered: dict[ProcessId, list[bytes]] = {}
        self.is_lost: Callable[[ProcessId, bytes], bool] = lambda receiver, packet: False
        self.watch: Callable[[RingNode, bytes, Instant], None] = lambda node, packet, now: None
        for number in range(1, size + 1):
            node = RingNode(NodeId(number), config)
            effects = node.start({}, Incarnation(1), self.now)
            self.nodes[node.process] = node
            self.delivered[node.process] = []
            self.carry_out(node.process, effects)
            # Lists that differ in their version alone: all are members, and all send their lists.
            self.carry_out(node.process, node.enlist(sim_roster(1 + number % 2, range(1, size + 1)), self.now))

    def carry_out(self, me: ProcessId, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Broadcast():
                    others = [process for process in self.nodes if process != me]
                    self.work.extend((process, packet) for packet in effect.packets for process in others)
                case SendTo(process, packet):
                    self.work.append((process, packet))
                case Persist(key, _):
                    self.work.append((me, key))
                case Deliver():
                    self.delivered[me].extend(message[5] for message in effect.messages())
                case _:
                    pass

    def submit(self, process: ProcessId, *submissions: Submission) -> None:
        self.carry_out(process, self.nodes[process].submit(submissions, self.now))

    def crash(self, process: ProcessId) -> None:
        del self.nodes[process]

    def step(self) -> None:
        """One packet or one write; when there is none, time passes until the next timer."""
        if not self.work:
            deadlines = [(node.next_deadline(), process) for process, node in self.nodes.items()]
            deadline, process = min((at, process) for at, process in deadlines if at is not None)
            self.now = max(self.now, deadline)
            self.carry_out(process, self.nodes[process].wake(self.now))
            return
        process, what = self.work.popleft()
        node = self.nodes.get(process)
        if node is None:
            return
        if isinstance(what, str):
            self.carry_out(process, node.persisted(what, self.now))
        elif not self.is_lost(process, what):
            self.watch(node, what, self.now)
            self.carry_out(process, node.receive([Packet(what, len(what))], self.now))

    def run_until(self, done: Callable[[], bool], steps_max: int = 20_000) -> None:
        for _ in range(steps_max):
            if done():
                return
            self.step()
        raise AssertionError(f"not done after {steps_max} steps")

    def is_one_ring(self) -> bool:
        rings = {node.ring.id for node in self.nodes.values()}
        states = {node.state_name for node in self.nodes.values()}
        return len(rings) == 1 and states == {"Operational"}


def _situation(node: RingNode, packet: bytes) -> str:
    kind = MessageKind(kind_of(packet, CLUSTER))
    if kind is MessageKind.PIECE:
        return f"{node.state_name}: {kind.name} of any ring"
    is_data = kind is MessageKind.DATA
    wrapped = "recovered " if is_data and header_of(packet).flags & RECOVERED else ""
    is_own = is_of_ring(packet, node.ring.id) if is_data else decode(packet, CLUSTER).ring == node.ring.id
    whose = "own" if is_own else "another"
    return f"{node.state_name}: {wrapped}{kind.name} of {whose} ring"


@cache
def moments() -> tuple[Moment, ...]:
    """From the life of three nodes: they meet, send, lose packets, one of them crashes meanwhile, another leaves. Then
    three more meet, with packets so small that control messages travel in pieces."""
    found: dict[str, list[Moment]] = {}

    def watch(node: RingNode, packet: bytes, now: Instant) -> None:
        situation = _situation(node, packet)
        known = found.setdefault(situation, [])
        if len(known) < MOMENTS_PER_SITUATION:
            known.append(Moment(situation, deepcopy(node), packet, now))

    cluster = Cluster(3)
    cluster.watch = watch
    first, second, third = cluster.nodes
    cluster.run_until(cluster.is_one_ring)
    for process in (first, second, third):
        cluster.submit(process, *(Submission(bytes(100), Service.SAFE, sender) for sender in range(3)))
        cluster.submit(process, Submission(bytes(5000)), Submission(b"after"))
    for _ in range(40):
        cluster.step()
    cluster.is_lost = lambda receiver, packet: (
        receiver == first and kind_of(packet, CLUSTER) == 1 and seq_of(packet) % 2 == 0
    )
    for process in (first, second, third):
        cluster.submit(process, *(Submission(bytes(1000), Service.AGREED, sender) for sender in range(5)))
    for _ in range(60):
        cluster.step()
    cluster.crash(third)
    cluster.run_until(lambda: cluster.nodes[first].state_name == "Recovery")
    cluster.is_lost = lambda receiver, packet: False
    cluster.run_until(lambda: cluster.is_one_ring() and not cluster.work)
    cluster.submit(second, Submission(b"again"))
    for _ in range(50):
        cluster.step()
    cluster.carry_out(second, cluster.nodes[second].leave(cluster.now))
    for _ in range(50):
        cluster.step()
    small = Cluster(3, RingConfig(packet_size_max=170))
    small.watch = watch
    small.run_until(small.is_one_ring)
    return tuple(moment for situation in sorted(found) for moment in found[situation])
