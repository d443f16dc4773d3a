"""Metrics are well-formed text of Prometheus, and the guide lists them all."""

from __future__ import annotations

import re
from pathlib import Path

from ordercast.daemon.status.metrics import METRICS, PREFIX, metrics_text
from ordercast.daemon.status.parts import ClientsStatus, HoldStatus
from ordercast.daemon.status.report import status_of
from tests.unit.daemon.fake_node import FakeNode

GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "monitor.md"
SAMPLE = re.compile(r'ordercast_[a-z_]+(\{[a-z_]+="(?:[^"\\]|\\.)*"(,[a-z_]+="(?:[^"\\]|\\.)*")*\})? -?[0-9.e+-]+')


def text() -> str:
    node = FakeNode()
    node.begin()
    node.counters.messages_delivered = 12
    node.counters.moves['a "quoted" \\ move\n'] = 3
    node.sockets.data.counters.packets_received = 5
    node.clients = ClientsStatus(
        memory_size=7,
        memory_max=9,
        refusals={"no greeting": 3},
        holding=(HoldStatus("bob@n1", 1_500_000_000, 20),),
    )
    return metrics_text(status_of(node))


def test_every_line_is_a_comment_or_a_sample() -> None:
    for line in text().removesuffix("\n").split("\n"):
        assert line.startswith(("# HELP ordercast_", "# TYPE ordercast_")) or SAMPLE.fullmatch(line), line


def test_values_labels_and_escapes() -> None:
    lines = text().splitlines()
    assert "ordercast_messages_delivered_total 12" in lines
    assert "ordercast_uptime_seconds 100" in lines
    assert "ordercast_operational 1" in lines
    assert 'ordercast_client_refusals_total{reason="no greeting"} 3' in lines
    assert 'ordercast_client_holding_seconds{client="bob@n1"} 1.5' in lines
    assert {"ordercast_client_memory_bytes 7", "ordercast_client_memory_max_bytes 9"} <= set(lines)
    assert 'ordercast_socket_packets_received_total{lane="data"} 5' in lines
    assert 'ordercast_packets_refused_total{reason="another cluster"} 0' in lines
    assert r'ordercast_state_moves_total{move="a \"quoted\" \\ move\n"} 3' in lines


def test_no_two_metrics_have_one_name() -> None:
    assert len({metric.name for metric in METRICS}) == len(METRICS)


def test_the_guide_lists_every_metric() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| (.*?) \|", GUIDE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert [(name, kind) for name, kind, _ in rows] == [(PREFIX + metric.name, metric.kind) for metric in METRICS]
