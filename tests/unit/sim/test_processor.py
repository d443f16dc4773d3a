"""What packets cost a simulated host: every copy is taken, one of them is processed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ordercast.model.ids import NOBODY, ConfigurationId, Incarnation, NodeId, Seq, TokenSeq, process_id_from
from ordercast.model.inputs import Lane, Packet
from ordercast.networks.config import NetworksConfig
from ordercast.order.ring.traffic import RING_TRAFFIC
from ordercast.sim.options import SimOptions
from ordercast.sim.processor import Processor
from ordercast.wire.codec import encode
from ordercast.wire.header import Heading, retransmitted
from ordercast.wire.messages import Leave, Token
from ordercast.wire.run import build_data

ME = process_id_from(NodeId(1), Incarnation(1))
RING = ConfigurationId(4, ME)
OPTIONS = replace(
    SimOptions(), networks=NetworksConfig(count=2), packet_ns=1000, byte_ns=1, token_ns=5000, receive_ns=10, send_ns=3
)


def _data(seq: int, network: int = 0, ring: int = 4) -> Packet:
    heading, payload = Heading(bytes(8), ConfigurationId(ring, ME), (ME,)), bytes(34)
    data = build_data(heading, 0, [(0, len(payload), 4, payload)], ME, Seq(seq), 1, 1).packet(Seq(seq))
    return Packet(data, len(data), Lane.DATA, network=network)


def _token(number: int, network: int = 0) -> Packet:
    token = Token(RING, ME, TokenSeq(number), 1, Seq(7), Seq(7), NOBODY, (), 0, 0, 0, 0, False, 1)
    data = encode(bytes(8), token)
    return Packet(data, len(data), Lane.TOKEN, network=network)


def test_a_copy_is_taken_and_not_processed() -> None:
    processor = Processor(OPTIONS, RING_TRAFFIC, 1.0)
    assert processor.receiving_ns([_data(1), _data(2)]) == 2 * (10 + 1000 + 100)
    assert processor.receiving_ns([_data(1, network=1), _data(2, network=1)]) == 2 * 10
    assert processor.receiving_ns([_data(1, ring=8)]) == 10 + 1000 + 100
    assert processor.receiving_ns([_token(1), _token(1, network=1), _token(2)]) == 3 * 10 + 2 * 5000


def test_what_is_sent_again_is_known_by_its_number() -> None:
    processor = Processor(OPTIONS, RING_TRAFFIC, 1.0)
    first = _data(1)
    processor.receiving_ns([first])
    again = retransmitted(bytes(first.data), process_id_from(NodeId(2), Incarnation(1)))
    assert processor.receiving_ns([Packet(again, len(again))]) == 10


def test_control_messages_are_processed_whenever_they_come() -> None:
    processor = Processor(OPTIONS, RING_TRAFFIC, 1.0)
    leave = encode(bytes(8), Leave(RING, ME))
    farewell = Packet(leave, len(leave), Lane.TOKEN)
    assert processor.receiving_ns([farewell, farewell]) == 2 * (10 + 5000)


def test_with_one_network_nothing_is_a_copy() -> None:
    processor = Processor(replace(OPTIONS, networks=NetworksConfig()), RING_TRAFFIC, 1.0)
    assert processor.receiving_ns([_data(1), _data(1)]) == 2 * (10 + 1000 + 100)


@pytest.mark.parametrize("slowness", [0.5, 2.0])
def test_a_slow_host_needs_longer_for_everything(slowness: float) -> None:
    processor = Processor(OPTIONS, RING_TRAFFIC, slowness)
    assert processor.receiving_ns([_token(1)]) == 5010 * slowness
    assert processor.sending_ns(copies=4) == 12 * slowness
