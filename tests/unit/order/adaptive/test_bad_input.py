"""Whatever comes from the network, a node goes on, and its order stays what it was."""

from __future__ import annotations

import random

from ordercast.model.effects import Record
from ordercast.model.ids import ConfigurationId, Incarnation, Instant, NodeId, node_of, process_id_from
from ordercast.model.inputs import Lane, Packet, Submission
from ordercast.model.notes import PacketDropped
from ordercast.model.service import Service
from ordercast.order.adaptive.codec import AdaptiveKind, Mark, encode_mark
from ordercast.order.adaptive.node import AdaptiveNode
from ordercast.order.engine import CONFIGURATION_SEQ_KEY
from ordercast.sim.options import SIM_ADAPTIVE, SIM_RING
from ordercast.wire.head import CLUSTER, cluster_id_from

from ..rings import FOUR, ONE, TWO, make_ring
from .test_merge import make_merge
from .vectors import VECTORS

NOW = Instant(1_000_000)


def alone() -> AdaptiveNode:
    node = AdaptiveNode(NodeId(1), SIM_RING, SIM_ADAPTIVE)
    node.start({}, Incarnation(1), NOW)
    node.persisted(CONFIGURATION_SEQ_KEY, NOW)
    return node


def test_a_member_alone_delivers_at_once() -> None:
    node = alone()
    effects = node.submit([Submission(b"one", Service.SAFE)], NOW)
    assert [type(effect).__name__ for effect in effects] == ["Deliver"] and node.is_idle()


def test_random_packets_of_all_kinds_change_nothing() -> None:
    node, rng = alone(), random.Random(1)
    node.submit([Submission(b"one", Service.SAFE)], NOW)
    heading = node.ring.heading
    cluster = cluster_id_from(SIM_RING.cluster, "adaptive")
    before = node.merge.aru, node.merge.delivered, node.merge.safe
    for number in range(3000):
        data = bytearray(rng.choice(VECTORS).data)
        data[6:14] = cluster
        if rng.random() < 0.7:
            data[23:31] = heading.digest
            data[14:22] = node.process.to_bytes(8, "big") if rng.random() < 0.5 else data[14:22]
        for _ in range(rng.randrange(4)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        piece = bytes(data[: rng.randrange(len(data) + 1)] if rng.random() < 0.2 else data * rng.randrange(1, 3))
        node.receive([Packet(piece, len(data), Lane.DATA)], NOW)
        node.check_invariants(thorough=number % 50 == 0)
    assert (node.merge.aru, node.merge.delivered, node.merge.safe) == before


def test_who_is_no_member_is_not_heeded() -> None:
    node = alone()
    heading = node.ring.heading.of_kind(AdaptiveKind.MARK)
    mark = encode_mark(heading, FOUR, Mark(0, 1, 0, 50, 0, 0, 0, True))
    effects = node.receive([Packet(mark, len(mark), Lane.DATA)], NOW)
    dropped = [effect.note for effect in effects if isinstance(effect, Record)]
    assert PacketDropped("from one who is no member") in dropped


def test_a_mark_of_a_former_life_is_not_heeded() -> None:
    node = alone()
    order = node._running.past = make_merge(ONE)
    before = list(order.frontiers)
    former = process_id_from(node_of(TWO), Incarnation(77))
    heading = make_ring(former, (former,), ConfigurationId(3, former)).heading.of_kind(AdaptiveKind.MARK)
    mark = bytearray(encode_mark(heading, former, Mark(0, 9, 0, 90, 0, 0, 0, False)))
    mark[CLUSTER] = cluster_id_from(SIM_RING.cluster, "adaptive")
    node.receive([Packet(bytes(mark), len(mark), Lane.DATA)], NOW)
    assert order.frontiers == before
