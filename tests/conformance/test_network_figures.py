"""The figures of the paper's chapter on several rings, played with our order: 5.5, 5.14, 5.15 and 5.16."""

from __future__ import annotations

from ordercast.model.configuration import ChangeReason
from ordercast.model.ids import ConfigurationId, ProcessId
from ordercast.order.gateways.items import (
    Base,
    Carried,
    Column,
    EndItem,
    HelloItem,
    LogicalRing,
    MarkItem,
    Stretch,
    TopologyItem,
    TopologyPart,
)
from ordercast.order.gateways.merging import PhysicalRing

from .network_stage import Stage, people, ring_ids

# Figures 5.5 and 5.14: processor p on ring A; gateway q joins A and B, gateway r joins B and C.
P, Q, R, B1, B2, C1 = 1, 2, 3, 4, 5, 6


def figure_5_5(me: int, is_safe: bool = False) -> Stage:
    members = {"A": people(P, Q), "B": people(Q, R, B1, B2), "C": people(R, C1)}
    stage = Stage(ProcessId(me), members, people(Q, R), ring_ids("ABC"))
    stage.receive("A", (7, 14, 15, 26, 29), is_safe)
    stage.receive("B", (9, 10, 13, 15), is_safe)
    stage.receive("C", (8, 10), is_safe)
    for name, tick in (("A", 29), ("B", 17), ("C", 11)):
        stage.tell_front(name, tick)
    stage.guarantee("A", {"A": 29, "B": 17, "C": 11})
    stage.guarantee("B", {"A": 14, "B": 15, "C": 10})
    stage.guarantee("C", {"A": 7, "B": 9, "C": 10})
    return stage


def test_figure_5_5_agreed() -> None:
    """L1745-1749: 7A 8C 9B 10B 10C, then no further: C may still send something with timestamp 12."""
    stage = figure_5_5(P)
    assert stage.step() == ["7A", "8C", "9B", "10B", "10C"]
    stage.tell_front("C", 12)
    assert stage.step()[5:] == []
    stage.tell_front("C", 14)
    assert stage.step()[5:] == ["13B", "14A"]


def test_figure_5_5_safe() -> None:
    """L1751-1777: 9B is safe, 10B is not, for ring C has B's messages only up to 9."""
    stage = figure_5_5(P, is_safe=True)
    assert stage.step() == ["7A", "8C", "9B"]
    stage.guarantee("C", {"B": 10})
    assert stage.step()[3:] == ["10B", "10C"]


def test_figure_5_14_a_ring_splits_and_another_is_cut_off() -> None:
    """L2216-2229: B' is formed at 25. C is deleted at 11, then 13B 14A 15A 15B, then B' takes the place of B at 25.

    The paper raises B's max_timestamp to 25 and sends Topology Change messages; here B is complete because its other
    gateway can no longer be heard, and every process finds so by itself. Whoever was on B and does not go on to B'
    leaves at 17, B's front: nothing above it is known of them."""
    stage = _figure_5_14()
    assert stage.step() == ["7A", "8C", "9B", "10B", "10C", "11: AB", "13B", "14A", "15A", "15B", "17: AB", "25: A?"]
    view = stage.network.view
    assert view.members == people(P, Q, B1)
    assert view.reason is ChangeReason.RING_REFORMED
    # 26A waits for B', of which nothing above 25 is known.
    stage.hear(2, B1, 1, 27, Carried(HelloItem(new_b())))
    assert stage.step()[12:] == ["26A"]


def new_b() -> ConfigurationId:
    return ConfigurationId(2048 + 4 * 2, ProcessId(Q))


def _figure_5_14() -> Stage:
    stage = figure_5_5(Q)
    stage.network.install(2, [], people(Q, B1), PhysicalRing(new_b(), people(Q, B1), 25))
    return stage


