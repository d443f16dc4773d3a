"""However many alarms of one kind there are, those of another are kept, and a person reads a few lines."""

from __future__ import annotations

import logging

import pytest

from ordercast.daemon.run import Reporter
from ordercast.daemon.status.alarms import ALARMS_KEPT, ENTRIES_OF_KIND_MAX, REPEAT_NS, Alarms, text_of
from ordercast.model.effects import Alarm, AlarmKind
from ordercast.model.ids import SECOND, Incarnation, Instant, NodeId, ProcessId, process_id_from
from tests.unit.daemon.fake_node import FakeNode


def alarm(kind: AlarmKind, process: int = 1, text: str = "something") -> Alarm:
    return Alarm(kind, text, ProcessId(process))


def test_the_same_about_the_same_is_one_entry_for_a_minute_with_a_count_and_the_last_text() -> None:
    alarms = Alarms()
    for second in range(61):
        alarms.append((Instant(second * SECOND), alarm(AlarmKind.FORGED, text=f"packet {second}")))
        alarms.append((Instant(second * SECOND), alarm(AlarmKind.FORGED, 2)))
    one, two, again, _ = alarms.entries()
    assert (one.count, one.alarm.text, one.first_at, one.at) == (60, "packet 59", 0, 59 * SECOND)
    assert (two.count, two.alarm.process) == (60, 2)
    assert (again.count, again.before, again.alarm.text) == (1, 59, "packet 60")


def test_networks_are_told_apart_and_what_was_repaired_and_broke_again_is_last() -> None:
    alarms = Alarms()
    for kind, network in (("FAULTY", 0), ("FAULTY", 1), ("REPAIRED", 0), ("FAULTY", 0)):
        alarms.append((Instant(1), Alarm(AlarmKind[f"NETWORK_{kind}"], "", None, network=network)))
    found = [(one.alarm.kind.name, one.alarm.network, one.count) for one in alarms.entries()]
    assert found == [("NETWORK_FAULTY", 1, 1), ("NETWORK_REPAIRED", 0, 1), ("NETWORK_FAULTY", 0, 2)]


def test_rings_are_told_apart() -> None:
    alarms = Alarms()
    for domain in (1, 2, 1):
        alarms.append((Instant(1), Alarm(AlarmKind.RING_SILENT, "", domain=domain)))
    assert [(one.alarm.domain, one.count) for one in alarms.entries()] == [(2, 1), (1, 2)]


def test_a_flood_of_one_kind_pushes_no_other_out_and_loses_not_its_own_first() -> None:
    alarms = Alarms()
    alarms.append((Instant(1), alarm(AlarmKind.PAUSED, text="the true one")))
    for number in range(10_000):
        at = Instant(number * SECOND)  # hours of it
        alarms.append((at, alarm(AlarmKind.CONFIGURATION_MISMATCH, number)))
        alarms.append((at, alarm(AlarmKind.FORGED, number)))
    assert len(alarms) <= ALARMS_KEPT
    texts = [one.text for _, one in alarms]
    assert "the true one" in texts
    for kind in (AlarmKind.CONFIGURATION_MISMATCH, AlarmKind.FORGED):
        processes = [one.process for _, one in alarms if one.kind is kind]
        assert processes[0] == 0 and max(filter(None, processes)) > 9_900


def test_a_flood_about_invented_processes_is_a_few_lines_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "ordercast")
    node = FakeNode()
    reporter = Reporter(node)
    for second in range(120):
        for number in range(100):
            node.counters.alarms.append((node.now(), alarm(AlarmKind.FORGED, 100 * second + number)))
        if second == 70:
            node.counters.alarms.append((node.now(), alarm(AlarmKind.PAUSED, text="the true one")))
        reporter.tick()
        node.clock += SECOND
    lines = [line for line in caplog.messages if line.startswith("forged packet")]
    assert len(lines) == 2 * ENTRIES_OF_KIND_MAX
    assert "paused: the true one" in caplog.messages
    counts = [one.count for one in node.counters.alarms.entries() if one.alarm.kind is AlarmKind.FORGED]
    assert sum(counts) == 12_000 and REPEAT_NS == 60 * SECOND


def test_a_node_is_called_by_its_name_and_no_other_that_begins_alike() -> None:
    beta = process_id_from(NodeId(2), Incarnation(1))
    again = process_id_from(NodeId(2), Incarnation(17))
    names = {beta: "beta", again: "beta"}
    raised = [
        alarm(AlarmKind.FORGED, beta, "n2 is neither n21 nor n2'17"),
        alarm(AlarmKind.FORGED, again, "n2'17 is n2"),
    ]
    assert [text_of(one, names.__getitem__) for one in raised] == ["beta is neither n21 nor n2'17", "beta is n2"]
    assert text_of(Alarm(AlarmKind.FORGED, "n2", None), names.__getitem__) == "n2"
