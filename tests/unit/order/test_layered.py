"""A ring inside another engine: its attachment, its keys, its deadlines; and two of them side by side."""

from __future__ import annotations

from collections import deque

import pytest

from ordercast.model.configuration import ConfigurationKind
from ordercast.model.effects import Broadcast, Deliver, Effect, Install, Persist, SendTo
from ordercast.model.errors import UsageError
from ordercast.model.ids import MAIN, SECOND, Attachment, Incarnation, Instant, NodeId, ProcessId, node_of
from ordercast.model.inputs import Lane, Packet, Submission
from ordercast.networks.config import NetworksConfig
from ordercast.networks.layer import Networks
from ordercast.order.attached import Attached, RingChange, RingPackets
from ordercast.order.clock import CLOCK_KEY, StoredClock
from ordercast.order.engine import CONFIGURATION_SEQ_KEY
from ordercast.order.gateways.items import HelloItem
from ordercast.order.gateways.packets import control_freight
from ordercast.order.layered import InnerRing
from ordercast.order.ring.config import RingConfig
from ordercast.order.ring.node import RingNode
from ordercast.wire.head import CLUSTER
from tests.engines.relaying import Relaying

START, LIFE = Instant(0), Incarnation(1)
WEST, EAST = Attachment(1), Attachment(2)


def _inner(name: str = "west", attachment: Attachment = WEST) -> InnerRing:
    return InnerRing(RingNode(NodeId(1)), attachment, name)


def _persists(effects: list[Effect]) -> list[Persist]:
    return [effect for effect in effects if isinstance(effect, Persist)]


def _packets(effects: list[Effect], attachment: Attachment = WEST) -> list[Packet]:
    sent = [packet for effect in effects if isinstance(effect, Broadcast) for packet in effect.packets]
    return [Packet(packet, len(packet), Lane.DATA, attachment) for packet in sent]


def test_a_stored_key_bears_the_name_of_the_ring_and_is_found_again_under_it() -> None:
    (write,) = _persists(_inner().start({}, LIFE, START))
    assert write.key == f"west.{CONFIGURATION_SEQ_KEY}"
    stored = {write.key: write.value, CONFIGURATION_SEQ_KEY: (4000).to_bytes(8, "big")}
    (again,) = _persists(_inner().start(stored, LIFE, START))
    assert int.from_bytes(again.value, "big") == int.from_bytes(write.value, "big") + 4
    (other,) = _persists(_inner("east").start(stored, LIFE, START))
    assert other.value == write.value


def test_only_a_write_of_its_own_is_heard_of() -> None:
    inner = _inner()
    (write,) = _persists(inner.start({}, LIFE, START))
    assert inner.persisted(CONFIGURATION_SEQ_KEY, START) == []
    assert inner.persisted(f"east.{CONFIGURATION_SEQ_KEY}", START) == []
    installed = [effect for effect in inner.persisted(write.key, START) if isinstance(effect, Install)]
    assert len(installed) == 1


def test_packets_bear_the_attachment_and_others_are_not_taken() -> None:
    inner, other = _inner(), InnerRing(RingNode(NodeId(2)), EAST, "west")
    effects = inner.start({}, LIFE, START) + inner.persisted(f"west.{CONFIGURATION_SEQ_KEY}", START) + inner.wake(START)
    sent = [effect for effect in effects if isinstance(effect, Broadcast | SendTo)]
    assert sent and {effect.attachment for effect in sent} == {WEST}
    other.start({}, LIFE, START)
    assert other.receive(_packets(effects), START) == []


def test_a_name_begins_keys_so_it_is_one_word() -> None:
    for name in ("", "a.b"):
        with pytest.raises(UsageError, match="cannot name an inner ring"):
            _inner(name)


def test_what_it_promises_and_takes_is_what_the_ring_does() -> None:
    inner, ring = _inner(attachment=MAIN), RingNode(NodeId(1))
    inner.start({}, LIFE, START)
    ring.start({}, LIFE, START)
    assert (inner.promises, inner.room(), inner.next_deadline()) == (ring.promises, ring.room(), ring.next_deadline())
    assert (inner.is_idle(), inner.first_lane()) == (ring.is_idle(), ring.first_lane())
    inner.want_room(inner.room())
    inner.check_invariants()


def test_what_it_numbers_after_a_stamp_was_heard_lies_above_it() -> None:
    inner = InnerRing(RingNode(NodeId(1), stamps=True), WEST, "west")
    (write,) = _persists(inner.start({}, LIFE, START))
    inner.persisted(write.key, START)
    inner.hear(1000, START)
    effects = inner.submit([Submission(b"after")], START)
    assert [effect.stamps for effect in effects if isinstance(effect, Deliver)] == [[[1001]]]


