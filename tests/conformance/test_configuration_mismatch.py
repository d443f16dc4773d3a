"""Members whose configurations differ are told so by name. (Not in the paper: its constants are compiled in.)"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ordercast.model.effects import AlarmKind
from ordercast.model.ids import ProcessId
from ordercast.order.membership.hearing import KNOWN_FACTOR
from ordercast.order.ring.config import RING_RELEVANT
from ordercast.wire.codec import encode
from ordercast.wire.head import cluster_id_from

from .solo import ONE, SMALL, TRIO, Solo, alarms, process

STAR = {cluster_id_from(SMALL.cluster, "star"): "star"}


def doubled(key: str) -> tuple[int, ...]:
    value = getattr(SMALL, key)
    changes: dict[str, Any] = {key: not value if isinstance(value, bool) else value * 2}
    return replace(SMALL, **changes).digests()


@pytest.mark.parametrize("key", RING_RELEVANT)
def test_the_alarm_names_the_key_and_the_process(key: str) -> None:
    solo = Solo().to_ring_of_one()
    (alarm,) = alarms(solo.give(solo.join_of(ONE, TRIO, digests=doubled(key))))
    assert alarm.kind is AlarmKind.CONFIGURATION_MISMATCH
    assert alarm.process == ONE
    assert f" {key} " in alarm.text and "n1" in alarm.text


def test_members_with_other_networks_are_told_once() -> None:
    solo = Solo().to_ring_of_one()
    digests = SMALL.digests("2 networks, active")
    (alarm,) = alarms(solo.give(*(solo.join_of(ONE, TRIO, digests=digests) for _ in range(3))))
    assert alarm.kind is AlarmKind.CONFIGURATION_MISMATCH and alarm.process == ONE
    assert alarm.text == "n1 has another value of networks, replication or copies than this process: make them equal"


def test_all_keys_of_a_node_are_told_at_once_and_once() -> None:
    solo = Solo().to_ring_of_one()
    digests = replace(SMALL, window=9, join_ns=1).digests()
    (alarm,) = alarms(solo.give(*(solo.join_of(ONE, TRIO, digests=digests) for _ in range(3))))
    assert alarm.text == "n1 has other values of window and join_ns than this process: make them equal"
    assert not alarms(solo.give(solo.join_of(ONE, TRIO, digests=doubled("window"))))
    (more,) = alarms(solo.give(solo.join_of(ONE, TRIO, digests=doubled("rest_ns"))))
    assert " rest_ns " in more.text


def test_forged_nodes_cannot_raise_alarms_without_end() -> None:
    solo = Solo(config=replace(SMALL, members_max=4)).to_ring_of_one()
    digests = doubled("window")
    strangers = [process(10 + number) for number in range(100)]
    effects = solo.give(*(solo.join_of(one, (one, solo.me), digests=digests) for one in strangers))
    assert len(alarms(effects)) == KNOWN_FACTOR * 4
    known, unknown = strangers[0], strangers[-1]
    again = [solo.join_of(one, (one, solo.me), digests=doubled("rest_ns")) for one in (known, unknown)]
    assert [alarm.process for alarm in alarms(solo.give(*again))] == [known]


def test_equal_configurations_raise_no_alarm() -> None:
    solo = Solo().to_ring_of_one()
    assert alarms(solo.give(solo.join_of(ONE, TRIO, digests=SMALL.digests()))) == []


def test_a_mismatch_does_not_keep_anybody_out() -> None:
    """It is a warning: the ring forms all the same."""
    solo = Solo().to_ring_of_one()
    solo.give(*solo.announcements())
    solo.give(solo.join_of(ONE, TRIO, digests=doubled("window")))
    assert solo.node.state_name == "Gather"


def test_a_newer_process_with_more_keys_is_understood() -> None:
    """Digests are compared as far as both have them."""
    solo = Solo().to_ring_of_one()
    assert alarms(solo.give(solo.join_of(ONE, TRIO, digests=(*SMALL.digests(), 7)))) == []


def _with_engine(solo: Solo, sender: ProcessId, engine: str) -> bytes:
    """A Join as a node of the same cluster sends it that runs another engine."""
    return encode(cluster_id_from(SMALL.cluster, engine), solo.join_of(sender, TRIO))


def test_who_runs_another_engine_in_the_same_cluster_is_named_once_and_never_a_member() -> None:
    solo = Solo(other_engines=STAR).to_ring_of_one()
    effects = [effect for _ in range(3) for effect in solo.give_packets(_with_engine(solo, ONE, "star"))]
    (alarm,) = alarms(effects)
    assert (alarm.kind, alarm.process) == (AlarmKind.CONFIGURATION_MISMATCH, ONE)
    assert "n1 runs the engine 'star'" in alarm.text and "engine key" in alarm.text
    assert solo.node.is_ready and solo.node.configuration.members == (solo.me,)


def test_another_cluster_is_nobodys_business() -> None:
    solo = Solo(other_engines=STAR).to_ring_of_one()
    assert alarms(solo.give_packets(encode(cluster_id_from("other", "star"), solo.join_of(ONE, TRIO)))) == []
    assert alarms(solo.give_packets(_with_engine(solo, ONE, "star")[:20])) == []
