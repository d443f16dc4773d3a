"""How many packets a message takes, today and once packets are sealed."""

from __future__ import annotations

import pytest

from ordercast.groups.envelope import Head, Kind, encode_head
from ordercast.model.ids import ConfigurationId, Seq
from ordercast.order.clock import Clock
from ordercast.order.gateways.interest import mask_of, native_block
from ordercast.order.gateways.packets import Block, block_from
from ordercast.order.outbox import Outbox, cost, lots_from
from ordercast.order.ring.config import RingConfig
from ordercast.order.ring.two_queues import BLOCK_SIZE_MAX, TwoQueues
from ordercast.wire.head import HEAD_SIZE, SEAL_ROOM
from ordercast.wire.header import HEADER_SIZE, ORIGIN_SIZE, Heading, Part, recovered
from ordercast.wire.run import build_runs

from ..rings import CLUSTER, ONE, TWO

MTU = 1500
ROOM = MTU - 28  # less the headers of IPv4 and UDP
SEALED_HEAD, TAG = 17, 16
CLIENT = encode_head(Head(Kind.DATA, "eightltr@n1", ("eightltr",)))
HEADING = Heading(CLUSTER, ConfigurationId(8, ONE), (ONE, TWO))


def packets_of(message: bytes) -> list[bytes]:
    config = RingConfig()
    assert config.packet_size_max == ROOM
    outbox, lots = Outbox(config.body_size_max), lots_from([message], 4, 0)
    outbox.add(lots, cost(lots))
    runs = build_runs(HEADING, outbox.take(99), ONE, Seq(1), 1, 1)
    return [run.packet(Seq(seq)) for run in runs for seq in range(run.seq, run.last + 1)]


def natives_of(message: bytes, count: int = 1, groups: tuple[str, ...] = ()) -> list[bytes]:
    """The packets of messages to these groups, or to all, on a ring in a network of rings."""
    queues = TwoQueues(RingConfig().body_size_max, Clock())
    lots = lots_from([message] * count, 4, 0, native_block(groups))
    queues.add(lots, cost(lots))
    runs = queues.runs(HEADING, ONE, Seq(1), 1, 1, 99)
    return [run.packet(Seq(seq)) for run in runs for seq in range(run.seq, run.last + 1)]


def test_in_a_network_of_rings_small_messages_leave_room_to_be_carried_and_a_large_one_is_whole() -> None:
    full = ROOM - SEAL_ROOM - ORIGIN_SIZE
    assert max(map(len, natives_of(bytes(100), 500))) + BLOCK_SIZE_MAX - 1 <= full
    assert len(natives_of(bytes(1376))[0]) == full and len(natives_of(bytes(1377))) == 2
    several = ("eightltr", "ninelettr")
    assert len(natives_of(bytes(1368), groups=several)) == 1 and len(natives_of(bytes(1369), groups=several)) == 2


def test_a_message_of_1350_bytes_that_a_client_sends_to_a_group_is_one_packet_in_a_network_of_rings() -> None:
    (packet,) = natives_of(CLIENT + bytes(1350), groups=("eightltr",))
    wrapped = recovered(packet, ONE, Heading(CLUSTER, ConfigurationId(12, TWO), (TWO,)), TWO, Seq(1), 1)
    assert sealed_size(wrapped) == ROOM
    assert block_from(packet[HEADER_SIZE : HEADER_SIZE + 1]) == Block(None, mask_of(("eightltr",)))


def sealed_size(packet: bytes) -> int:
    return SEALED_HEAD + len(packet) - HEAD_SIZE + TAG


@pytest.mark.parametrize("head", [b"", CLIENT], ids=["a node", "a client with names of eight letters"])
def test_a_message_of_1350_bytes_is_one_packet_clear_or_sealed_and_recovered_too(head: bytes) -> None:
    (packet,) = packets_of(head + bytes(1350))
    wrapped = recovered(packet, ONE, Heading(CLUSTER, ConfigurationId(12, TWO), (TWO,)), TWO, Seq(1), 1)
    assert len(packet) <= len(wrapped) < sealed_size(wrapped) <= ROOM


def test_the_largest_whole_message_fills_a_sealed_and_recovered_packet() -> None:
    largest = RingConfig().whole_size_max
    (packet,) = packets_of(bytes(largest))
    wrapped = recovered(packet, ONE, HEADING, ONE, Seq(1), 1)
    assert sealed_size(wrapped) == ROOM and sealed_size(packet) - len(packet) == SEAL_ROOM == 11
    first, last = packets_of(bytes(largest + 1))
    assert (first[31] >> 4, last[31] >> 4) == (Part.FIRST, Part.LAST)


def test_a_client_with_names_of_eight_letters_adds_26_bytes() -> None:
    assert len(CLIENT) == 26
