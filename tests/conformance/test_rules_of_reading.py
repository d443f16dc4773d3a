"""Rules of reading packets that nothing else would miss: each test fails when one condition is taken out.
(`python -m tests.mutation` takes them out.)"""

from __future__ import annotations

import pytest

from ordercast.model.effects import Effect, Record
from ordercast.model.errors import UsageError
from ordercast.model.ids import ConfigurationId, Seq
from ordercast.model.inputs import Packet
from ordercast.model.notes import PacketDropped
from ordercast.order.membership.packet_reader import ANNOUNCED_MAX
from ordercast.order.membership.states import moves
from ordercast.wire.codec import encode
from ordercast.wire.head import LENGTH_AT
from ordercast.wire.messages import Announcement

from .solo import CLUSTER, FIVE, FOUR, ONE, RING, SMALL, THREE, TRIO, Solo, delivered, packet_of, process, sent
from .test_lists_of_others import roster

OTHER_RING = ConfigurationId(4, FOUR)


def dropped(effects: list[Effect]) -> list[str]:
    return [
        effect.note.why for effect in effects if isinstance(effect, Record) and isinstance(effect.note, PacketDropped)
    ]


def read(solo: Solo, *reads: tuple[bytes, int]) -> list[Effect]:
    """Give reads of several packets each, of this size."""
    return solo.node.receive([Packet(data, size) for data, size in reads], solo.now)


def heard(solo: Solo) -> tuple[int, ...]:
    """Return whom a member says that it hears, in its next announcement."""
    for _ in range(8):
        found = sent(solo.wait(SMALL.announce_ns // 4), Announcement)
        if found:
            return found[-1].heard
        solo.pass_token()
    raise AssertionError("nothing was announced")


def test_a_read_without_a_packet_size_is_refused() -> None:
    with pytest.raises(UsageError, match="segment_size"):
        read(Solo().to_operational(), (b"x", 0))


def test_noise_is_called_noise() -> None:
    noise = b"noise".ljust(60, b".")
    assert dropped(read(Solo().to_operational(), (noise * 3, len(noise)))) == ["not an Ordercast packet"] * 3


def test_packets_of_one_read_are_heeded_in_their_order() -> None:
    """A Join behind a packet ends the configuration in which that packet is delivered."""
    solo = Solo().to_operational()
    packet = packet_of(1)
    join = encode(CLUSTER, solo.join_of(ONE, TRIO, (), ring_seq=RING.seq)).ljust(len(packet), b"\0")
    size = max(len(packet), len(join))
    effects = read(solo, (packet.ljust(size, b"\0") + join, size))
    assert solo.node.state_name == moves.GATHER and delivered(effects) == ["1"]


def test_a_packet_whose_length_cannot_be_is_not_taken() -> None:
    solo = Solo().to_operational()
    packet = bytearray(packet_of(2))  # out of order: read by itself
    length = int.from_bytes(packet[LENGTH_AT : LENGTH_AT + 2], "big")
    packet[LENGTH_AT : LENGTH_AT + 2] = (length + 1).to_bytes(2, "big")
    assert dropped(read(solo, (bytes(packet), len(packet)))) == ["a data packet is cut short"]
    assert not solo.node.ring.store.has(Seq(2))


def test_a_packet_of_another_ring_is_not_a_packet_of_mine() -> None:
    solo = Solo().to_operational()
    foreign = packet_of(1, originator=FOUR, ring=OTHER_RING)
    assert delivered(solo.give_packets(foreign)) == [] and not solo.node.ring.store.has(Seq(1))


def test_data_of_other_rings_is_evidence_of_outsiders_alone() -> None:
    """Packets of members' old rings may be late, and those of a stranger count for nothing."""
    solo = Solo().to_operational()
    solo.node.enlist(roster(5, 1, 2, 3, 4), solo.now)
    for _ in range(12):  # all that was heard on the way here is forgotten
        solo.pass_token()
        solo.wait(SMALL.announce_ns)
    solo.give_packets(
        packet_of(1, originator=FOUR, ring=OTHER_RING),
        packet_of(1, originator=FIVE, ring=ConfigurationId(4, FIVE)),
        packet_of(1, originator=THREE, ring=ConfigurationId(4, THREE), members=(THREE,)),
    )
    assert heard(solo) == (FOUR,)


def test_whoever_is_heard_first_is_not_announced_before_there_is_a_ring() -> None:
    solo = Solo().to_gather()
    solo.give_packets(packet_of(1, originator=FIVE, ring=ConfigurationId(4, FIVE)))
    assert sent(solo.wait(SMALL.announce_ns // 4), Announcement) == []


def test_announcements_of_strangers_take_a_bounded_memory() -> None:
    solo = Solo().to_operational()
    for number in range(10, 10 + 2 * ANNOUNCED_MAX):
        one = process(number)
        solo.give(Announcement(ConfigurationId(4, one), one, (one,), (one,)))
    assert len(solo.node._announced) <= ANNOUNCED_MAX


def test_strangers_join_nothing() -> None:
    solo = Solo().to_operational()
    solo.node.enlist(roster(5, 1, 2, 3), solo.now)
    solo.give(solo.join_of(FOUR, (*TRIO, FOUR), (), ring_seq=4))
    assert solo.node.state_name == moves.OPERATIONAL
