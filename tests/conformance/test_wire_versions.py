"""Nodes whose packets cannot be read are named, and change nothing. (Not in the paper)"""

from __future__ import annotations

import pytest

from ordercast.model.effects import AlarmKind, Effect, Record
from ordercast.model.ids import SECOND, ProcessId
from ordercast.model.notes import PacketDropped
from ordercast.wire.codec import encode
from ordercast.wire.head import VERSION, with_head
from ordercast.wire.messages import Leave

from .solo import CLUSTER, RING, THREE, Solo, alarms


def old_packet(transmitter: ProcessId = THREE, cluster: bytes = CLUSTER) -> bytes:
    """A Leave in wire version 2: magic, version, kind, cluster, ring, length, flags, count, transmitter, the rest."""
    ring = RING.seq.to_bytes(8, "big") + RING.representative.to_bytes(8, "big")
    return b"oC\x02\x07" + cluster + ring + b"\0\x48\0\0" + transmitter.to_bytes(8, "big") * 2 + bytes(24)


def newer_packet() -> bytes:
    packet = encode(CLUSTER, Leave(RING, THREE))
    return packet[:2] + bytes((VERSION + 1,)) + packet[3:]


def dropped(effects: list[Effect]) -> list[str]:
    notes = [effect.note for effect in effects if isinstance(effect, Record)]
    return [note.why for note in notes if isinstance(note, PacketDropped)]


@pytest.mark.parametrize(("packet", "version"), [(old_packet(), 2), (newer_packet(), VERSION + 1)])
def test_an_alarm_names_the_node_and_its_version(packet: bytes, version: int) -> None:
    solo = Solo().to_operational()
    effects = solo.give_packets(packet)
    assert dropped(effects) == [f"wire version {version}, we speak {VERSION}"]
    (alarm,) = alarms(effects)
    assert (alarm.kind, alarm.process) == (AlarmKind.WIRE_VERSION, THREE)
    assert f"n3 of this cluster speaks wire version {version}, and this node {VERSION}" in alarm.text
    assert solo.node.state_name == "Operational"


def test_the_alarm_is_raised_once_a_minute_whoever_speaks() -> None:
    solo = Solo().to_ring_of_one()
    packets = [old_packet(ProcessId(number << 48 | 1)) for number in range(5, 100)]
    assert len(alarms(solo.give_packets(*packets))) == 1
    solo.wait(59 * SECOND)
    assert not alarms(solo.give_packets(*packets))
    solo.wait(SECOND)
    assert len(alarms(solo.give_packets(*packets))) == 1


def test_other_clusters_may_speak_what_they_like() -> None:
    solo = Solo().to_ring_of_one()
    effects = solo.give_packets(old_packet(cluster=bytes(8)))
    assert dropped(effects) == ["another cluster's packet, in another wire version"]
    assert not alarms(effects)


def test_a_packet_too_short_to_say_who_sent_it_raises_the_alarm_all_the_same() -> None:
    (alarm,) = alarms(Solo().to_ring_of_one().give_packets(old_packet()[:30]))
    assert alarm.text.startswith("a node of this cluster speaks wire version 2")


@pytest.mark.parametrize("kind", [0, 9, 99, 254])
def test_a_kind_that_nobody_knows_is_named_and_ignored(kind: int) -> None:
    solo = Solo().to_operational()
    effects = solo.give_packets(with_head(CLUSTER, THREE, bytes((kind,)) + bytes(40)))
    assert dropped(effects) == [f"message kind {kind} does not exist"]
    assert len(effects) == 1 and solo.node.state_name == "Operational"
