"""Packets of links on redundant networks: spread as data is, passed up as they come, and nobody is judged by them."""

from __future__ import annotations

import pytest

from ordercast.model.effects import Broadcast, Effect, Endpoint, Unicast
from ordercast.model.inputs import Lane, Packet
from ordercast.networks.config import Replication

from .stage import HOLD, TWO, Stage, data_packet, token_packet, turns

SIZE = 100


def bursts(count: int) -> list[tuple[bytes, int]]:
    return [(b"".join(bytes([number]) * SIZE for number in range(count)), SIZE)]


def link_sends(effects: list[Effect]) -> list[tuple[int, int]]:
    """(network, packet)"""
    return [
        (network, packet[0])
        for effect in effects
        if isinstance(effect, Unicast)
        for network in effect.networks
        for packet in effect.packets
    ]


@pytest.mark.parametrize(
    ("style", "expected"),
    [
        (Replication.ACTIVE, [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]),
        (Replication.PASSIVE, [(0, 0), (0, 1), (1, 2)]),
    ],
)
def test_the_style_chooses_networks_for_links_as_for_data(style: Replication, expected: list[tuple[int, int]]) -> None:
    stage = Stage(style)
    effects = stage.send(Unicast(TWO, bursts(3)))
    assert link_sends(effects) == expected
    assert all(effect.target == TWO for effect in effects if isinstance(effect, Unicast))


def test_with_copies_every_packet_of_a_link_goes_out_on_some_networks() -> None:
    stage = Stage(Replication.ACTIVE_PASSIVE, count=3, copies=2)
    sends = link_sends(stage.send(Unicast(TWO, bursts(3))))
    assert sorted(packet for _, packet in sends) == [0, 0, 1, 1, 2, 2]


def test_links_do_not_disturb_the_turns_of_data() -> None:
    """Members compare how much data each network brings."""
    stage = Stage(Replication.PASSIVE)
    networks = []
    for _ in range(4):
        stage.send(Unicast(TWO, bursts(1)))
        sent = stage.send(Broadcast([(data_packet(1), len(data_packet(1)))]))
        networks += [effect.networks for effect in sent if isinstance(effect, Broadcast)]
    assert networks == [(0,), (1,), (0,), (1,)]


def test_an_address_is_on_one_network_and_that_is_the_engines_choice() -> None:
    stage = Stage(Replication.ACTIVE)
    assert link_sends(stage.send(Unicast(Endpoint("10.0.0.1", 4800), bursts(1), networks=(1,)))) == [(1, 0)]


def test_packets_of_links_go_up_at_once_and_whole() -> None:
    stage = Stage(Replication.ACTIVE)
    read = Packet(bursts(3)[0][0], SIZE, Lane.LINK, network=1)
    data = Packet(data_packet(1), len(data_packet(1)))
    stage.layer.receive([data, read, data], stage.now)
    assert stage.engine.taken == [data, read, data]


def test_no_network_is_judged_by_links() -> None:
    """Nor by a token that comes on the wrong lane: it is no token of the ring."""
    stage = Stage(Replication.ACTIVE)
    effects: list[Effect] = []
    for number in range(1, 500):
        token = token_packet(number)
        effects += stage.layer.receive([Packet(token, len(token), Lane.LINK)], stage.now)
    effects += stage.wait(HOLD)
    assert turns(effects) == []
    assert len(stage.engine.taken) == 499
