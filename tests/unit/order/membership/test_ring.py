from __future__ import annotations

import pytest

from ordercast.model.ids import Seq, TokenSeq
from ordercast.order.membership.ring import Ring, TokenMemory
from ordercast.wire.header import digest_of

from ..rings import CLUSTER, ONE, RING_ID, THREE, TWO, make_packet, make_ring


def test_the_token_goes_round_in_ring_order() -> None:
    rings = [make_ring(me) for me in (ONE, TWO, THREE)]
    assert [ring.successor for ring in rings] == [TWO, THREE, ONE]
    assert [ring.predecessor for ring in rings] == [THREE, ONE, TWO]
    assert [ring.index for ring in rings] == [0, 1, 2]
    assert {ring.representative for ring in rings} == {ONE}


def test_a_ring_of_one_is_its_own_neighbour() -> None:
    ring = make_ring(ONE, (ONE,))
    assert (ring.successor, ring.predecessor) == (ONE, ONE)
    assert ring.expected_token_seq() == ring.memory.token_seq


def test_the_next_token_was_forwarded_once_by_every_other_member() -> None:
    ring = make_ring(TWO)
    ring.memory.token_seq = TokenSeq(10)
    assert ring.expected_token_seq() == 12


def test_a_ring_knows_the_heading_of_its_data_packets() -> None:
    heading = make_ring().heading
    assert (heading.cluster, heading.ring[1:], heading.members) == (CLUSTER, digest_of(RING_ID), (ONE, TWO, THREE))
    assert heading.is_of(make_packet(1).packet(Seq(1)), 0)


def test_members_are_in_ring_order_and_i_am_among_them() -> None:
    for members in ((TWO, ONE), (ONE, THREE)):
        with pytest.raises(AssertionError):
            Ring(RING_ID, members, TWO, CLUSTER, TokenMemory(TokenSeq(0)))


def test_the_last_sender_is_the_representative_while_nobody_has_sent() -> None:
    for me in (ONE, TWO, THREE):
        ring = make_ring(me)
        senders = [ring.last_sender]
        for seq, originator in enumerate((THREE, ONE, TWO), 1):
            ring.store.add(Seq(seq), make_packet(seq, originator=originator))
            senders.append(ring.last_sender)
        assert senders == [ONE, THREE, ONE, TWO]