def test_figure_5_14_as_the_processors_on_a_hear_of_it() -> None:
    """L2227: processors on A make the same changes at the same places, when q's END comes to them."""
    stage = figure_5_5(P)
    before = stage.ids["B"]
    new = LogicalRing(new_b(), people(Q, B1), people(Q), 25)
    stage.hear(1, Q, 100, 30, Carried(EndItem(before, people(Q, B1), new, people(Q))))
    assert stage.step() == _figure_5_14().step()


# Figures 5.15 and 5.16. A and F are halves of one broadcast domain that was cut: a joins A and B, b joins B and E,
# c joins B and C, e joins C and D, d joins E and F.
GA, GB, GC, GD, GE, B9 = 11, 12, 13, 14, 15, 19


def _figure_5_15(me: int = GA) -> Stage:
    members = {
        "A": people(GA),
        "B": people(GA, GB, GC, B9),
        "C": people(GC, GE),
        "D": people(GE),
        "E": people(GB, GD),
    }
    stage = Stage(ProcessId(me), members, people(GA, GB, GC, GD, GE), ring_ids("ABCDE"))
    known = stage.network.known
    f = ConfigurationId(1024 + 4, ProcessId(GD))  # the other half of A's domain
    known.learn(LogicalRing(f, people(GD), people(GD), 1))
    known.born.add(f)
    known.parts[f] = people(GD)
    known.bases[ProcessId(GD), 1] = f
    known.changed()
    stage.ids["F"] = f
    for name, tick in (("A", 119), ("B", 124), ("C", 124), ("D", 122), ("E", 85), ("F", 90)):
        stage.tell_front(name, tick)
    return stage


def _after_both_changes(stage: Stage) -> tuple[ConfigurationId, ConfigurationId]:
    """Let a be on a ring with d, at 120, and on B', at 125, without b."""
    merging = ConfigurationId(4096 + 4, ProcessId(GA))
    split = ConfigurationId(5120 + 8, ProcessId(GA))
    stage.network.install(1, [], people(GA), PhysicalRing(merging, people(GA, GD), 120))
    half = people(GA, GC, B9)
    stage.network.install(2, [], half, PhysicalRing(split, half, 125))
    return merging, split


def test_figure_5_15_what_is_cut_off_is_deleted_where_it_ended() -> None:
    """L2258-2270: E is deleted at 85 and F at 90, for b forwards no more; B, C and D stay. Whoever is on F may have
    more of E than a, and leaves with E; what F sent is passed up to 90. In the paper A' is a ring of the network from
    120 on; here A goes on alone under a new name at 120, and the merge is a second step."""
    stage = _figure_5_15()
    stage.receive("F", (84, 88))
    _after_both_changes(stage)
    assert stage.step() == ["84F", "85: ABCD", "88F", "90: ABCD", "120: BCD?"]
    stage.hear(2, GC, 1, 126, Carried(HelloItem(ConfigurationId(5120 + 8, ProcessId(GA)))))
    for name in "CD":
        stage.tell_front(name, 130)
    # A regular delivery on B' speaks for all who came along: B has nothing more to say, and B' takes its place at 125.
    assert stage.step()[5:] == []
    assert stage.network.may_number(1) is False  # the mark is on its way


