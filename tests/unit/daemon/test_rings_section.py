"""A daemon in a network of rings tells of all of them: in its status, its metrics and its warnings."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ordercast.cli.status_drawing import status_line, status_page
from ordercast.cli.terminal import SafeConsole
from ordercast.daemon.config.node import NetworkConfig, NodeConfig, Peer, RingDomain
from ordercast.daemon.status.absences import Absence
from ordercast.daemon.status.advice import advised
from ordercast.daemon.status.metrics import metrics_text
from ordercast.daemon.status.out_of_view import OutOfView, out_of_view
from ordercast.daemon.status.report import status_of
from ordercast.daemon.status.rings_section import NetworkHoldStatus, NetworkWaitStatus, RingsSection
from ordercast.model.configuration import ChangeReason
from ordercast.model.ids import NO_CONFIGURATION, SECOND, Incarnation, Instant, NodeId, process_id_from
from ordercast.model.notes import Occurrence
from ordercast.order.gateways.node import GatewayNode
from tests.unit.daemon.fake_node import FakeNode
from tests.unit.order.gateways.played import played

NAMES = ("ann", "ben", "gate", "cid", "dora")
LINE = ((0,), (0,), (0, 1), (1,), (1,))  # two rings, joined by `gate`


@pytest.fixture(scope="module")
def node() -> FakeNode:
    engines: dict[int, GatewayNode] = {}
    played(LINE, engines)
    peers = tuple(Peer(NodeId(number), name, f"10.0.0.{number}") for number, name in enumerate(NAMES))
    config = replace(NodeConfig(), name="gate", node=NodeId(2), peers=peers, engine="gateways")
    return FakeNode(config, engines[2])


def test_a_status_has_the_rings_and_who_joins_them(node: FakeNode) -> None:
    node.counters.occurred[Occurrence.NETWORK_FILTERED.value] = 3
    status = status_of(node)
    section = status.section
    assert isinstance(section, RingsSection)
    assert [(part.name, part.members, part.gateways) for part in section.parts] == [
        ("segment0", ("ann", "ben", "gate"), ("gate",)),
        ("segment1", ("gate", "cid", "dora"), ("gate",)),
    ]
    assert section.attached["gate"] == ("segment0", "segment1") and section.attached["ann"] == ("segment0",)
    assert [own.ring for own in section.attachments] == ["segment0", "segment1"] and section.attachments[0].is_ready
    assert section.attachments[1].token.visits > 0 and section.attachments[1].members == 3
    assert section.waiting is None and section.undelivered == 0 and section.filtered == 3
    document = status.document()
    assert document["gateways"]["parts"][0]["members"] == ["ann", "ben", "gate"] and "token" not in document


def test_metrics_have_a_label_for_each_ring(node: FakeNode) -> None:
    lines = metrics_text(status_of(node)).splitlines()
    assert "ordercast_rings 2" in lines and "ordercast_rings_gateways 1" in lines
    assert 'ordercast_rings_carry_queue_bytes{ring="segment1"} 0' in lines
    assert any(line.startswith('ordercast_token_visits_total{ring="segment0"} ') for line in lines)
    assert any(line.startswith('ordercast_rings_front_ticks{ring="segment1"} ') for line in lines)
    assert not any(line.startswith("ordercast_token_visits_total ") for line in lines)


def test_what_waits_for_long_and_who_holds_are_warnings(node: FakeNode) -> None:
    status = status_of(node)
    assert isinstance(status.section, RingsSection)
    waiting = NetworkWaitStatus("a message", "segment0", "ann", 7, 5 * SECOND, ("segment1",), ())
    holds = (NetworkHoldStatus("dora", 1, "the application is behind", 3 * SECOND),)
    stuck = replace(status, section=replace(status.section, waiting=waiting, holds=holds))
    warnings = " ".join(advised(stuck).warnings)
    assert "delivery has waited for 5 s for segment1" in warnings
    waiting = replace(waiting, rings=(), for_disk=True)
    on_disk = replace(status, section=replace(status.section, waiting=waiting))
    assert "delivery has waited for 5 s for the disk" in " ".join(advised(on_disk).warnings)
    assert "dora has asked everybody to stop for 3 s: the application is behind" in warnings
    assert "waited" not in " ".join(advised(status).warnings)


def test_rings_and_nodes_of_the_file_that_are_not_in_the_view_are_named(node: FakeNode) -> None:
    on = {"ann": "a", "ben": "a", "cid": "b", "dora": "b", "gate": "ab", "eve": "b", "finn": "c", "gus": "cd"}
    domains = {"a": "segment0", "b": "segment1", "c": "attic", "d": "cellar"}
    peers = tuple(
        Peer(NodeId(number), name, f"10.0.0.{number}", rings=tuple(domains[ring] for ring in rings))
        for number, (name, rings) in enumerate(on.items())
    )
    rings = tuple(RingDomain(name, number, NetworkConfig()) for number, name in enumerate(domains.values(), 1))
    away = FakeNode(replace(node.config, rings=rings, peers=peers), node.engine)
    gone = Absence(
        process_id_from(NodeId(7), Incarnation(1)), Instant(97 * SECOND), NO_CONFIGURATION, ChangeReason.LEFT, False
    )
    away.counters.absences.away[NodeId(7)] = gone
    assert out_of_view(away, ("segment0", "segment1"), away.now()) == (
        OutOfView("attic", ("finn", "gus"), 3 * SECOND, "a member left"),
        OutOfView("cellar", ("gus",), 3 * SECOND, "a member left"),
        OutOfView("", ("eve",), None, None),
    )


def test_the_page_and_the_line_show_the_network(node: FakeNode, capsys: pytest.CaptureFixture[str]) -> None:
    document = advised(status_of(node)).document()
    SafeConsole().print(status_page(document))
    page = " ".join(capsys.readouterr().out.split())
    assert "gate joins segment0 and segment1" in page and "0 packets wait for their place" in page
    assert "2 rings, 0 undelivered" in status_line(document)
