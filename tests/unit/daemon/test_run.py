"""What a daemon logs: each matter when it begins, then once a minute."""

from __future__ import annotations

import logging

import pytest

from ordercast.daemon.config.file import STATUS_PORT
from ordercast.daemon.config.node import PORT, NetworkConfig, NodeConfig
from ordercast.daemon.run import Reporter
from ordercast.daemon.status.alarms import REPEAT_NS
from ordercast.daemon.status.places import own_port
from ordercast.model.configuration import ChangeReason
from ordercast.model.effects import Alarm, AlarmKind
from ordercast.model.ids import SECOND, Instant, NodeId
from ordercast.session.counters import ClientRefusal
from tests.unit.daemon.fake_node import FakeNode
from tests.unit.daemon.test_status import ALPHA, BETA, view


@pytest.fixture
def node(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> FakeNode:
    monkeypatch.setattr(logging.getLogger("ordercast"), "propagate", True)
    caplog.set_level(logging.INFO, "ordercast")
    fake = FakeNode()
    fake.begin()
    return fake


def test_it_says_where_it_listens_and_what_it_was_not_granted(node: FakeNode, caplog: pytest.LogCaptureFixture) -> None:
    node.sockets.data.receive_buffer_size = 1 << 20
    Reporter(node).started()
    assert "alpha of cluster ordercast, node 1; tokens at 10.0.0.1 port 4701" in caplog.messages[0]
    assert caplog.messages[-1].startswith("the kernel granted a receive buffer of 1 MiB instead of 32 MiB: sysctl -w")


def test_views_are_logged_with_their_reason_and_failures_stand_out(
    node: FakeNode, caplog: pytest.LogCaptureFixture
) -> None:
    reporter = Reporter(node)
    reporter.on_view(view(4, ALPHA, BETA))
    reporter.on_view(view(8, ALPHA, reason=ChangeReason.TOKEN_LOST))
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("INFO", "view 4.alpha of alpha beta: another ring was heard"),
        (
            "WARNING",
            "view 8.alpha of alpha, beta is gone: the token was lost: a member crashed, or the network was cut",
        ),
    ]


def test_strangers_are_logged_at_once_and_then_once_a_minute(node: FakeNode, caplog: pytest.LogCaptureFixture) -> None:
    reporter = Reporter(node)
    for _ in range(REPEAT_NS // SECOND + 1):
        node.counters.refused["another cluster's packet"] += 5
        reporter.tick()
        node.clock += SECOND
    advice = "refused (another cluster): give each cluster a multicast group and port of its own"
    assert caplog.messages == [f"5 packets {advice}", f"300 packets {advice}"]


def test_clients_that_are_refused_are_logged_at_once_and_then_once_a_minute(
    node: FakeNode, caplog: pytest.LogCaptureFixture
) -> None:
    reporter = Reporter(node)
    for _ in range(REPEAT_NS // SECOND + 1):
        node.counters.clients.refusals[ClientRefusal.FULL] += 7
        reporter.tick()
        node.clock += SECOND
    advice = "refused (too many clients): raise sessions_max in [clients]"
    assert caplog.messages == [f"7 clients {advice}", f"420 clients {advice}"]


def test_an_alarm_is_logged_once(node: FakeNode, caplog: pytest.LogCaptureFixture) -> None:
    reporter = Reporter(node)
    node.counters.alarms.append((Instant(5), Alarm(AlarmKind.PAUSED, "did not run")))
    reporter.tick()
    reporter.tick()
    assert caplog.messages == ["paused: did not run"]


def test_pauses_of_a_busy_host_are_logged_once_a_minute(node: FakeNode, caplog: pytest.LogCaptureFixture) -> None:
    reporter = Reporter(node)
    for number in range(1, REPEAT_NS // SECOND + 2):
        node.counters.alarms.append((node.now(), Alarm(AlarmKind.PAUSED, f"pause {number}")))
        reporter.tick()
        node.clock += SECOND
    assert caplog.messages == ["paused: pause 1", "paused: pause 61 (and 59 times since the last of these lines)"]


def test_the_line_for_a_supervisor(node: FakeNode) -> None:
    assert Reporter(node).line() == "operational, ring 4.alpha of alpha; 0 messages/s"


def test_nodes_of_one_machine_have_one_status_port_each() -> None:
    local = FakeNode(NodeConfig(name="n3", node=NodeId(3)))
    assert own_port(local.config, STATUS_PORT) == STATUS_PORT + 2
    assert own_port(local.config, 9000) == 9000
    elsewhere = FakeNode(NodeConfig(name="n3", node=NodeId(3), network=NetworkConfig(port=PORT + 1000)))
    assert own_port(elsewhere.config, STATUS_PORT + 1000) == STATUS_PORT + 1002
    assert own_port(FakeNode().config, STATUS_PORT) == STATUS_PORT
