"""The layer between an engine and its driver: what goes out, and in which order."""

from __future__ import annotations

from typing import Any, cast

from ordercast.model.effects import Alarm, AlarmKind, Broadcast, Effect, Then, in_order
from ordercast.model.ids import MAIN, SECOND, Instant, node_of
from ordercast.model.inputs import Lane, Packet
from ordercast.order.engine import Engine
from ordercast.sealing.cipher import SALT_SIZE
from ordercast.sealing.keys import ClusterKey, KeyRing
from ordercast.sealing.layer import Sealing
from ordercast.sealing.neighbours import TRIED_MAX
from ordercast.sealing.opener import SealRefusal
from ordercast.sealing.own import OwnLife
from ordercast.sealing.packet import KEY_AT, LIFE_SIZE, NONCE, NONCE_LAYOUT, PRESENCE_BIT
from ordercast.sim.sealed.cipher import PlainCipher
from ordercast.wire.head import CLEAR, with_head

from .stage import CLUSTER, CLUSTER_ON_A_TREE, KEY, NOW, OTHER_KEY, RECEIVER, SENDER, Ends, ring_of

LATER = b"what a Then brings"


class _Leaving:
    """An engine that leaves the work of every input for later."""

    traffic = None

    def start(self, *inputs: object) -> list[Effect]:
        return []

    def next_deadline(self) -> None:
        return None

    def receive(self, *inputs: object) -> list[Effect]:
        packet = with_head(CLUSTER, RECEIVER, LATER)
        return [Then(lambda: [Broadcast([(packet, len(packet))])])]


def _sealing() -> Sealing:
    salts = (bytes((number,)) * SALT_SIZE for number in range(7, 20))
    engine, node = cast(Engine, _Leaving()), node_of(RECEIVER)
    sealing = Sealing(
        engine,
        node,
        ring_of(KEY),
        PlainCipher(),
        lambda: next(salts),
        lambda attachment, lane: CLUSTER,
        {MAIN: 1},
        other_engines={CLUSTER_ON_A_TREE: "tree"},
    )
    sealing.start(cast(Any, {}), cast(Any, 6), NOW)
    return sealing


def _packets(effects: list[Effect]) -> list[bytes]:
    return [packet for effect in in_order(effects) if isinstance(effect, Broadcast) for packet in effect.packets]


def _life_and_number(packet: bytes) -> tuple[bytes, int]:
    _, life, high, low = NONCE_LAYOUT.unpack(packet[NONCE])
    return life.to_bytes(LIFE_SIZE, "big"), (high & ~PRESENCE_BIT) << 32 | low


def _read(data: bytes) -> Packet:
    return Packet(data, len(data), Lane.DATA)


def test_a_life_that_is_drawn_again_is_told_before_anything_is_sealed_in_it_also_where_work_is_left_for_later() -> None:
    sealing, others = _sealing(), Ends()
    before, name = sealing.own.id, sealing.own.name
    others.sealer = OwnLife(others.cipher, before + bytes(SALT_SIZE - LIFE_SIZE))
    same_number = others.presence()
    others.sealer = OwnLife(others.cipher, bytes((1,)) * SALT_SIZE)
    reads = [_read(one) for one in (others.presence(name), others.sealed(b"a body")[0], same_number)]
    told, later = _packets(sealing.receive(reads, NOW))
    assert sealing.own.id != before
    assert LATER in later
    assert [_life_and_number(one)[0] for one in (told, later)] == [sealing.own.id] * 2


def test_numbers_rise_in_what_goes_out_also_where_work_is_left_for_later() -> None:
    sealing, others = _sealing(), Ends()
    reads = [_read(one) for one in (others.presence(sealing.own.name), others.sealed(b"a body")[0])]
    presence, later = _packets(sealing.receive(reads, Instant(NOW + 10**12)))
    assert LATER in later
    assert _life_and_number(presence) < _life_and_number(later)


def test_keys_are_parted_with_when_none_of_those_in_use_is_among_them() -> None:
    sealing, others = _sealing(), Ends()
    stranger = ring_of(OTHER_KEY)
    assert not sealing.parts_with(stranger)  # nobody is here to part with
    sealing.receive([_read(others.presence(sealing.own.name))], NOW)
    assert sealing.parts_with(stranger)
    assert not sealing.parts_with(ring_of(OTHER_KEY, KEY))
    assert sealing.parts_with(KeyRing((OTHER_KEY,), CLEAR, CLEAR, accepts_clear=True))
    sealing.receive([_read(others.presence(sealing.own.name, uses=OTHER_KEY.id))], Instant(NOW + 1))
    assert not sealing.parts_with(stranger)  # the other has gone ahead


def test_a_key_with_the_number_of_the_one_in_use_is_another() -> None:
    same_number = next(
        key for key in (ClusterKey(number.to_bytes(32, "big")) for number in range(10_000)) if key.id == KEY.id
    )
    sealing, others = _sealing(), Ends()
    sealing.receive([_read(others.presence(sealing.own.name))], NOW)
    assert sealing.parts_with(ring_of(same_number))


def _alarms(sealing: Sealing, packets: list[bytes], now: Instant) -> list[Alarm]:
    """What a person is told when these have come, and the next presence is due."""
    sealing.receive([_read(packet) for packet in packets], now)
    return [effect for effect in sealing.wake(Instant(now + 2 * SECOND)) if isinstance(effect, Alarm)]


def test_who_has_the_key_and_runs_another_engine_is_named_once_and_is_no_forger() -> None:
    sealing, other = _sealing(), Ends()
    on_a_tree = [other.presence(sealing.own.name, cluster=CLUSTER_ON_A_TREE) for _ in range(6)]
    (alarm,) = _alarms(sealing, on_a_tree[:3], NOW)
    assert (alarm.kind, alarm.process) == (AlarmKind.CONFIGURATION_MISMATCH, SENDER)
    assert "runs the engine 'tree', this process another" in alarm.text
    assert _alarms(sealing, on_a_tree[3:], Instant(NOW + 90 * SECOND)) == []
    assert sealing.opener.refused == {SealRefusal.ENGINE: 6}
    assert len(sealing.lives) == 0


def test_another_engine_is_named_by_nobody_who_lacks_the_key() -> None:
    sealing, stranger = _sealing(), Ends()
    forged = bytearray(stranger.presence(key=OTHER_KEY, cluster=CLUSTER_ON_A_TREE))
    forged[KEY_AT] = KEY.id
    (alarm,) = _alarms(sealing, [bytes(forged)], NOW)
    assert alarm.kind is AlarmKind.PACKETS_REFUSED
    assert sealing.opener.refused == {SealRefusal.FORGED: 1}


def test_no_more_presences_are_tried_for_other_engines_in_a_second_than_cost_little() -> None:
    sealing, other = _sealing(), Ends()
    garbled = other.presence()[:-1] + b"?"
    on_a_tree = other.presence(cluster=CLUSTER_ON_A_TREE)
    assert [alarm.kind for alarm in _alarms(sealing, [*[garbled] * TRIED_MAX, on_a_tree], NOW)] == [
        AlarmKind.PACKETS_REFUSED
    ]
    (alarm,) = _alarms(sealing, [on_a_tree], Instant(NOW + 3 * SECOND))
    assert alarm.kind is AlarmKind.CONFIGURATION_MISMATCH
