"""Members whose places would differ never come together, and a person is told which node and which keys."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ordercast.model.effects import Alarm, AlarmKind, Effect
from ordercast.model.ids import ConfigurationId, Incarnation, Instant, NodeId, ProcessId, process_id_from
from ordercast.model.inputs import Lane, Packet
from ordercast.networks.assembly import assembled
from ordercast.networks.config import NetworksConfig
from ordercast.order.adaptive.codec import AdaptiveKind, Mark, encode_mark
from ordercast.order.adaptive.config import AdaptiveConfig, least_reach
from ordercast.order.adaptive.node import BAD_MAX, AdaptiveNode
from ordercast.order.engine import CONFIGURATION_SEQ_KEY
from ordercast.sim.options import SIM_ADAPTIVE, SIM_RING, SimOptions
from ordercast.wire.codec import encode
from ordercast.wire.head import cluster_id_from
from ordercast.wire.messages import Announcement

NOW = Instant(1_000_000)
OTHER = process_id_from(NodeId(2), Incarnation(1))


def alone(*other_engines: str) -> AdaptiveNode:
    others = {cluster_id_from(SIM_RING.cluster, engine): engine for engine in other_engines}
    node = AdaptiveNode(NodeId(1), SIM_RING, SIM_ADAPTIVE, other_engines=others)
    node.start({}, Incarnation(1), NOW)
    node.persisted(CONFIGURATION_SEQ_KEY, NOW)
    return node


def given(node: AdaptiveNode, packet: bytes) -> list[Alarm]:
    effects: list[Effect] = node.receive([Packet(packet, len(packet), Lane.DATA)], NOW)
    return [effect for effect in effects if isinstance(effect, Alarm)]


def merge(node: AdaptiveNode) -> None:
    """Let the time pass in which rings that have heard each other come together."""
    for _ in range(4):
        node.wake(node.next_deadline() or NOW)


def announced(node: AdaptiveNode, settings: tuple[int, ...], sender: ProcessId = OTHER) -> bytes:
    ring = ConfigurationId(4, sender)
    message = Announcement(ring, sender, (sender,), tuple(sorted((node.process, sender))), settings=settings)
    return encode(node.cluster, message)


def test_who_has_the_same_places_is_taken_in() -> None:
    node = alone()
    assert given(node, announced(node, tuple(SIM_ADAPTIVE.settings.values()))) == []
    merge(node)
    assert node.state_name == "Gather"


@pytest.mark.parametrize(
    ("key", "value"), [("block", {"block": 8}), ("period", {"period": 48}), ("reach", {"reach": 99_999})]
)
def test_who_has_others_stays_apart_and_is_named_once(key: str, value: dict[str, Any]) -> None:
    node = alone()
    theirs = announced(node, tuple(replace(SIM_ADAPTIVE, **value).settings.values()))
    (alarm,) = [alarm for _ in range(3) for alarm in given(node, theirs)]
    assert (alarm.kind, alarm.process) == (AlarmKind.CONFIGURATION_MISMATCH, OTHER)
    assert "n2" in alarm.text and f" adaptive.{key} " in alarm.text
    merge(node)
    assert node.is_ready and node.configuration.members == (node.process,)


def test_who_says_nothing_of_its_places_stays_apart() -> None:
    node = alone()
    (alarm,) = given(node, announced(node, ()))
    assert "adaptive.block, adaptive.period, adaptive.reach and the format of packets" in alarm.text and node.is_ready


def test_who_has_fewer_settings_is_told_only_what_is_missing() -> None:
    """An earlier version of the engine has no setting for what was added since."""
    node = alone()
    (alarm,) = given(node, announced(node, tuple(SIM_ADAPTIVE.settings.values())[:-1]))
    assert "has another value of the format of packets than this process" in alarm.text and node.is_ready


def test_another_engine_of_the_same_cluster_is_named_whatever_its_packets() -> None:
    node = alone("ring", "tree")
    mark = encode_mark(node.ring.heading.of_kind(AdaptiveKind.MARK), OTHER, Mark(0, 1, 0, 50, 0, 0, 0, False))
    (alarm,) = given(node, mark[:6] + cluster_id_from(SIM_RING.cluster, "tree") + mark[14:23] + bytes(8) + mark[31:])
    assert (alarm.kind, alarm.process) == (AlarmKind.CONFIGURATION_MISMATCH, OTHER) and "'tree'" in alarm.text


def test_packets_that_go_on_being_wrong_are_told_of_once() -> None:
    node = alone()
    mark = encode_mark(node.ring.heading.of_kind(AdaptiveKind.MARK), OTHER, Mark(0, 1, 0, 50, 0, 0, 0, False))
    assert [alarm for _ in range(BAD_MAX - 1) for alarm in given(node, mark)] == []
    (alarm,) = [alarm for _ in range(3 * BAD_MAX) for alarm in given(node, mark)]
    assert (alarm.kind, alarm.process) == (AlarmKind.FORGED, OTHER) and "from one who is no member" in alarm.text


def test_the_reach_says_how_many_members_it_suits() -> None:
    usual = AdaptiveConfig()
    assert usual.members_suited == 48 and AdaptiveConfig(reach=1000).members_suited == 0
    for config in (usual, SIM_ADAPTIVE, AdaptiveConfig(block=2, reach=600)):
        suited = config.members_suited
        assert least_reach(config, suited) <= config.reach < least_reach(config, suited + 1)


def test_several_networks_are_waited_for_before_anything_is_missed() -> None:
    options, two = SimOptions(engine="adaptive"), NetworksConfig(count=2)
    for networks, ask in ((NetworksConfig(), SIM_ADAPTIVE.ask_ns), (two, two.token_hold_ns)):
        engine = assembled("adaptive", NodeId(1), options, networks).engine
        assert isinstance(engine, AdaptiveNode) and engine.adaptive.ask_ns == ask
