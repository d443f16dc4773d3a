"""A daemon of the tree engine tells its place in the forest, what enters there, and why the forest changed, by name."""

from __future__ import annotations

import json
from dataclasses import replace
from io import StringIO

from rich.console import Console

from ordercast.cli.graph_show import explained
from ordercast.cli.status_drawing import status_line, status_page
from ordercast.daemon.config.node import NodeConfig
from ordercast.daemon.status.metrics import metrics_text
from ordercast.daemon.status.report import status_of
from ordercast.daemon.status.tree_section import ForestNode, TreeSection
from ordercast.model.effects import Deliver
from ordercast.model.ids import SECOND, Incarnation, Instant, NodeId
from ordercast.model.inputs import Interest, Submission
from ordercast.model.service import Service
from ordercast.networks.assembly import assembled
from tests.unit.daemon.fake_node import PEERS, FakeLane, FakeNode


def node(now: int = SECOND) -> FakeNode:
    """One that is alone, and wants a group."""
    config = replace(NodeConfig(), name="alpha", node=NodeId(1), peers=PEERS, engine="tree")
    engine = assembled("tree", NodeId(1), config, config.layer).engine
    engine.start({}, Incarnation(1), Instant(0))
    fake = FakeNode(config, engine)
    fake.sockets.link = FakeLane("10.0.0.1 port 4829")
    engine.enlist(config.roster, Instant(0))
    fake.begin()
    engine.interest([Interest("news", is_wanted=True)], Instant(0))
    for at in range(0, now, now // 100):
        engine.wake(Instant(at))
    return fake


def test_a_status_has_the_forest_by_name_and_the_lane_of_links() -> None:
    status = status_of(node())
    section = status.section
    assert isinstance(section, TreeSection) and section.manager == "alpha" and section.birth == section.opened
    assert section.forest == (ForestNode("alpha", None, 1),) and (section.parent, section.children) == (None, ())
    assert [(entry.group, entry.members, entry.visited) for entry in section.entries] == [("news", 1, 1)]
    assert section.changes[-1].endswith(": alpha now wants news (1 closed, 1 born)")
    document = json.loads(json.dumps(status.document(), default=str))
    assert "root, 1 entries" in status_line(document).replace(" · ", ", ")
    console = Console(width=140, file=StringIO(), record=True)
    console.print(status_page(document))
    text = console.export_text()
    assert "1 trees of 1 nodes" in text and "link" in text
    sentences = list(explained("alpha", document["tree"]))
    assert (
        sentences[0] == "alpha is the root of its tree, and passes on nothing; alpha decides when the forest changes."
    )
    assert "Messages of 1 group enter here." in sentences


def test_a_small_window_shows_why_views_changed() -> None:
    document = json.loads(json.dumps(status_of(node()).document(), default=str))
    console = Console(width=80, height=24, file=StringIO(), record=True)
    console.print(status_page(document, is_watched=True))
    assert any("view changes" in line for line in console.export_text().splitlines()[:24])


def test_metrics_are_of_trees_and_of_the_control_ring() -> None:
    lines = metrics_text(status_of(node())).splitlines()
    assert "ordercast_tree_trees 1" in lines and "ordercast_tree_entries 1" in lines
    assert any(line.startswith("ordercast_token_visits_total ") for line in lines)
    assert any(line.startswith('ordercast_socket_packets_sent_total{lane="link"}') for line in lines)


def test_before_the_first_configuration_there_is_a_status_too() -> None:
    config = replace(NodeConfig(), name="alpha", node=NodeId(1), peers=PEERS, engine="tree")
    engine = assembled("tree", NodeId(1), config, config.layer).engine
    engine.start({}, Incarnation(1), Instant(0))
    section = status_of(FakeNode(config, engine)).section
    assert isinstance(section, TreeSection) and section.forest == () and section.birth is None


def test_what_is_not_well_is_named() -> None:
    own = status_of(node()).section
    assert isinstance(own, TreeSection)
    ill = replace(own, behind=("beta",), broken=(("alpha", "beta"),), birth=None, closing=("gamma",))
    ill = replace(ill, paused_for_ns=3 * SECOND)
    assert [warning.partition(",")[0] for warning in ill.warnings(1)] == [
        "groups of beta wait",
        "no tree uses the link between alpha and beta",
        "this node has been in no tree for 3 s",
    ]


def test_a_message_of_any_size_that_is_allowed_may_go_everywhere() -> None:
    """It travels on the control stream, with a head."""
    fake = node()
    size = fake.config.sizes.message_size_max
    effects = fake.engine.submit([Submission(bytes(size), Service.AGREED)], Instant(SECOND))
    for at in range(SECOND, 2 * SECOND, SECOND // 50):
        effects += fake.engine.wake(Instant(at))
    assert [len(data) for one in effects if isinstance(one, Deliver) for *_, data in one.messages()] == [size]