def test_the_ring_whose_clock_is_raised_may_have_networks_below_it() -> None:
    ring, config = RingNode(NodeId(1), stamps=True), NetworksConfig(count=2)
    inner = InnerRing(Networks(ring, NodeId(1), config, RingConfig()), WEST, "west", ring)
    (write,) = _persists(inner.start({}, LIFE, START))
    inner.persisted(write.key, START)
    inner.hear(1000, START)
    effects = inner.submit([Submission(b"after")], START) + inner.wake(START)
    assert [effect.stamps for effect in effects if isinstance(effect, Deliver)] == [[[1001]]]
    sent = [effect for effect in effects if isinstance(effect, Broadcast)]
    assert {(effect.attachment, effect.networks) for effect in sent} == {(WEST, (0, 1))}


def test_a_ring_in_a_network_of_rings_may_have_networks_below_it_and_speaks_of_its_domain_on_all() -> None:
    clock = StoredClock()
    clock.start({})
    ring, config = RingNode(NodeId(1), attached=Attached(2, "lab", clock)), NetworksConfig(count=2)
    inner = InnerRing(Networks(ring, NodeId(1), config, RingConfig(), cluster=ring.cluster), WEST, "lab", ring)
    writes = _persists(inner.start({}, LIFE, START))
    assert [write.key for write in writes] == [f"lab.{CONFIGURATION_SEQ_KEY}", CLOCK_KEY]
    assert inner.persisted(f"lab.{CONFIGURATION_SEQ_KEY}", START) == []  # the clock's bound is waited for
    clock.persisted()
    effects = inner.clock_stored(START)
    assert [effect.birth for effect in effects if isinstance(effect, RingChange)] == [1]
    effects = inner.carry([control_freight(HelloItem(ring.ring.id), 900)], START) + inner.wake(START)
    sent = [effect for effect in effects if isinstance(effect, Broadcast)]
    assert {(effect.attachment, effect.networks) for effect in sent} == {(WEST, (0, 1))}
    assert {packet[CLUSTER] for effect in sent for packet in effect.packets} == {ring.cluster}
    handed = [run for effect in effects if isinstance(effect, RingPackets) for run in effect.runs]
    assert [run.timestamp(run.seq) for run in handed] == [2] and inner.freight_size == 0


class Table:
    """Engines whose packets reach whoever has the same attachment, at once; time passes when nothing is left to do."""

    def __init__(self, engines: dict[int, Relaying]) -> None:
        self.engines = engines
        self.now = START
        self.work: deque[tuple[int, Packet | str]] = deque()
        for node, engine in engines.items():
            self.carry_out(node, engine.start({}, LIFE, START))

    def carry_out(self, node: int, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Persist):
                self.work.append((node, effect.key))
            elif isinstance(effect, Broadcast):
                for packet in effect.packets:
                    self._send(node, packet, effect.attachment, [other for other in self.engines if other != node])
            elif isinstance(effect, SendTo):
                self._send(node, effect.packet, effect.attachment, [node_of(effect.process)])

    def _send(self, node: int, packet: bytes, attachment: Attachment, targets: list[int] | list[NodeId]) -> None:
        arriving = Packet(packet, len(packet), Lane.DATA, attachment)
        self.work.extend((target, arriving) for target in targets if attachment in self.engines[target].heard)

    def submit(self, node: int, text: str) -> None:
        self.carry_out(node, self.engines[node].submit([Submission(text.encode())], self.now))

    def run(self, duration: int) -> None:
        end = self.now + duration
        while True:
            while self.work:
                node, what = self.work.popleft()
                engine = self.engines[node]
                if isinstance(what, Packet):
                    self.carry_out(node, engine.receive([what], self.now))
                else:
                    self.carry_out(node, engine.persisted(what, self.now))
            deadlines = {node: engine.next_deadline() for node, engine in self.engines.items()}
            due, node = min((deadline, node) for node, deadline in deadlines.items() if deadline is not None)
            if due > end:
                self.now = Instant(end)
                return
            self.now = max(self.now, due)
            self.carry_out(node, self.engines[node].wake(self.now))


def _members(engine: Relaying, attachment: Attachment) -> list[int]:
    regular = [one for one in engine.heard[attachment].configurations if one.kind is ConfigurationKind.REGULAR]
    return [node_of(ProcessId(member)) for member in regular[-1].members]


def test_two_rings_in_one_process_go_their_own_ways_and_a_message_passes_from_one_to_the_other() -> None:
    engines = {
        1: Relaying(NodeId(1), {WEST: "west"}),
        2: Relaying(NodeId(2), {WEST: "west", EAST: "east"}),
        3: Relaying(NodeId(3), {EAST: "east"}),
    }
    table = Table(engines)
    table.run(2 * SECOND)
    assert [_members(engines[node], WEST) for node in (1, 2)] == [[1, 2]] * 2
    assert [_members(engines[node], EAST) for node in (2, 3)] == [[2, 3]] * 2
    for number in range(3):
        table.submit(1, f"from the west {number}")
        table.submit(3, f"from the east {number}")
    table.run(SECOND)
    heard = [engine.heard[attachment] for engine in engines.values() for attachment in engine.heard]
    assert [sorted(one.texts) for one in heard] == [sorted(heard[0].texts)] * 4 and len(heard[0].texts) == 6
    assert engines[1].heard[WEST].texts == engines[2].heard[WEST].texts
    assert engines[2].heard[EAST].texts == engines[3].heard[EAST].texts
