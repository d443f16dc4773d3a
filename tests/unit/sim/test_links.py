"""The simulator carries packets of links as it carries others, on a lane of their own."""

from __future__ import annotations

from collections.abc import Sequence

from ordercast.model.effects import Effect, Endpoint, Unicast
from ordercast.model.ids import (
    Incarnation,
    Instant,
    NodeId,
    ProcessId,
    node_of,
    process_id_from,
)
from ordercast.model.inputs import Lane, Packet, Stored
from ordercast.order.engine import Engine
from ordercast.order.ring.node import RingNode
from ordercast.sim.options import SIM_RING, SimOptions
from ordercast.sim.run import simulate

HELLO, ANSWER = b"hello".ljust(100, b"."), b"answer".ljust(100, b".")


class Linked(RingNode):
    """A ring that says hello to the next node on a link, by its address, and answers to the process that did."""

    def __init__(self, node: NodeId, heard: list[tuple[NodeId, Lane, bytes]]) -> None:
        super().__init__(node, SIM_RING)
        self.me, self.heard = node, heard

    def start(self, stored: Stored, incarnation: Incarnation, now: Instant) -> list[Effect]:
        target = Endpoint(str((self.me + 1) % 3), 0)
        return [*super().start(stored, incarnation, now), Unicast(target, [(HELLO, 50)])]

    def receive(self, packets: Sequence[Packet], now: Instant) -> list[Effect]:
        mine = [packet for packet in packets if packet.lane is Lane.LINK]
        effects = super().receive([packet for packet in packets if packet.lane is not Lane.LINK], now)
        for packet in mine:
            data = bytes(packet.data)
            self.heard.append((self.me, packet.lane, data))
            if data == HELLO[:50]:
                effects.append(Unicast(_process((self.me + 2) % 3), [(ANSWER, 100)]))
        return effects


def _process(node: int) -> ProcessId:
    return process_id_from(NodeId(node), Incarnation(1))


def test_links_reach_whom_they_are_for_by_process_and_by_address() -> None:
    heard: list[tuple[NodeId, Lane, bytes]] = []

    def make(node: NodeId) -> Engine:
        return Linked(node, heard)

    result = simulate(SimOptions(nodes=3, ring=SIM_RING, all_at_once=True, messages=5), 1, make_engine=make)
    assert result.settled
    for node in range(3):
        mine = [data for one, lane, data in heard if one == node and lane is Lane.LINK]
        assert sorted(mine) == sorted([HELLO[:50], HELLO[50:], ANSWER]), node_of(_process(node))
