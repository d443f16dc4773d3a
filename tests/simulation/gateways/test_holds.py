"""Back-pressure of the shipped engine: memory stays bounded, nothing is lost, and nobody is held for ever."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence
from dataclasses import replace

from bench.gateways_cost import RingCluster, Segments

from ordercast.model.effects import Effect
from ordercast.model.ids import MILLISECOND, Instant, NodeId
from ordercast.model.inputs import Packet
from ordercast.order.gateways.config import GatewaysConfig
from ordercast.order.gateways.node import GatewayNode
from ordercast.order.setup import Domain
from ordercast.sim.options import SIM_RING

CONFIG = replace(SIM_RING, queue_size_max=64 << 10, message_size_max=1 << 12)
QUEUE_HIGH = 64 << 10
BACKLOG_HIGH = 128 << 10
SIZE, BATCH = 400, 20  # bytes of a message, messages of a submission
TWO_RINGS = ((0, 1), (0,), (0,), (1,), (1,))
CIRCLE = ((0, 1), (1, 2), (2, 0), (0,), (1,), (2,))


def _engine(node: NodeId, segments: Sequence[int]) -> GatewayNode:
    domains = [Domain(segment, f"segment{segment}") for segment in segments]
    return GatewayNode(
        node, CONFIG, domains, chosen=GatewaysConfig(carried_size_max=QUEUE_HIGH, waiting_size_max=BACKLOG_HIGH)
    )


class Hosts(RingCluster):
    """Processes of which some may have crashed."""

    def __init__(self, segments: Segments) -> None:
        self.dead: set[int] = set()
        super().__init__(segments, _engine)
        self.form()

    def receive(self, node: int, packets: list[Packet]) -> None:
        if node not in self.dead:
            super().receive(node, packets)

    def submit(self, node: int) -> None:
        if node not in self.dead:
            super().submit(node)

    def carry_out(self, node: int, effects: list[Effect]) -> None:
        if node not in self.dead:
            super().carry_out(node, effects)

    def stop_sending(self) -> None:
        self.load = None

    def go_on(self, milliseconds: int, step: int = 1) -> None:
        """Let time pass, and tokens with everything that goes with them, a few at each step."""
        for _ in range(0, milliseconds, step):
            self.now = Instant(self.now + step * MILLISECOND)
            for node, member in enumerate(self.members):
                deadline = member.next_deadline()
                if node not in self.dead and deadline is not None and deadline <= self.now:
                    self.carry_out(node, member.wake(self.now))
            self.pass_tokens(20)

    def fall_behind(self, node: int, is_behind: bool) -> None:
        self.carry_out(node, self.members[node].behind(is_behind, self.now))


def test_memory_stays_bounded_while_a_consumer_on_the_far_ring_stands_still() -> None:
    """All rings send for 3 s while one application takes nothing. What may wait: the outboxes, what is to be carried,
    and the packets of a few rotations of both rings."""
    hosts = Hosts(TWO_RINGS)
    hosts.send(SIZE, BATCH)
    hosts.go_on(20)
    hosts.fall_behind(4, True)
    hosts.go_on(20)
    held = list(hosts.delivered)
    tracemalloc.start()
    try:
        hosts.go_on(3_000, step=20)
        grown = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert grown < len(TWO_RINGS) * (CONFIG.queue_size_max + QUEUE_HIGH)
    assert hosts.delivered == held and len(set(held)) == 1, "users are held, and what they had sent has come"
    hosts.fall_behind(4, False)
    hosts.go_on(20)
    assert min(hosts.delivered) > held[0], "users go on"
    hosts.stop_sending()
    hosts.go_on(60)
    assert len(set(hosts.delivered)) == 1 and hosts.delivered[0] >= sum(hosts.submitted), "nothing is lost"


def test_a_holder_that_leaves_the_view_holds_no_more() -> None:
    hosts = Hosts(TWO_RINGS)
    hosts.fall_behind(4, True)
    hosts.go_on(20)
    hosts.send(SIZE, BATCH)
    hosts.go_on(20)
    assert set(hosts.delivered) == {0}
    hosts.dead.add(4)
    hosts.go_on(160)
    assert min(hosts.delivered[:4]) > 0


def test_gateways_in_a_circle_that_hold_each_other_let_go() -> None:
    """All gateways have more to carry than they may: all hold, and what they carry brings all of them down again."""
    hosts = Hosts(CIRCLE)
    hosts.send(SIZE, BATCH)
    before = 0
    for _ in range(5):
        hosts.go_on(10)
        assert min(hosts.delivered) > before
        before = min(hosts.delivered)
    hosts.stop_sending()
    hosts.go_on(100)
    assert len(set(hosts.delivered)) == 1 and hosts.delivered[0] == sum(hosts.submitted)
    assert all(member.is_idle() for member in hosts.members)
