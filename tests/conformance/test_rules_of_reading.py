"""Rules of reading packets that nothing else would miss: each test fails when one condition is taken out.
(`python -m tests.mutation` takes them out.)"""

from __future__ import annotations

from dataclasses import replace

import pytest

from ordercast.model.effects import Deliver, Effect, Record
from ordercast.model.errors import UsageError
from ordercast.model.ids import ConfigurationId, Seq
from ordercast.model.inputs import Packet
from ordercast.model.notes import Moved, Occurrence, PacketDropped
from ordercast.order.membership.bounds import CLOCK_LEAP
from ordercast.order.membership.packet_reader import ANNOUNCED_MAX
from ordercast.order.membership.rosters import COPIES_MAX
from ordercast.order.membership.states import moves
from ordercast.wire.codec import encode
from ordercast.wire.head import CLUSTER as CLUSTER_FIELD
from ordercast.wire.head import LENGTH_AT
from ordercast.wire.messages import Announcement, RosterCopy, Token
from ordercast.wire.pieces import Pieces

from .solo import (
    CLUSTER,
    FIVE,
    FOUR,
    ONE,
    RING,
    SMALL,
    THREE,
    TRIO,
    Solo,
    delivered,
    ignored,
    occurred,
    packet_of,
    process,
    sent,
)
from .test_attached_ring import FIRST, AttachedSolo
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
    join = encode(CLUSTER, solo.join_of(ONE, TRIO, (), ring_seq=RING.seq))
    size = max(len(packet), len(join))
    effects = read(solo, (packet.ljust(size, b"\0") + join, size))
    assert solo.node.state_name == moves.GATHER and delivered(effects) == ["1"]
    kinds = [type(effect.note if isinstance(effect, Record) else effect) for effect in effects]
    assert kinds.index(Deliver) < kinds.index(Moved)


def out_of_order(text: str = "two") -> bytearray:
    """Return a packet that is read by itself."""
    return bytearray(packet_of(2, text))


def lengthened(packet: bytearray) -> bytes:
    length = int.from_bytes(packet[LENGTH_AT : LENGTH_AT + 2], "big")
    packet[LENGTH_AT : LENGTH_AT + 2] = (length + 1).to_bytes(2, "big")
    return bytes(packet)


def test_a_packet_reaches_neither_into_the_next_nor_beyond_the_end() -> None:
    whole = bytes(out_of_order())
    size = len(whole)
    for reads in ((lengthened(out_of_order()), size), (lengthened(out_of_order()) + whole, size), (whole[:-1], size)):
        solo = Solo().to_operational()
        assert dropped(read(solo, reads)) == ["a data packet is cut short"]
        assert solo.node.ring.store.has(Seq(2)) == (len(reads[0]) > size)


@pytest.mark.parametrize("at", [0, CLUSTER_FIELD.start])
def test_a_packet_of_this_ring_has_the_head_of_this_cluster(at: int) -> None:
    solo, packet = Solo().to_operational(), out_of_order()
    packet[at] ^= 1
    solo.give_packets(bytes(packet))
    assert not solo.node.ring.store.has(Seq(2))


def test_a_message_in_pieces_is_read_when_all_of_them_have_come() -> None:
    solo = Solo().to_operational()
    join = encode(CLUSTER, solo.join_of(ONE, TRIO, (), ring_seq=RING.seq))
    pieces = Pieces(CLUSTER, len(join) - 1).cut(join)
    solo.give_packets(*pieces[:-1])
    assert len(pieces) > 1 and solo.node.state_name == moves.OPERATIONAL
    solo.give_packets(pieces[-1])
    assert solo.node.state_name == moves.GATHER


def test_node_lists_that_come_too_fast_keep_nothing_else_from_being_read() -> None:
    solo = Solo().to_operational()
    copy = encode(CLUSTER, RosterCopy(RING, ONE, roster(5, *range(1, 101))))
    effects = solo.give_packets(*[copy] * (COPIES_MAX // len(copy) + 1))
    assert dropped(effects) == ["node lists come faster than they are read"]
    solo.give(solo.join_of(ONE, TRIO, (), ring_seq=RING.seq))
    assert solo.node.state_name == moves.GATHER


def test_packets_of_other_rings_are_evidence_of_outsiders_alone() -> None:
    """Those of members may be old, and what a stranger sends counts for nothing."""
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
    solo.give(Announcement(ConfigurationId(4, FIVE), FIVE, (FIVE,), (FIVE,)))
    assert heard(solo) == (FOUR,)


def test_whoever_is_heard_first_is_not_announced_before_there_is_a_ring() -> None:
    solo = Solo().to_gather()
    due = solo.node.next_deadline()
    solo.give_packets(packet_of(1, originator=FIVE, ring=ConfigurationId(4, FIVE)))
    assert solo.node.next_deadline() == due


def test_announcements_of_strangers_take_a_bounded_memory() -> None:
    solo = Solo().to_operational()
    for number in range(10, 10 + 2 * ANNOUNCED_MAX):
        one = process(number)
        solo.give(Announcement(ConfigurationId(4, one), one, (one,), (one,)))
    assert len(solo.node._announced) <= ANNOUNCED_MAX


def test_a_token_of_a_stranger_is_not_taken() -> None:
    solo = Solo().to_operational()
    solo.node.enlist(roster(5, 1, 2, 3), solo.now)
    effects = solo.pass_token(sender=FOUR)
    assert sent(effects, Token) == [] and Occurrence.STRANGER_REFUSED in occurred(effects)
    assert sent(solo.pass_token(), Token)


def test_tokens_from_a_time_that_cannot_be_are_not_taken_where_ticks_make_the_order() -> None:
    solo = AttachedSolo().to_operational()
    far = solo.clock.tick + 2 * CLOCK_LEAP
    effects = solo.pass_token(timestamp=far)
    assert sent(effects, Token) == [] and ignored(effects) == ["it comes from a time that cannot be"]
    assert sent(solo.pass_token(), Token)
    gathering = AttachedSolo().to_gather().agree()
    effects = gathering.give(replace(gathering.first_commit(TRIO, FIRST), timestamp=far))
    assert gathering.node.state_name == moves.GATHER and ignored(effects) == ["it comes from a time that cannot be"]
    gathering.give(gathering.first_commit(TRIO, FIRST))
    assert gathering.node.state_name == moves.COMMIT
