"""What the birth of a ring does to the topology: what a merge brings, and who is claimed by two rings."""

from __future__ import annotations

from ordercast.model.ids import ConfigurationId, ProcessId
from ordercast.model.notes import Occurrence
from ordercast.order.gateways.births import bear
from ordercast.order.gateways.items import (
    NOBODY_ELSE,
    EndItem,
    Half,
    LogicalRing,
    Processes,
    Stretch,
    TopologyItem,
    TopologyPart,
)
from ordercast.order.gateways.known import Known


def _people(*numbers: int) -> Processes:
    return frozenset(map(ProcessId, numbers))


ME = ProcessId(1)
OFFICE = LogicalRing(ConfigurationId(1028, ME), _people(1, 2), NOBODY_ELSE, 5)
STRANGE = LogicalRing(ConfigurationId(1028, ProcessId(3)), _people(3), _people(3), 6)
LAB = LogicalRing(ConfigurationId(1032, ProcessId(3)), _people(3, 4), _people(3), 7)
PHYSICAL = ConfigurationId(2052, ME)


def _known() -> Known:
    known = Known(ME, (1,))
    known.learn(OFFICE)
    known.parts[OFFICE.id], known.own[1], known.place = OFFICE.members, OFFICE.id, OFFICE.birth
    known.born.add(OFFICE.id)
    return known


def _topology(ring: LogicalRing, *parts: LogicalRing) -> TopologyItem:
    told = tuple(TopologyPart(part, part.members) for part in parts)
    return TopologyItem(PHYSICAL, ring.id, min(ring.members), PHYSICAL, ring.members, told, (), (), ())


def _merge() -> LogicalRing:
    halves = (Half(OFFICE.id, OFFICE.members), Half(STRANGE.id, STRANGE.members))
    topologies = (_topology(OFFICE, OFFICE), _topology(STRANGE, STRANGE, LAB))
    merged = ConfigurationId(PHYSICAL.seq + 1, ME)
    return LogicalRing(merged, OFFICE.members | STRANGE.members, _people(3), 50, halves, topologies)


def test_rings_that_a_merge_brings_begin_there_and_a_link_may() -> None:
    known, merge = _known(), _merge()
    bear(known, merge)
    assert known.place == merge.birth and known.merges == {merge.birth}
    assert known.parts[merge.id] == _people(1, 2, 3) and known.parts[LAB.id] == LAB.members
    lab = known.streams[LAB.id]
    assert lab.front == lab.start == merge.birth
    assert lab.take(Stretch(LAB.id, 49, ProcessId(4), (9,), (b"",))) is None
    assert known.streams[OFFICE.id].start < merge.birth  # it was there before


def test_who_is_claimed_by_two_rings_went_to_the_later_one() -> None:
    known = _known()
    first = LogicalRing(ConfigurationId(2052, ME), OFFICE.members, NOBODY_ELSE, 20)
    later = LogicalRing(ConfigurationId(3076, ProcessId(2)), _people(2), NOBODY_ELSE, 30)
    known.ends.add(EndItem(OFFICE.id, OFFICE.members, first, _people(1)))
    known.ends.add(EndItem(OFFICE.id, _people(2), later, _people(2)))
    bear(known, first)
    assert known.parts[first.id] == _people(1) and known.merges == set()
    assert known.occurred[Occurrence.NETWORK_CLAIMED_TWICE] == 1
    bear(known, later)
    assert known.parts[later.id] == _people(2) and known.occurred[Occurrence.NETWORK_CLAIMED_TWICE] == 1


def test_a_merge_does_not_count_whoever_has_gone_on_otherwise() -> None:
    known, merge = _known(), _merge()
    later = LogicalRing(ConfigurationId(3076, ProcessId(2)), _people(2), NOBODY_ELSE, 60)
    known.ends.add(EndItem(OFFICE.id, _people(2), later, _people(2)))
    bear(known, merge)
    assert known.parts[merge.id] == _people(1, 3) and known.occurred[Occurrence.NETWORK_TWO_MINDS] == 1
