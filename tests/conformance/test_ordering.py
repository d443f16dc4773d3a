"""Total ordering on one ring. (Paper, section 4.1, Figures 4.1 and 4.2)"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest

from ordercast.model.effects import Broadcast, Deliver, Effect, SendTo
from ordercast.model.ids import MILLISECOND, NOBODY
from ordercast.model.inputs import Lane
from ordercast.model.notes import Occurrence
from ordercast.model.service import Service
from ordercast.trace.records import DeliveredBatch, Event
from ordercast.wire.messages import Token
from tests.packets import originator_of

from .play import Play, is_data, is_token, options
from .solo import ONE, RING, SMALL, THREE, TWO, Solo, data_of, delivered, occurred, packet_of, packets_of, sent, seqs

KEEP = SMALL.token_retransmit_ns
LOSS = SMALL.token_loss_ns


# The work with the token, in its order


def test_a_visit_retransmits_then_sends_new_packets_then_forwards_then_delivers() -> None:
    """Figure 4.1: requests are served before new messages are broadcast, the token is forwarded, and only then are
    messages delivered."""
    solo = Solo().to_operational()
    solo.give_packets(packet_of(1))
    solo.submit("new")
    effects = solo.pass_token(seq=1, aru=0, aru_id=THREE, requests=(1,))
    outward = [effect for effect in effects if isinstance(effect, Broadcast | SendTo | Deliver)]
    assert [type(effect) for effect in outward] == [Broadcast, SendTo, Deliver]
    assert seqs(effects) == [1, 2]
    assert delivered(outward) == ["new"]


def test_new_packets_take_the_numbers_after_the_tokens_seq() -> None:
    """Section 4.1: each new message increments the token's seq and takes its value."""
    solo = Solo().to_operational()
    solo.submit("a", "b", size=1000)
    effects = solo.pass_token(seq=7, aru=0, aru_id=ONE)
    assert seqs(effects) == [8, 9]
    assert solo.token_forwarded.seq == 9


def test_what_waits_in_the_input_is_taken_before_the_token() -> None:
    """Section 4.1: before the token is processed, everything that waits in the input buffer is. Here: the driver is
    told to drain the data lane first, and one read in that order shows on the token."""
    solo = Solo().to_operational()
    assert solo.node.first_lane() is Lane.DATA
    token = solo.token(seq=2, aru=2)
    solo.give_packets(packet_of(1), packet_of(2))
    solo.give(token)
    assert (solo.token_forwarded.aru, solo.token_forwarded.aru_id) == (2, NOBODY)


def test_the_token_goes_to_the_successor_with_the_next_hop_number() -> None:
    """Figure 4.1: token_seq is incremented and the token sent to the next member on the ring."""
    solo = Solo().to_operational()
    token = solo.token()
    (send,) = [effect for effect in solo.give(token) if isinstance(effect, SendTo)]
    assert send.process == THREE
    assert solo.token_forwarded.token_seq == token.token_seq + 1


# Requests


def test_requests_that_are_served_vanish_from_the_token_and_others_stay() -> None:
    """Section 4.1: who holds a requested message retransmits it and removes its number from rtr."""
    solo = Solo().to_operational()
    solo.give_packets(packet_of(1), packet_of(3))
    effects = solo.pass_token(seq=3, aru=0, aru_id=THREE, requests=(1, 2, 3))
    assert seqs(effects) == [1, 3]
    assert list(solo.token_forwarded.requests) == [2]


def test_what_is_missing_is_asked_for_on_the_next_visit() -> None:
    """Section 4.1: missing numbers are added to rtr. Deviation (requests lag): only those that the token had already
    counted on the previous visit, in the plain ring too, because younger packets may be on their way."""
    solo = Solo().to_operational()
    solo.give_packets(packet_of(2))
    solo.pass_token(seq=2, aru=2)
    assert list(solo.token_forwarded.requests) == []
    solo.pass_token(seq=3)
    assert list(solo.token_forwarded.requests) == [1], "3 was numbered since the last visit"
    solo.give_packets(packet_of(1), packet_of(3))
    solo.pass_token(requests=())
    assert list(solo.token_forwarded.requests) == []


