"""Ids of configurations rise when a cluster is restarted with another engine, and back."""

from __future__ import annotations

import pytest

from ordercast.model.effects import Effect, Install, Persist
from ordercast.model.errors import UsageError
from ordercast.model.ids import ConfigurationId, Incarnation, Instant, NodeId, ProcessId
from ordercast.model.inputs import Submission
from ordercast.order.engine import CONFIGURATION_SEQ_KEY, Engine
from ordercast.order.gateways.node import GatewayNode
from ordercast.order.gateways.view_number import AHEAD, ViewNumber
from ordercast.order.membership.bounds import RING_SEQ_LEAP
from ordercast.order.ring.config import RingConfig
from ordercast.order.ring.node import RingNode
from ordercast.order.ring.two_queues import CONTROL_SENDER
from ordercast.order.setup import Domain

NOW = Instant(0)


def _life(engine: Engine, disk: dict[str, bytes], number: int) -> ConfigurationId:
    """Return the first configuration of a life; everything is written."""
    effects: list[Effect] = engine.start(dict(disk), Incarnation(number), NOW)
    installed = []
    while effects:
        effect = effects.pop(0)
        if isinstance(effect, Persist):
            disk[effect.key] = effect.value
            effects += engine.persisted(effect.key, NOW)
        elif isinstance(effect, Install):
            installed.append(effect.configuration.id)
    return installed[0]


def _gateways() -> GatewayNode:
    return GatewayNode(NodeId(1), RingConfig(), (Domain(0, "a"), Domain(1, "b")))


def _ring() -> RingNode:
    return RingNode(NodeId(1), RingConfig())


@pytest.mark.parametrize("seq", [0, 4_000, 5_000_000, 1 << 40])
def test_ids_rise_from_ring_to_gateways_and_back(seq: int) -> None:
    disk = {CONFIGURATION_SEQ_KEY: seq.to_bytes(8, "big")} if seq else {}
    engines: list[Engine] = [_ring(), _gateways(), _gateways(), _ring(), _gateways(), _ring()]
    ids = [_life(engine, disk, number) for number, engine in enumerate(engines, start=1)]
    assert sorted(set(ids)) == ids and ids[0].seq > seq


def test_the_number_is_above_each_view_and_near_it() -> None:
    number, disk = ViewNumber(), dict[str, bytes]()
    writes = 0
    for seq in range(0, 500, 3):
        for effect in number.writes(ConfigurationId(seq, ProcessId(7))):
            assert isinstance(effect, Persist)
            disk[effect.key] = effect.value
            writes += 1
        assert seq < int.from_bytes(disk[CONFIGURATION_SEQ_KEY], "big") <= seq + AHEAD < seq + RING_SEQ_LEAP
    assert writes == 4


def test_the_sender_of_control_is_nobodys() -> None:
    engine = _gateways()
    _life(engine, {}, 1)
    with pytest.raises(UsageError, match="the network's own"):
        engine.submit([Submission(b"", sender=CONTROL_SENDER)], NOW)
