"""Control messages that are larger than a packet, in pieces."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ordercast.model.errors import WireError
from ordercast.model.ids import TokenSeq
from ordercast.order.ring.config import BESIDE_BODY, RingConfig
from ordercast.order.ring.traffic import RING_TRAFFIC
from ordercast.wire.codec import decode, encode
from ordercast.wire.head import HEAD_SIZE, PACKET_SIZE_MAX, with_head
from ordercast.wire.header import DESCRIPTOR_SIZE, MessageKind
from ordercast.wire.messages import CommitEntry
from ordercast.wire.pieces import BODY_AT, COUNT_MAX, KEPT_SIZE_MAX, PIECE, Pieces, size_of_pieces

from .vectors import CLUSTER, COMMIT, process

SIZE = 400
MANY = replace(COMMIT, members=tuple(CommitEntry(process(node)) for node in range(1, 65)))


def _piece(number: int, place: int, count: int, data: bytes = b"bytes", node: int = 9) -> bytes:
    return with_head(CLUSTER, process(node), PIECE.pack(MessageKind.PIECE, number, place, count) + data)


def _other() -> Pieces:
    return Pieces(CLUSTER, SIZE)


def test_what_fits_is_not_cut() -> None:
    packet = encode(CLUSTER, COMMIT)
    assert Pieces(CLUSTER, len(packet)).cut(packet) == [packet]


def test_pieces_are_no_larger_than_a_packet_and_make_the_message_again_in_any_order() -> None:
    packet = encode(CLUSTER, MANY)
    pieces = _other().cut(packet)
    assert len(pieces) > 5 and {len(piece) for piece in pieces[:-1]} == {SIZE}
    for order in (pieces, pieces[::-1]):
        there = _other()
        results = [there.add(piece) for piece in order]
        assert results[:-1] == [None] * (len(pieces) - 1) and results[-1] == packet
        assert decode(packet, CLUSTER) == MANY


def test_a_piece_that_comes_twice_counts_once_and_two_messages_are_told_apart() -> None:
    here, there = _other(), _other()
    later = encode(CLUSTER, replace(MANY, token_seq=TokenSeq(MANY.token_seq + 64)))
    first, second = here.cut(encode(CLUSTER, MANY)), here.cut(later)
    assert there.add(first[0]) is None and there.add(first[0]) is None
    assert [there.add(piece) for piece in second][-1] == later
    assert [there.add(piece) for piece in first[1:]][-1] == encode(CLUSTER, MANY)


def test_what_is_missing_is_forgotten_in_the_end_the_oldest_first() -> None:
    there = _other()
    lost, *rest = _other().cut(encode(CLUSTER, MANY))
    for piece in rest:
        assert there.add(piece) is None
    for number in range(2 * KEPT_SIZE_MAX // SIZE):
        assert there.add(_piece(number, 0, 2, bytes(SIZE - BODY_AT))) is None
        assert there._kept_size <= KEPT_SIZE_MAX
    assert there.add(lost) is None  # of the others nothing is known any more


@pytest.mark.parametrize(
    ("packet", "why"),
    [
        (_piece(1, 0, 2, b""), "a piece of nothing"),
        (_piece(1, 0, 2)[:HEAD_SIZE], "shorter than a head"),
        (_piece(1, 0, 0), "piece 0 of 0"),
        (_piece(1, 0, 1), "piece 0 of 1"),
        (_piece(1, 2, 2), "piece 2 of 2"),
        (_piece(1, 2, COUNT_MAX + 1), "piece 2 of 1001"),
        (b"xx" + _piece(1, 0, 2)[2:], "not an Ordercast packet"),
    ],
)
def test_what_is_no_piece_is_refused(packet: bytes, why: str) -> None:
    there = _other()
    with pytest.raises(WireError, match=why):
        there.add(packet)
    assert there._kept_size == 0


def test_pieces_that_contradict_each_other_are_refused() -> None:
    there = _other()
    assert there.add(_piece(1, 0, 2)) is None
    with pytest.raises(WireError, match="contradict"):
        there.add(_piece(1, 1, 3))


@pytest.mark.parametrize("kind", [MessageKind.DATA, MessageKind.PIECE])
def test_neither_data_nor_pieces_come_in_pieces(kind: MessageKind) -> None:
    there = _other()
    there.add(_piece(1, 0, 2, bytes((kind,))))
    with pytest.raises(WireError, match="never comes in pieces"):
        there.add(_piece(1, 1, 2))
    assert there._kept_size == 0


def test_a_message_that_no_datagram_could_carry_is_refused() -> None:
    there = _other()
    for place in range(254):
        assert there.add(_piece(1, place, 255, bytes((MessageKind.ROSTER,)) * 300)) is None
    with pytest.raises(WireError, match="never comes in pieces"):
        there.add(_piece(1, 254, 255, bytes(300)))
    assert there._kept_size == 0


def test_a_decoder_of_whole_messages_refuses_a_piece() -> None:
    with pytest.raises(WireError, match="a piece where a whole control message was expected"):
        decode(_piece(1, 0, 2), CLUSTER)


def test_the_largest_message_can_be_cut_into_the_smallest_packets() -> None:
    smallest = BESIDE_BODY + DESCRIPTOR_SIZE + 64
    RingConfig(packet_size_max=smallest).validate()
    packet = with_head(CLUSTER, process(9), bytes((MessageKind.ROSTER,)).ljust(PACKET_SIZE_MAX - HEAD_SIZE, b"x"))
    here = Pieces(CLUSTER, size_of_pieces(smallest))
    pieces = here.cut(packet)
    assert max(map(len, pieces)) <= smallest and len(pieces) <= COUNT_MAX
    assert [_other().add(piece) for piece in pieces[:1]] == [None]
    there = _other()
    assert [there.add(piece) for piece in pieces][-1] == packet


def test_of_a_message_in_pieces_the_first_is_counted_as_that_message() -> None:
    first, *rest = _other().cut(encode(CLUSTER, MANY))
    kinds = [RING_TRAFFIC.counted_kind(packet) for packet in (first, *rest, encode(CLUSTER, MANY))]
    assert kinds == [MessageKind.COMMIT, *(MessageKind.PIECE for _ in rest), MessageKind.COMMIT]


def test_layers_beneath_see_to_which_configuration_a_cut_commit_token_agrees() -> None:
    first, *rest = _other().cut(encode(CLUSTER, MANY))
    assert RING_TRAFFIC.agreed(first) == MANY.ring == RING_TRAFFIC.agreed(encode(CLUSTER, COMMIT))
    assert {RING_TRAFFIC.agreed(piece) for piece in rest} == {None}