def test_a_number_that_another_asked_for_is_not_listed_twice() -> None:
    """Section 4.1: rtr holds each number once."""
    solo = Solo().to_operational()
    solo.pass_token(seq=2, aru=2)
    solo.pass_token(requests=(1, 2))
    assert list(solo.token_forwarded.requests) == [1, 2]


# The aru


def test_who_misses_a_packet_holds_the_aru_down_under_its_own_name_and_raises_it_again() -> None:
    """Figure 4.1: the aru is lowered to my_aru and signed; only the signer may raise it; unsigned it moves with seq."""
    solo = Solo().to_operational()
    solo.give_packets(packet_of(1), packet_of(3))
    solo.pass_token(seq=3, aru=3)
    assert (solo.token_forwarded.aru, solo.token_forwarded.aru_id) == (1, TWO)
    solo.pass_token()
    assert (solo.token_forwarded.aru, solo.token_forwarded.aru_id) == (1, TWO)
    solo.give_packets(packet_of(2))
    solo.pass_token()
    assert (solo.token_forwarded.aru, solo.token_forwarded.aru_id) == (3, NOBODY)


def test_nobody_raises_an_aru_that_another_holds_down() -> None:
    """Figure 4.1: an aru that is signed by another and not above mine is left alone."""
    solo = Solo().to_operational()
    solo.give_packets(packet_of(1), packet_of(2))
    solo.pass_token(seq=2, aru=1, aru_id=THREE)
    assert (solo.token_forwarded.aru, solo.token_forwarded.aru_id) == (1, THREE)


def test_own_packets_count_as_received() -> None:
    """Section 4.1: my_aru is updated for what was just broadcast, so an unsigned aru stays equal to seq."""
    solo = Solo().to_operational()
    solo.submit("mine")
    solo.pass_token()
    assert (solo.token_forwarded.seq, solo.token_forwarded.aru) == (1, 1)


# Delivery


def test_an_agreed_message_is_delivered_when_all_before_it_were() -> None:
    """Section 4.1: agreed delivery needs the message and every one with a lower number; no token is waited for."""
    solo = Solo().to_operational()
    assert delivered(solo.give_packets(packet_of(2))) == []
    assert delivered(solo.give_packets(packet_of(1))) == ["1", "2"]


def test_a_safe_message_is_delivered_after_the_aru_covered_it_on_two_visits() -> None:
    """Section 4.1: safe delivery needs the token forwarded with aru >= seq on two successive rotations (E3: forwarded,
    not received)."""
    solo = Solo().to_operational()
    assert delivered(solo.give_packets(packet_of(1, "safe", service=Service.SAFE))) == []
    assert delivered(solo.pass_token(seq=1, aru=1)) == []
    assert delivered(solo.pass_token()) == ["safe"]


def test_one_visit_with_a_lower_aru_between_starts_the_count_again() -> None:
    """Section 4.1: the two rotations are successive."""
    solo = Solo().to_operational()
    solo.give_packets(packet_of(1, service=Service.SAFE), packet_of(2))
    assert delivered(solo.pass_token(seq=2, aru=2)) == []
    assert delivered(solo.pass_token(aru=0, aru_id=THREE)) == []
    assert delivered(solo.pass_token(aru=2, aru_id=NOBODY)) == []
    assert delivered(solo.pass_token()) == ["1", "2"]


def test_a_message_that_is_not_yet_safe_holds_up_later_agreed_ones() -> None:
    """Section 4.1: messages are delivered in the order of seq, whatever they ask for."""
    solo = Solo().to_operational()
    solo.give_packets(packet_of(1), packet_of(2, service=Service.SAFE), packet_of(3))
    assert delivered(solo.log) == ["1"]
    solo.pass_token(seq=3, aru=3)
    assert delivered(solo.log) == ["1"]
    solo.pass_token()
    assert delivered(solo.log) == ["1", "2", "3"]


def test_nobody_delivers_a_safe_message_before_all_have_it() -> None:
    """Section 4.1 and on a whole ring: one member misses the packet for a while."""
    play = Play(seed=2)
    lost: set[int] = {2}
    play.rule = lambda source, target, packet: target not in lost or not is_data(packet)
    early: list[Event] = []
    play.watch = lambda event: early.append(event) if lost and isinstance(event, DeliveredBatch) else None
    play.at(100, partial(play.submit, 0, Service.SAFE))
    play.at(103, lost.clear)
    assert play.run().is_valid
    assert early == []
    assert [len(play.deliveries(node)) for node in range(3)] == [1, 1, 1]