def test_figure_5_15_the_merge_brings_back_what_was_cut_off() -> None:
    """L2272-2276: a's topology is B, C and D; with d's E is back. What d carried above the merge is kept until then,
    what lies below is dropped."""
    stage = _figure_5_15()
    physical, split = _after_both_changes(stage)
    stage.step()
    stage.hear(2, GC, 1, 140, Carried(HelloItem(split)))
    for name in "CD":
        stage.tell_front(name, 200)
    own = stage.network.known.own[1]
    other = ConfigurationId(physical.seq, ProcessId(GD))
    stage.hear(1, GA, 1, 141, Carried(MarkItem(physical, own, ProcessId(GA), 140, (1, 2))))
    stage.hear(1, GD, 2, 142, Carried(MarkItem(physical, other, ProcessId(GD), 139, (1, 5))))
    stage.network.known.streams[stage.network.known.own[2]].raise_front((200, 0, 0))
    for tick, seq in ((130, 60), (150, 61)):  # d carries what E sends, after its mark
        packet = Stretch(stage.ids["E"], tick, ProcessId(GB), (seq,), (b"",))
        stage.hear(1, GD, 2 + seq, 142, Carried(packet))
    stage.step()
    (topology,) = [c.item for c in stage.network.forwarding.queues[1] if isinstance(c.item, TopologyItem)]
    names = {ring: name for name, ring in stage.ids.items()}
    assert "".join(sorted(names.get(part.ring.id, "?") for part in topology.parts)) == "??CD"
    stage.hear(1, GA, 65, 143, Carried(topology))
    e, new = stage.ids["E"], stage.network.known.rings
    theirs = TopologyItem(
        physical=physical,
        ring=other,
        by=ProcessId(GD),
        view=ConfigurationId(1, ProcessId(1)),
        reachable=people(GB, GD),
        parts=(
            TopologyPart(new[e], people(GB, GD)),
            TopologyPart(LogicalRing(other, people(GD), people(GD), 120), people(GD)),
        ),
        bases=(Base(ProcessId(GB), 5, e), Base(ProcessId(GD), 1, other), Base(ProcessId(GD), 5, e)),
        ends=(),
        words=(),
    )
    stage.hear(1, GD, 66, 144, Carried(theirs))
    stage.step()
    view = stage.network.view
    assert view.reason is ChangeReason.RINGS_MERGED
    assert view.stamp[0] == 143  # above all clocks in the marks, and all that the ring had brought
    assert view.members == people(GA, GB, GC, GD, GE, B9)
    assert e in {part.ring.id for part in view.rings}
    assert view.transitional == people(GA, GC, GE, B9)
    stage.hear(1, GD, 67, 160, Carried(HelloItem(physical)))
    assert stage.step()[-1] == "150E" and "130E" not in stage.log


def test_figure_5_15_the_other_side_keeps_what_it_hears() -> None:
    """L2268: a's deletion of E at 85 does not concern b and d, who still hear it. In the paper they drop a's Topology
    Change because of its timestamp; here there is none, and each side finds by itself what it has lost."""
    stage = _figure_5_15(GB)
    for name in "EF":
        stage.tell_front(name, 135)
    rest = ConfigurationId(6144 + 8, ProcessId(GB))  # B'' of the figure
    stage.network.install(2, [], people(GB), PhysicalRing(rest, people(GB), 130))
    # At 119 all leave who can still hear A, and b cannot; the rings go one by one.
    assert stage.step() == ["119: FBE", "122: FBE", "124: FBE", "124: FBE", "130: FE?"]
    assert stage.network.view.members == people(GB, GD)


def test_figure_5_16_what_all_of_a_ring_have_goes_on_with_its_half() -> None:
    """L2274: a's row of A as A ends is that of its next ring, for all of the half have it. The paper's A' is the merged
    ring already and begins at 120 for E and F: nothing of theirs below concerns it. Our second step does the same: what
    d carries begins at the merge, so that the old entries of E and F say nothing of what A' must have."""
    stage = _figure_5_15()
    row = {"A": 120, "B": 110, "C": 100, "D": 95, "E": 85, "F": 90}
    coverage, streams = stage.network.coverage, stage.network.known.streams
    for source, tick in row.items():
        ring = stage.ids[source]
        coverage.count(stage.ids["A"], Column(ring, None), streams[ring].stamp(tick, 1), is_regular=True)
    _after_both_changes(stage)
    names = {ring: name for name, ring in stage.ids.items()}
    rows = {
        ring: {names[column.source]: stamp[0] for column, stamp in coverage.row(ring).items()}
        for ring in (stage.ids["A"], stage.network.known.own[1])
    }
    assert rows == {stage.ids["A"]: row, stage.network.known.own[1]: row}
