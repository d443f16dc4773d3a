"""An engine of one ring that is attached to a network of which nothing else exists: what the ring hands up, it delivers
as a ring that stands alone would.

On every ring it says hello first, and with every submission something of its own as freight, so that both queues are
in use. A `Network` hears what all processes of a run were handed, and complains.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from ordercast.model.configuration import ChangeReason, Configuration, ConfigurationKind
from ordercast.model.effects import Broadcast, Deliver, Effect, Install, Parcel
from ordercast.model.ids import (
    SLOT_MAX,
    ConfigurationId,
    Incarnation,
    Instant,
    NodeId,
    Position,
    ProcessId,
    node_of,
)
from ordercast.model.inputs import Interest, Packet, Stored, Submission, Submissions
from ordercast.order.attached import Attached, RingChange, RingPackets
from ordercast.order.clock import CLOCK_KEY, StoredClock
from ordercast.order.gateways.items import HelloItem, HoldItem
from ordercast.order.gateways.packets import control_freight, is_control
from ordercast.order.large import LargeMessages
from ordercast.order.ring.config import RingConfig
from ordercast.order.ring.node import RingNode
from ordercast.wire.head import KIND_AT
from ordercast.wire.header import FLAGS_AT, RECOVERED, RETRANSMITTED, TIMESTAMP, MessageKind
from ordercast.wire.run import PacketRun
from tests.engines.enclosing import Enclosing
from tests.packets import messages_of


@dataclass
class Network:
    """What must hold of all rings of a run."""

    ticks: dict[tuple[ConfigurationId, int], int] = field(default_factory=dict)  # by ring and seq
    senders: dict[tuple[ConfigurationId, int], ProcessId] = field(default_factory=dict)  # by ring and tick
    births: dict[ConfigurationId, int] = field(default_factory=dict)
    installed: defaultdict[ConfigurationId, set[ProcessId]] = field(default_factory=lambda: defaultdict(set))
    used: defaultdict[NodeId, int] = field(default_factory=lambda: defaultdict(int))  # the highest tick of a node
    residual: int = 0

    def install(self, process: ProcessId, change: RingChange) -> None:
        ring = change.configuration.id
        if change.configuration.reason is ChangeReason.STARTED:
            assert change.birth > self.used[node_of(process)], "a life begins above all that was before"
        assert self.births.setdefault(ring, change.birth) == change.birth, "a ring is born once"
        self.installed[ring].add(process)
        self.residual += len(change.residual)
        for run in change.residual:
            assert run.timestamp(run.last) < change.birth, "a birth is above all that the old rings had"

    def hand_up(self, configuration: Configuration, packets: RingPackets) -> None:
        assert packets.origin == configuration.id
        missing = set(configuration.members) - self.installed[configuration.id]
        assert not missing, "what is handed up as regular proves that all have installed the ring"
        for run in packets.runs:
            self.note(packets.origin, run)

    def note(self, ring: ConfigurationId, run: PacketRun) -> None:
        for seq in range(run.seq, run.last + 1):
            tick = run.timestamp(seq)
            assert self.ticks.setdefault((ring, seq), tick) == tick, "a packet has one tick everywhere"
            assert self.ticks.get((ring, seq - 1), 0) <= tick, "ticks never fall on a ring"
            assert self.senders.setdefault((ring, tick), run.originator) == run.originator, "a tick is one visit's"
            assert self.births.get(ring, 0) < tick, "whatever a ring has is above its birth"

    def send(self, node: NodeId, packet: bytes, clock: StoredClock) -> None:
        if packet[KIND_AT] == MessageKind.DATA and not packet[FLAGS_AT] & (RECOVERED | RETRANSMITTED):
            tick = TIMESTAMP.unpack_from(packet)[0]
            assert clock.covers(tick), "nothing is sent above what is stored"
            if not clock.is_without:  # what is lost then was announced
                self.used[node] = max(self.used[node], tick)


class AttachedAlone(Enclosing):
    def __init__(self, node: NodeId, config: RingConfig, network: Network, *, share: float = 1.0) -> None:
        self._clock = StoredClock()
        place = Attached(7, "office", self._clock, share)
        self._node = node
        self._attached = RingNode(node, config, verbose=True, attached=place)
        super().__init__(self._attached)
        self._network = network
        self._body_max = self._inner.freight_body_max
        self._large = LargeMessages()
        self._configuration: Configuration | None = None
        self._handed = 0  # the last seq
        self._said = 0
        self._now = Instant(0)

    def start(self, stored: Stored, incarnation: Incarnation, now: Instant) -> list[Effect]:
        assert self._clock.start(stored)
        self._now = now
        if CLOCK_KEY not in stored:  # the disk was lost
            self._network.used.pop(self._node, None)
        return super().start(stored, incarnation, now)

    def receive(self, packets: Sequence[Packet], now: Instant) -> list[Effect]:
        self._now = now
        return super().receive(packets, now)

    def wake(self, now: Instant) -> list[Effect]:
        self._now = now
        return super().wake(now)

    def persisted(self, key: str, now: Instant) -> list[Effect]:
        self._now = now
        if key != CLOCK_KEY:
            return super().persisted(key, now)
        return self._onward(self._inner.clock_stored(now, is_again=self._clock.persisted()))

    def submit(self, submissions: Sequence[Submission | Submissions], now: Instant) -> list[Effect]:
        self._now = now
        effects = self._inner.submit(submissions, now)
        self._said += 1
        item = HoldItem(self._attached.process, self._said, "x" * 200)
        return self._onward(effects + self._inner.carry([control_freight(item, self._body_max)], now))

    def interest(self, changes: Sequence[Interest], now: Instant) -> list[Effect]:
        return self._attached.interest(changes, now)

    def behind(self, is_behind: bool, now: Instant) -> list[Effect]:
        self._now = now
        return self._onward(self._inner.hold(is_behind, now))

    def _onward(self, effects: list[Effect]) -> list[Effect]:
        onward: list[Effect] = []
        for effect in effects:
            if isinstance(effect, RingPackets):
                onward += self._take(effect)
            elif isinstance(effect, RingChange):
                onward += self._change(effect)
            else:
                onward.append(effect)
                if isinstance(effect, Broadcast):
                    for packet in effect.packets:
                        self._network.send(self._node, packet, self._clock)
        return onward

    def _take(self, packets: RingPackets) -> list[Effect]:
        assert self._configuration is not None
        self._network.hand_up(self._configuration, packets)
        self._handed = packets.runs[-1].last
        return self._delivered(self._configuration.id, packets.runs)

    def _delivered(self, configuration: ConfigurationId, runs: list[PacketRun]) -> list[Effect]:
        assert self._configuration is not None
        parcels: list[Parcel] = []
        for run in runs:
            if is_control(run):
                continue
            parcel, parts = messages_of(run)
            self._large.take(parcel, parts, parcels) if parts else parcels.append(parcel)
        return [Deliver(configuration, self._configuration.id, parcels)] if parcels else []

    def _change(self, change: RingChange) -> list[Effect]:
        self._network.install(self._attached.process, change)
        regular, old = change.configuration, self._configuration
        effects: list[Effect] = []
        if old is not None:
            along, place = regular.transitional, Position(old.id, self._handed, SLOT_MAX)
            transitional = Configuration(
                ConfigurationKind.TRANSITIONAL, regular.previous, along, old.id, along, regular.reason, place
            )
            effects += [Install(transitional), *self._delivered(transitional.id, change.residual)]
        self._configuration, self._handed, self._large = regular, 0, LargeMessages()
        hello = control_freight(HelloItem(regular.id), self._body_max)
        more = self._inner.carry([hello], self._now, is_first=True)
        return [*effects, Install(regular), *self._onward(more)]