def test_what_is_safe_is_discarded_and_a_late_request_for_it_dropped() -> None:
    """Section 4.1: once safe, a message need not be kept for retransmission. The bound is the same for agreed ones."""
    solo = Solo().to_operational()
    solo.give_packets(packet_of(1))
    assert seqs(solo.pass_token(seq=1, aru=1, requests=(1,))) == [1], "kept: the aru covered it once"
    assert seqs(solo.pass_token(requests=())) == []
    assert seqs(solo.pass_token(requests=(1,))) == []
    assert list(solo.token_forwarded.requests) == []


# Duplicate tokens, lost tokens


def test_a_token_that_was_here_already_is_refused() -> None:
    """Section 4.1: token_seq tells copies of the token."""
    solo = Solo().to_operational()
    token = solo.token()
    solo.give(token)
    effects = solo.give(token)
    assert packets_of(effects) == []
    assert occurred(effects) == [Occurrence.DUPLICATE_TOKEN]


@pytest.mark.parametrize("offset", [-3, -2, -1, 1, 3])
def test_only_the_token_with_the_expected_hop_number_is_accepted(offset: int) -> None:
    """Section 4.1 accepts any token_seq that is not lower than mine. Deviation: the hop number must match exactly."""
    solo = Solo().to_operational()
    token = solo.token()
    assert packets_of(solo.pass_token(token_seq=token.token_seq + offset)) == []
    assert sent(solo.give(token), Token)


def test_the_token_of_another_ring_is_ignored() -> None:
    """Figure 4.1: a token whose ring_id is not mine is discarded."""
    solo = Solo().to_operational()
    assert packets_of(solo.pass_token(ring=RING._replace(seq=12))) == []


def test_without_a_sign_of_life_the_token_is_sent_again_and_again() -> None:
    """Section 4.1: the last token is kept, and sent to the successor again at every Token Retransmission timeout."""
    solo = Solo().to_operational()
    solo.submit("busy")
    (first,) = (e for e in solo.pass_token() if isinstance(e, SendTo))
    again = [e for e in solo.wait(2 * KEEP) if isinstance(e, SendTo)]
    assert again == [replace(first, is_vital=True)] * 2


def test_tokens_whose_loss_would_be_noticed_late_are_vital() -> None:
    """Deviation: on a ring without traffic the token may rest, and nobody sends it again before it can have rested."""
    solo = Solo().to_operational()
    solo.submit("busy")
    (busy,) = (e for e in solo.pass_token() if isinstance(e, SendTo))
    solo.give_packets(packet_of(2, originator=THREE))
    (idle,) = (e for e in solo.pass_token(seq=2, aru=2) if isinstance(e, SendTo))
    assert (busy.is_vital, idle.is_vital) == (False, True)


def busy() -> Solo:
    """It holds packets 1 and 2, the second its own, and has just forwarded the token."""
    solo = Solo().to_operational()
    solo.give_packets(packet_of(1))
    solo.submit("mine")
    solo.pass_token(seq=1, aru=1)
    return solo


def own_packet(solo: Solo) -> bytes:
    (packet,) = data_of(solo.log)
    return packet


@pytest.mark.parametrize(
    ("evidence", "is_proof"),
    [
        (lambda solo: packet_of(3), True),
        (lambda solo: packet_of(5), True),
        (lambda solo: packet_of(1), False),
        (lambda solo: own_packet(solo), False),
        (lambda solo: packet_of(3, ring=RING._replace(seq=12)), False),
    ],
    ids=["the next packet", "a later packet", "an old packet", "its own packet", "another ring's packet"],
)
def test_only_a_packet_that_shows_the_token_moved_on_stops_its_retransmission(
    evidence: Callable[[Solo], bytes], is_proof: bool
) -> None:
    """Section 4.1: a message received on the ring cancels the Token Retransmission timer. E2: only one numbered after
    the token left here; old packets and one's own prove nothing."""
    solo = busy()
    solo.give_packets(evidence(solo))
    assert (sent(solo.wait(KEEP), Token) == []) is is_proof


