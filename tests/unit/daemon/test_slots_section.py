"""A daemon of the adaptive engine tells whose places there are and who holds up the order, by name."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO

from rich.console import Console

from ordercast.cli.status_drawing import status_line, status_page
from ordercast.daemon.config.node import NodeConfig
from ordercast.daemon.status.metrics import metrics_text
from ordercast.daemon.status.report import status_of
from ordercast.daemon.status.slots_section import SlotOwner, SlotsSection
from ordercast.model.ids import SECOND, Incarnation, Instant, NodeId
from ordercast.order.adaptive.config import AdaptiveConfig
from ordercast.order.adaptive.node import AdaptiveNode
from ordercast.order.adaptive.observed import slots_seen
from ordercast.order.adaptive.repair import Repair
from ordercast.order.adaptive.slots import Distribution
from ordercast.order.ring.config import RingConfig
from tests.unit.daemon.fake_node import PEERS, FakeNode
from tests.unit.order.adaptive.test_merge import make_merge, packet
from tests.unit.order.rings import ONE, THREE

NOW = Instant(SECOND)


def node() -> FakeNode:
    config = replace(NodeConfig(), name="alpha", node=NodeId(1), peers=PEERS, engine="adaptive")
    engine = AdaptiveNode(NodeId(1), RingConfig(members_max=8), AdaptiveConfig())
    engine.start({}, Incarnation(1), Instant(0))
    engine.enlist(config.roster, Instant(0))
    fake = FakeNode(config, engine)
    fake.begin()
    return fake


def test_a_status_has_the_places_by_name_and_no_token() -> None:
    status = status_of(node())
    section = status.section
    assert isinstance(section, SlotsSection) and section.book_keeper == "alpha"
    assert section.members == (SlotOwner("alpha", 1, 0, 0, 0, 0, is_behind=False, blocks_ns=None),)
    document = status.document()
    assert document["adaptive"]["members"][0]["name"] == "alpha" and "token" not in document
    assert "distribution 0" in status_line(document)
    console = Console(width=120, file=StringIO(), record=True)
    console.print(status_page(document))
    assert "distribution 0, the next by alpha: alpha 1/1" in console.export_text()


def test_metrics_are_of_places_and_not_of_tokens() -> None:
    lines = metrics_text(status_of(node())).splitlines()
    assert 'ordercast_slots_weight{node="alpha"} 1' in lines and "ordercast_slots_marks_total 0" in lines
    assert not any(line.startswith("ordercast_token_visits_total") for line in lines)


def test_who_holds_up_the_order_is_named_with_a_warning() -> None:
    own = status_of(node()).section
    assert isinstance(own, SlotsSection) and list(own.warnings(1)) == []
    slow = SlotOwner("beta", 1, 1, 0, 0, 0, is_behind=True, blocks_ns=3 * SECOND)
    section = replace(own, members=(*own.members, slow))
    assert section.blockers == {"beta": 3 * SECOND}
    assert [warning.split(":")[0] for warning in section.warnings(2)] == [
        "delivery has waited for 3 s for beta",
        "nobody sends, for the application at beta does not take its deliveries",
    ]


def test_members_block_from_when_packets_began_to_wait_for_their_word() -> None:
    merge, repair = make_merge(ONE), Repair(1_000_000, 40_000_000, 100)
    assert [member.blocks_since for member in slots_seen(merge, repair).members] == [None] * 3
    merge.take(packet(merge.line.newest.next_owned(2, 1), 1, THREE), 1)
    repair.review(merge, merge.safe, NOW)
    seen = slots_seen(merge, repair)
    assert [member.blocks_since for member in seen.members] == [None, NOW, None]
    assert [member.weight for member in seen.members] == [1, 1, 1] and seen.members[2].packets == 1
    assert seen.highest > seen.delivered


def test_the_book_keeper_is_who_has_the_office_now() -> None:
    merge = make_merge(ONE)
    assert slots_seen(merge, None).book_keeper == ONE
    newest = merge.line.newest
    merge.adopt(Distribution(1, newest.base + 2000, newest.block, newest.ahead, newest.weights, keeper=2))
    assert slots_seen(merge, None).book_keeper == THREE
