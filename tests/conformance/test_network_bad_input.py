"""Items that nobody can have said, on a ring of a network: counted and dropped, and nothing moves."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ordercast.model.ids import ConfigurationId, ProcessId
from ordercast.order.attached import SEQS_PER_DOMAIN
from ordercast.order.gateways.items import (
    Base,
    Carried,
    Column,
    EndItem,
    Half,
    HelloItem,
    HoldItem,
    LogicalRing,
    MarkItem,
    NoticeItem,
    Statement,
    Stretch,
    TopologyItem,
)
from ordercast.order.gateways.merging import PhysicalRing

from .network_stage import Stage, people, ring_ids

P, Q, G, R1, STRANGER = 1, 2, 3, 4, 99
IDS = ring_ids("AR")
A, R = IDS["A"], IDS["R"]
FAR = 1 << 40  # ticks
NEXT = ConfigurationId(R.seq + 1024, ProcessId(G))  # of R's domain
HALF = people(G, R1)
SUCCESSOR = LogicalRing(NEXT, HALF, people(G), 90)
END = EndItem(R, HALF, SUCCESSOR, people(G))
PACKET = Stretch(R, 60, ProcessId(R1), (7,), (b"",))
NOTICE = NoticeItem(R, ProcessId(G), (61, 1, 1), (Statement(Column(A, None), (9, 1, 1)),))
OTHER_DOMAIN = ConfigurationId(NEXT.seq + SEQS_PER_DOMAIN, ProcessId(G))


def _stage() -> Stage:
    """p on ring A, with q and gateway g, which is on ring R with r."""
    return Stage(ProcessId(P), {"A": people(P, Q, G), "R": people(G, R1)}, people(G), IDS)


def _state(stage: Stage) -> object:
    """What the order of the network rests on."""
    known, network = stage.network.known, stage.network
    streams = {ring: (stream.front, list(stream.runs), stream.residual()) for ring, stream in known.streams.items()}
    ends = sorted((end.ring, sorted(end.half), end.successor.id) for end in known.ends)
    queues = {domain: list(queue) for domain, queue in network.forwarding.queues.items()}
    rows = network.coverage.newest(A), network.coverage.newest(R)
    return known.place, known.clock, known.parts, streams, ends, set(known.ends.words), queues, rows, known.rings.keys()


@pytest.mark.parametrize(
    ("sender", "carried", "why"),
    [
        (Q, Carried(PACKET), "no gateway"),
        (Q, Carried(END), "no gateway"),
        (Q, Carried(NOTICE), "no gateway"),
        (Q, Carried(HoldItem(ProcessId(G), 1, "in another's name")), "no gateway"),
        (G, Carried(replace(PACKET, tick=FAR)), "time that cannot be"),
        (G, Carried(PACKET, since=(FAR, 1, 0)), "time that cannot be"),
        (G, Carried(replace(NOTICE, front=(FAR, 1, 1))), "time that cannot be"),
        (G, Carried(replace(NOTICE, stable=(FAR, 1, 1))), "time that cannot be"),
        (G, Carried(replace(END, successor=replace(SUCCESSOR, tick=FAR))), "time that cannot be"),
        (G, Carried(replace(END, successor=replace(SUCCESSOR, id=OTHER_DOMAIN))), "across domains"),
        (G, Carried(replace(END, successor=replace(SUCCESSOR, halves=(Half(A, HALF),)))), "across domains"),
        (G, Carried(replace(PACKET, originator=ProcessId(STRANGER))), "not on its ring"),
        (G, Carried(PACKET, half=people(STRANGER)), "others than the members"),
        (G, Carried(replace(NOTICE, half=people(STRANGER))), "others than the members"),
    ],
)
def test_what_nobody_can_have_said_moves_nothing(sender: int, carried: Carried, why: str) -> None:
    bad, calm = _stage(), _stage()
    bad.hear(1, sender, 5, 50, carried)
    calm.hear(1, sender, 5, 50, Carried(HelloItem(A)))
    assert len(bad.network.known.refused) == 1 and why in bad.network.known.refused[0]
    for stage in (bad, calm):
        stage.step()
    assert _state(bad) == _state(calm) and bad.log == calm.log


def test_packets_whose_ticks_fall_are_dropped_when_the_order_is_past_them() -> None:
    stage = _stage()
    stage.receive("R", (60, 50, 70))
    stage.tell_front("A", 80)
    stage.step()
    assert stage.network.known.place[0] == 70 and stage.network.known.refused == ["packets from the past of the order"]


def test_a_link_that_began_at_no_merge_moves_nothing() -> None:
    """Whoever has had a merge says so before it carries anything over a link that began there."""
    stages = [_stage(), _stage()]
    for stage, carried in zip(stages, (Carried(PACKET, since=(6, 1, 0)), Carried(HelloItem(A))), strict=True):
        stage.receive("A", (7,))
        for name in "AR":
            stage.tell_front(name, 20)
        assert stage.step() == ["7A"]
        stage.hear(1, G, 5, 50, carried)
        stage.step()
    bad, calm = stages
    assert len(bad.network.known.refused) == 1 and "no merge did" in bad.network.known.refused[0]
    assert _state(bad) == _state(calm) and bad.log == calm.log


def test_the_birth_of_a_ring_that_is_no_merge_begins_no_link() -> None:
    stage = _stage()
    stage.hear(1, G, 5, 50, Carried(END))
    stage.tell_front("A", 95)
    stage.step()
    assert NEXT in stage.network.known.parts and stage.network.known.place == SUCCESSOR.birth
    stage.hear(1, G, 6, 96, Carried(replace(PACKET, ring=NEXT, tick=97), since=SUCCESSOR.birth))
    assert len(stage.network.known.refused) == 1 and "no merge did" in stage.network.known.refused[0]


@pytest.mark.parametrize(
    "carried",
    [
        Carried(replace(PACKET, ring=OTHER_DOMAIN)),
        Carried(replace(NOTICE, ring=OTHER_DOMAIN)),
        Carried(PACKET, since=(40, 1, 0)),
    ],
    ids=["packet of a ring that nobody knows", "notice of one", "since a merge that nobody knows"],
)
def test_what_nobody_knows_of_is_not_ordered(carried: Carried) -> None:
    stage = _stage()
    stage.hear(1, G, 5, 50, carried)
    for name in "AR":
        stage.tell_front(name, 100)
    assert stage.step() == [] and stage.network.known.parts == _stage().network.known.parts


def test_marks_and_topologies_of_others_are_dropped() -> None:
    stage = _stage()
    physical = PhysicalRing(ConfigurationId(A.seq + 2048, ProcessId(P)), people(P, Q, G, STRANGER), 30)
    stage.network.install(1, [], people(P, Q, G), physical)
    flush = stage.network.merging.flushes[1]
    mark = MarkItem(physical.id, stage.network.known.own[1], ProcessId(STRANGER), 31, (1,))
    topology = TopologyItem(
        physical.id, mark.logical, ProcessId(STRANGER), A, people(), (), (Base(ProcessId(P), 1, A),), (), ()
    )
    for bad in (replace(mark, domains=(2, 3)), replace(mark, logical=R), replace(mark, clock=FAR), topology):
        stage.hear(1, STRANGER, 6, 40, Carried(bad))
        assert stage.network.known.refused and not flush.marks and not flush.topologies
        stage.network.known.refused.clear()


def test_a_hold_of_an_ordinary_member_is_its_own() -> None:
    stage = _stage()
    stage.hear(1, Q, 5, 50, Carried(HoldItem(ProcessId(Q), 1, "slow")))
    assert stage.network.known.refused == [] and not stage.network.may_send(1)