def test_packets_of_the_ring_keep_token_loss_away() -> None:
    """Section 4.2, section 4.2: receiving on the ring restarts the Token Loss timer (E2: the figures forget it)."""
    solo = busy()
    solo.wait(LOSS - 1)
    solo.give_packets(packet_of(3))
    solo.wait(LOSS - 1)
    assert solo.node.state_name == "Operational"
    solo.wait(1)
    assert solo.node.state_name == "Gather"


@pytest.mark.parametrize("lost", range(1, 8))
def test_one_lost_token_gives_no_membership_change(lost: int) -> None:
    """Section 4.1: retransmission overcomes the loss of a token, whichever hop loses it."""
    play = Play()
    tokens = [0]

    def rule(source: int, target: int, packet: bytes) -> bool:
        if is_token(packet) and play.world.now > 100 * MILLISECOND:
            tokens[0] += 1
            return tokens[0] != lost
        return True

    play.rule = rule
    for node in range(3):
        play.at(100, partial(play.submit, node, Service.SAFE))
    assert play.run().is_valid
    assert tokens[0] > lost
    assert play.count(Occurrence.TOKEN_RETRANSMITTED) >= 1
    assert [play.memberships(node)[1:] for node in range(3)] == [[[0, 1, 2]]] * 3


def test_duplicated_tokens_change_nothing() -> None:
    """a third of all packets come twice."""
    play = Play(options(duplication=0.3, messages=60, nodes=4))
    assert play.run().is_valid
    assert play.count(Occurrence.DUPLICATE_TOKEN) > 10
    assert all(play.memberships(node)[-1] == [0, 1, 2, 3] for node in range(4))


# Whole rings


def test_without_loss_all_deliver_the_same_sequence_without_gaps() -> None:
    """Section 4.1: seqs are contiguous, and everybody's sequence is the same."""
    play = Play(options(messages=0))
    for node in range(3):
        for moment in range(20):
            play.at(100 + moment, partial(play.submit, node))
    assert play.run().is_valid
    sequences = [play.deliveries(node) for node in range(3)]
    assert len(sequences[0]) == 60
    assert sequences[0] == sequences[1] == sequences[2]
    assert play.result.counts["retransmissions"] == 0
    numbers = sorted({message.number for message in sequences[0]})
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))


@pytest.mark.parametrize("loss", [0.05, 0.2])
def test_under_loss_all_deliver_the_same_sequence(loss: float) -> None:
    """requests repair what was lost. Data alone is lost here, so the membership stays."""
    play = Play()
    numbers = iter(range(10**6))
    every = round(1 / loss)
    play.rule = lambda source, target, packet: not is_data(packet) or next(numbers) % every != 0
    for node in range(3):
        for moment in range(20):
            play.at(100 + moment, partial(play.submit, node))
    assert play.run().is_valid
    sequences = [play.deliveries(node) for node in range(3)]
    assert len(sequences[0]) == 60
    assert sequences[0] == sequences[1] == sequences[2]
    assert play.result.counts["retransmissions"] > 0
    assert [play.memberships(node)[1:] for node in range(3)] == [[[0, 1, 2]]] * 3


def test_a_request_is_answered_by_whoever_has_the_packet() -> None:
    """Section 4.1: not only the originator retransmits: the first on the token's way who has the packet does. Here the
    originator's packets never reach the one who asks, and the member between them on the ring answers."""
    play = Play()
    play.rule = lambda source, target, packet: (
        not (is_data(packet) and source == 0 and target == 1 and originator_of(packet, play.events) == 0)
    )
    play.at(100, lambda: play.submit(0))
    assert play.run().is_valid
    assert [len(play.deliveries(node)) for node in range(3)] == [1, 1, 1]


def test_a_ring_of_one_passes_the_token_to_itself() -> None:
    """Section 4.1 (and its errata): a singleton orders and delivers its own messages, and rests when it has none."""
    solo = Solo().to_ring_of_one()
    effects: list[Effect] = solo.submit("a", service=Service.SAFE)
    effects += solo.wait(1)
    assert delivered(effects) == ["a"]
    solo.wait(10 * LOSS)
    assert solo.node.state_name == "Operational"
