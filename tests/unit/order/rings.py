"""Rings, packets and tokens made by hand."""

from __future__ import annotations

from ordercast.model.ids import NOBODY, ConfigurationId, Incarnation, NodeId, ProcessId, Seq, TokenSeq, process_id_from
from ordercast.model.service import Service
from ordercast.order.membership.ring import Ring, TokenMemory
from ordercast.wire.head import cluster_id_from
from ordercast.wire.header import PART_SHIFT, SAFE, PacketEntry, Part
from ordercast.wire.messages import Token
from ordercast.wire.run import PacketRun, build_data, build_runs

CLUSTER = cluster_id_from("unit")


def process(node: int, incarnation: int = 1) -> ProcessId:
    return process_id_from(NodeId(node), Incarnation(incarnation))


ONE, TWO, THREE, FOUR = (process(node) for node in range(1, 5))
RING_ID = ConfigurationId(8, ONE)
NEXT_RING_ID = ConfigurationId(12, ONE)


def make_ring(
    me: ProcessId = TWO, members: tuple[ProcessId, ...] = (ONE, TWO, THREE), ring_id: ConfigurationId = RING_ID
) -> Ring:
    return Ring(ring_id, members, me, CLUSTER, TokenMemory(TokenSeq(members.index(me))))


def make_packet(
    seq: int,
    *texts: str,
    originator: ProcessId = ONE,
    service: Service = Service.AGREED,
    sender: int = 0,
    part: Part = Part.WHOLE,
) -> PacketRun:
    """A packet of the ring as its store keeps it; it says its own seq when nothing else is given."""
    entries = [make_entry(text.encode(), service, sender) for text in texts or (str(seq),)]
    flags = (SAFE if service is Service.SAFE else 0) | part << PART_SHIFT
    return build_data(make_ring().heading, flags, entries, originator, Seq(seq), 1, seq)


def make_run(
    seq: int,
    *texts: str,
    originator: ProcessId = ONE,
    service: Service = Service.AGREED,
    sender: int = 0,
    part: Part = Part.WHOLE,
) -> PacketRun:
    """Packets in a row, one for each text; all texts are equally long."""
    flags = SAFE if service is Service.SAFE else 0
    payloads = [text.encode() for text in texts]
    parts = bytes((part,)) * len(texts) if part else b""
    load = flags, (sender,), (len(texts[0]),), (int(service),), payloads, parts, b""
    (run,) = build_runs(make_ring().heading, [load], originator, Seq(seq), 1, seq)
    return run


def make_entry(data: bytes, service: Service = Service.AGREED, sender: int = 0) -> PacketEntry:
    return sender, len(data), int(service), data


def fill(ring: Ring, *seqs: int) -> None:
    for seq in seqs:
        ring.store.add(Seq(seq), make_packet(seq))


def make_token(
    *,
    token_seq: int = 0,
    round_: int = 5,
    seq: int = 0,
    aru: int = 0,
    aru_id: ProcessId = NOBODY,
    requests: tuple[int, ...] = (),
    retransmitted: int = 0,
    budget: int = 1000,
    behind: int = 0,
    timestamp: int = 100,
) -> Token:
    return Token(
        RING_ID,
        ONE,
        TokenSeq(token_seq),
        round_,
        Seq(seq),
        Seq(aru),
        aru_id,
        tuple(map(Seq, requests)),
        retransmitted,
        budget,
        0,
        behind,
        False,
        timestamp,
    )
