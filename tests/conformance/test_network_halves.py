"""Halves of a ring that not everybody knows: what is delivered in one view is a prefix, however many one knows of."""

from __future__ import annotations

from dataclasses import replace

from ordercast.model.ids import ConfigurationId, ProcessId
from ordercast.order.gateways.births import bear
from ordercast.order.gateways.items import (
    Carried,
    EndItem,
    LogicalRing,
    Processes,
    Stretch,
    TopologyItem,
    TopologyPart,
)
from ordercast.order.gateways.merging import PhysicalRing

from .network_stage import Stage, people, ring_ids

# Ring A has p, gateways g and k; ring R has g, r and h; ring C has h, q and k. R splits into {g, r} and {h}.
P, Q, G, H, K, R1 = 1, 2, 3, 4, 5, 6
FIRST, SECOND = people(G, R1), people(H)


def _stage(me: int) -> Stage:
    members = {"A": people(P, G, K), "R": people(G, R1, H), "C": people(H, Q, K)}
    stage = Stage(ProcessId(me), members, people(G, H, K), ring_ids("ARC"))
    stage.receive("R", (5,))
    stage.receive("A", (8,))
    for name, tick in (("A", 20), ("R", 6), ("C", 20)):
        stage.tell_front(name, tick)
    return stage


def _end(stage: Stage, half: Processes, seq: int, tick: int) -> Carried:
    new = ConfigurationId(seq * 1024 + 4 * stage.domains["R"], min(half))
    return Carried(EndItem(stage.ids["R"], half, LogicalRing(new, half, half & people(G, H), tick), half))


def _residual(stage: Stage, tick: int, seq: int, half: Processes) -> Carried:
    return Carried(Stretch(stage.ids["R"], tick, ProcessId(R1), (seq,), (b"",)), half=half)


def _at_p() -> Stage:
    """At p: one half of R was heard; then k is lost, and with it the way to the other half."""
    stage = _stage(P)
    stage.hear(1, G, 50, 15, _residual(stage, 9, 9, FIRST))
    stage.hear(1, G, 51, 16, _end(stage, FIRST, 2, 12))
    alone = people(P, G)
    ring = PhysicalRing(ConfigurationId(3 * 1024 + 4, ProcessId(P)), alone, 30)
    stage.network.install(1, [], alone, ring)
    return stage


def _at_q() -> Stage:
    """At q: both halves of R were heard."""
    stage = _stage(Q)
    stage.hear(3, K, 50, 15, _residual(stage, 9, 9, FIRST))
    stage.hear(3, K, 51, 16, _end(stage, FIRST, 2, 12))
    stage.hear(3, H, 52, 17, _residual(stage, 7, 7, SECOND))
    stage.hear(3, H, 53, 18, _end(stage, SECOND, 4, 13))
    return stage


def _in_first_view(stage: Stage) -> list[str]:
    log = stage.step()
    return log[: next((place for place, text in enumerate(log) if ":" in text), len(log))]


def test_both_deliver_all_that_they_know() -> None:
    assert [text for text in _at_p().step() if ":" not in text] == ["5R", "8A", "9R"]
    assert [text for text in _at_q().step() if ":" not in text] == ["5R", "7R", "8A", "9R"]


def test_what_is_delivered_in_one_view_is_a_prefix_though_halves_are_known_at_different_places() -> None:
    """p does not know what {h} had beyond the regular packets of R, so its view ends where they do."""
    here, there = _in_first_view(_at_p()), _in_first_view(_at_q())
    assert here[: len(there)] == there[: len(here)]


def test_who_is_lost_leaves_at_the_front_and_is_not_lost_again_after_a_merge() -> None:
    """h leaves at 6, and with it all of C, to whom it may have told what p lacks. p's topology says that h is lost;
    where another side counts h, what is known of it counts anew."""
    stage = _at_p()
    assert stage.step() == ["5R", "6: AR", "8A", "9R", "12: A?"]
    known, ring = stage.network.known, stage.ids["R"]
    for said, missing in ((people(H), people()), (people(), people(H))):
        merge = LogicalRing(ConfigurationId(9 * 1024 + 5, ProcessId(P)), people(P), people(), 400)
        part = TopologyPart(LogicalRing(ring, people(G, R1, H), people(G, H), 1), FIRST | people(H), said)
        topology = TopologyItem(merge.id, merge.id, ProcessId(P), merge.id, people(), (part,), (), (), ())
        known.parts[ring], known.lost[ring] = FIRST, people(H)
        known.place = (399, 0, 0)
        bear(known, replace(merge, topologies=(topology,)))
        known.born.discard(merge.id)
        assert known.missing(ring) == missing
