"""What the ledger of a network of rings takes for a false statement, over processes whose knowledge is given."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

from ordercast.model.ids import ConfigurationId, Incarnation, NodeId, process_id_from
from ordercast.model.promises import RingsPromise
from ordercast.order.gateways.items import Column, LogicalRing, NoticeItem, Statement, Stretch
from ordercast.order.gateways.merging import PhysicalRing
from ordercast.order.stamped.lanes import NO_STAMP, Stamp
from ordercast.sim.findings import Findings
from ordercast.sim.gateways.ledger import RingLedger
from ordercast.sim.gateways.watched import WatchedNetwork

SPEAKER, MEMBER, STRANGER = (process_id_from(NodeId(number), Incarnation(1)) for number in (1, 2, 3))
NEAR, FAR = ConfigurationId(1024, SPEAKER), ConfigurationId(2052, STRANGER)
SOURCE = LogicalRing(FAR, frozenset((STRANGER,)), frozenset(), 2)


def _is_false(speaker_takes_it_from: Stamp, packet_tick: int) -> bool:
    """Whether it is false that all of a ring have a source of which one member lacks a packet."""
    findings = Findings()
    ledger = RingLedger(findings)
    for process, start in ((SPEAKER, speaker_takes_it_from), (MEMBER, NO_STAMP), (STRANGER, NO_STAMP)):
        known = SimpleNamespace(own={}, streams={FAR: SimpleNamespace(start=start, tag=SOURCE.tag)})
        ledger.begin(process, cast("WatchedNetwork", SimpleNamespace(known=known)))
    ledger.split(FAR, SOURCE)
    ledger.split(NEAR, LogicalRing(NEAR, frozenset((SPEAKER, MEMBER)), frozenset((SPEAKER,)), 2))
    packet = Stretch(FAR, packet_tick, STRANGER, (9,), (b"body",))
    ledger.handed_up(STRANGER, PhysicalRing(FAR, SOURCE.members, 2), SOURCE, packet, None)
    said = Statement(Column(FAR, None), (50, SOURCE.tag, 20))
    ledger.stated(NoticeItem(NEAR, SPEAKER, (50, 0, 0), (said,)))
    return findings.is_broken(RingsPromise.STATEMENTS)


def test_who_is_said_to_have_what_it_lacks_is_found() -> None:
    assert _is_false(NO_STAMP, 30)


def test_a_statement_speaks_of_what_came_since_its_speaker_takes_the_source_on() -> None:
    """A ring was cut off, and a merge brought it back: what is older is of nobody's concern who hears the statement.
    A member that is not there yet may know the ring from before (gateways 70776)."""
    merge = (40, 0, 0)
    assert not _is_false(merge, 30)
    assert _is_false(merge, 41)
