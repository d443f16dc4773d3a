"""The layer looks like an engine from outside, and lets everything through that is not its business."""

from __future__ import annotations

from collections.abc import Callable

from ordercast.model.effects import Broadcast, Effect, Room
from ordercast.model.ids import MILLISECOND, Incarnation, Instant, NodeId, Seq
from ordercast.model.inputs import Lane, Packet
from ordercast.model.notes import NetworkState
from ordercast.networks.config import NetworksConfig
from ordercast.networks.layer import Networks
from ordercast.networks.probe import Probe, encode_probe
from ordercast.order.engine import Engine
from ordercast.order.ring.config import RingConfig
from ordercast.order.ring.node import RingNode

from .stage import CLUSTER, ME, RING, TWO, Stage, announcement, data_packet, token_packet


def test_it_is_an_engine() -> None:
    engine: Engine = Networks(RingNode(NodeId(1)), NodeId(1), NetworksConfig(count=2), RingConfig())
    assert engine.promises.engine == "ring"


def test_what_drivers_ask_is_asked_of_the_engine() -> None:
    stage = Stage()
    stage.engine.aru = 5
    assert stage.layer.room() == 77 and stage.layer.is_idle() and stage.layer.first_lane() is Lane.DATA
    assert stage.layer.holds(RING, Seq(5)) and not stage.layer.holds(RING, Seq(6))
    stage.layer.want_room(3)


def test_every_input_reaches_the_engine_and_its_effects_come_back() -> None:
    stage = Stage()
    layer, now = stage.layer, stage.now
    calls: list[Callable[[], list[Effect]]] = [
        lambda: layer.submit([], now),
        lambda: layer.persisted("key", now),
        lambda: layer.interest([], now),
        lambda: layer.behind(True, now),
        lambda: layer.leave(now),
    ]
    for call in calls:
        stage.engine.answers.append([Room(5)])
        assert call() == [Room(5)]


def test_the_engine_is_woken_when_it_is_due_and_not_before() -> None:
    stage = Stage()
    stage.engine.deadline = Instant(20 * MILLISECOND)
    stage.token(4, 0)
    assert stage.layer.next_deadline() == stage.config.token_hold_ns
    stage.wait(15 * MILLISECOND)
    assert stage.engine.wakes == 0
    stage.wait(5 * MILLISECOND)
    assert stage.engine.wakes == 1


def test_noise_and_strangers_are_left_to_the_engine() -> None:
    stage = Stage()
    for noise in (b"", b"x", b"oC\x01\x02", bytes(200), token_packet(4).replace(b"oC", b"oX", 1)):
        stage.layer.receive([Packet(noise, max(1, len(noise)))], stage.now)
    assert len(stage.up) == 5


def test_views_of_memory_are_read_as_bytes_are() -> None:
    stage = Stage()
    for network in (0, 1):
        packet = token_packet(4)
        stage.layer.receive([Packet(memoryview(packet), len(packet), Lane.TOKEN, network=network)], stage.now)
    assert stage.tokens_up == [4]
    run = b"".join(data_packet(seq) for seq in range(1, 4))
    stage.layer.receive([Packet(memoryview(run), len(run) // 3)], stage.now)
    assert len(stage.up) == 2


def test_what_the_kernel_joined_to_a_run_of_data_is_found_there() -> None:
    """A probe or announcement that follows data of the same sender comes in one read with it."""
    stage = Stage()
    run = [data_packet(seq) for seq in range(1, 4)]
    probe = encode_probe(CLUSTER, Probe(RING, TWO, 1, 1, NetworkState.FAULTY, True))
    assert len(probe) <= len(run[0])
    stage.give_run(1, [*run, probe])
    assert stage.state(1) is NetworkState.FAULTY
    assert stage.up == run


def test_probes_that_come_in_one_read_are_all_heard() -> None:
    stage = Stage(members=(ME, TWO), proof=3)
    stage.mark(1)
    numbers = range(2, 5)
    stage.numbers[TWO, 1] = 5
    stage.give_run(
        1, [encode_probe(CLUSTER, Probe(RING, TWO, number, 1, NetworkState.FAULTY, True)) for number in numbers]
    )
    assert stage.state(1) is NetworkState.ON_TRIAL and stage.up == []


def test_announcements_that_come_with_data_are_counted() -> None:
    stage = Stage(token_lag_max=3)
    for seq in range(1, 20, 2):
        stage.give_run(0, [data_packet(seq) + bytes(100), announcement()])
        stage.give(1, data_packet(seq) + bytes(100))
    assert stage.state(1) is NetworkState.FAULTY


def test_effects_of_an_engine_without_the_layer_name_one_network() -> None:
    node = RingNode(NodeId(1))
    effects = node.start({}, Incarnation(1), Instant(0))
    while (deadline := node.next_deadline()) is not None and deadline < 10**9:
        effects += node.wake(deadline)
    assert all(effect.networks == (0,) for effect in effects if isinstance(effect, Broadcast))
