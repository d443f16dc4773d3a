"""The layer between an engine and its driver: what goes out, and in which order."""

from __future__ import annotations

from typing import Any, cast

from ordercast.model.configuration import ChangeReason, Configuration, ConfigurationKind
from ordercast.model.effects import Alarm, AlarmKind, Broadcast, Effect, Install, Then, in_order
from ordercast.model.ids import (
    MAIN,
    SECOND,
    ConfigurationId,
    Incarnation,
    Instant,
    NodeId,
    Position,
    ProcessId,
    node_of,
    process_id_from,
)
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
THIRD = process_id_from(NodeId(3), Incarnation(7))


class _Leaving:
    """An engine that leaves the work of every input for later, unless it has something to tell."""

    traffic = None

    def __init__(self) -> None:
        self.told: list[Effect] = []

    def start(self, *inputs: object) -> list[Effect]:
        return []

    def next_deadline(self) -> None:
        return None

    def receive(self, *inputs: object) -> list[Effect]:
        if self.told:
            return self.told
        packet = with_head(CLUSTER, RECEIVER, LATER)
        return [Then(lambda: [Broadcast([(packet, len(packet))])])]


def _sealing(keys: KeyRing | None = None, engine: _Leaving | None = None) -> Sealing:
    salts = (bytes((number,)) * SALT_SIZE for number in range(7, 20))
    sealing = Sealing(
        cast(Engine, engine or _Leaving()),
        node_of(RECEIVER),
        keys or ring_of(KEY),
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


class _Changing:
    """A process that speaks in the clear and is to use a key, when all have it."""

    def __init__(self) -> None:
        self.engine, self.others = _Leaving(), Ends()
        self.sealing = _sealing(KeyRing((KEY,), CLEAR, KEY.id, accepts_clear=True), self.engine)
        self.at = int(NOW)

    def hears(self, life: int, by: ProcessId, uses: int = CLEAR) -> None:
        self.others.sealer = OwnLife(self.others.cipher, bytes((life,)) * SALT_SIZE)
        self.reads(self.others.presence(self.sealing.own.name, uses=uses, by=by))

    def joins(self, *members: ProcessId) -> None:
        ring = ConfigurationId(8, members[0])
        place, regular = Position(ring, 0, 0), ConfigurationKind.REGULAR
        self.engine.told = [Install(Configuration(regular, ring, members, ring, (), ChangeReason.MERGE, place))]
        self.reads(with_head(CLUSTER, SENDER, bytes(40)))

    def reads(self, data: bytes) -> None:
        self.at += SECOND
        self.sealing.receive([_read(data)], Instant(self.at))

    def used(self) -> int:
        """The key that is used when all has been looked at."""
        self.at += 2 * SECOND
        self.sealing.wake(Instant(self.at))
        return self.sealing.keys.used


def test_who_has_heard_some_and_is_with_nobody_yet_goes_on_in_the_clear() -> None:
    """A daemon that is started again with a key hears who has it, and not those who have none."""
    one = _Changing()
    one.hears(1, SENDER)
    assert one.used() == CLEAR
    one.joins(SENDER, RECEIVER, THIRD)
    assert one.used() == CLEAR and one.sealing.awaited() == [node_of(THIRD)]
    one.hears(3, THIRD)
    assert one.used() == KEY.id


def test_who_was_a_member_and_said_nothing_of_keys_is_waited_for() -> None:
    one = _Changing()
    one.hears(1, SENDER)
    one.joins(SENDER, RECEIVER, THIRD)
    one.joins(SENDER, RECEIVER)
    assert one.used() == CLEAR and one.sealing.awaited() == [node_of(THIRD)]
    one.hears(3, THIRD)
    assert one.used() == KEY.id


def test_who_hears_somebody_use_the_key_uses_it() -> None:
    """All had it when the first of them changed; what is said in the clear may be heard by nobody now."""
    one = _Changing()
    one.hears(1, SENDER, uses=KEY.id)
    assert one.used() == KEY.id


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
