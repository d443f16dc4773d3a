"""An idle ring rests and wakes at once. (Paper, appendix: MAX_FAST_ROUNDS and MAX_DELAY_PROC)

Deviation: in the paper every processor delays an idle token a little. Here the representative alone keeps it, and who
gets something to send asks for it with a packet.
"""

from __future__ import annotations

import pytest

from ordercast.model.effects import SendTo
from ordercast.model.ids import MILLISECOND
from ordercast.model.notes import Occurrence
from ordercast.model.service import Service
from ordercast.sim.options import SIM_RING
from ordercast.trace.records import DeliveredBatch
from ordercast.wire.header import MessageKind
from ordercast.wire.messages import Token, Wake

from .play import Play, kind_of
from .solo import ONE, RING, SMALL, THREE, TWO, Solo, occurred, packet_of, sent, seqs

REST = SMALL.rest_ns


def resting() -> Solo:
    """The representative, with the token at rest."""
    solo = Solo(ONE).to_operational()
    for _ in range(20):
        if Occurrence.TOKEN_RESTED in occurred(solo.pass_token()):
            return solo
    raise AssertionError("the token never rested")


def quiet() -> Solo:
    """A member of a ring that may be resting."""
    solo = Solo(TWO).to_operational()
    for _ in range(6):
        solo.pass_token()
    return solo


def test_after_quiet_rotations_the_representative_keeps_the_token_for_a_while() -> None:
    solo = resting()
    before = solo.token_forwarded
    assert sent(solo.wait(REST - 1), Token) == []
    assert [token.token_seq for token in sent(solo.wait(1), Token)] == [before.token_seq + 3]


def test_nobody_else_keeps_it() -> None:
    solo = quiet()
    assert len(sent(solo.pass_token(), Token)) == 1


def test_a_busy_ring_does_not_rest() -> None:
    """A packet, a request or an aru that stands below seq keeps the token going."""
    solo = Solo(ONE).to_operational()
    for number in range(1, 12):
        solo.give_packets(packet_of(number, originator=TWO))
        assert Occurrence.TOKEN_RESTED not in occurred(solo.pass_token(seq=number, aru=number))
    for _ in range(5):
        assert Occurrence.TOKEN_RESTED not in occurred(solo.pass_token(aru=10, aru_id=THREE))


def test_a_submission_at_the_holder_ends_the_rest_at_once() -> None:
    solo = resting()
    effects = solo.submit("now")
    assert seqs(effects) == [1]
    assert sent(effects, Token) == []
    assert seqs(solo.submit("and now")) == [2]
    (token,) = sent(solo.wait(SMALL.linger_ns), Token)
    assert (token.seq, token.aru) == (2, 2)


def test_what_needs_the_token_to_go_round_sends_it_at_once() -> None:
    """Safe messages, more than one visit may send, and an application that has fallen behind do not wait."""
    assert len(sent(resting().submit("safe", service=Service.SAFE), Token)) == 1
    many = resting().submit(*map(str, range(40)), size=SMALL.whole_size_max)
    assert (len(seqs(many)), len(sent(many, Token))) == (SMALL.visit_max, 1)
    (token,) = sent(resting().behind(True), Token)
    assert (token.behind, token.budget) == (1, 0)


def test_adding_to_a_resting_token_makes_nothing_safe() -> None:
    """What was known of the others when the token came is all that is known while it rests."""
    solo = resting()
    safe = solo.node.ring.memory.safe_seq
    solo.submit("one")
    solo.submit("two")
    assert solo.node.ring.memory.safe_seq == safe


def test_a_wake_ends_the_rest_at_once() -> None:
    solo = resting()
    effects = solo.give(Wake(RING, TWO))
    assert len(sent(effects, Token)) == 1
    assert Occurrence.RING_WOKEN in occurred(effects)


def test_a_wake_that_comes_before_the_token_keeps_it_from_resting() -> None:
    solo = resting()
    solo.wait(REST)
    assert sent(solo.give(Wake(RING, TWO)), Token) == []
    effects = solo.pass_token()
    assert len(sent(effects, Token)) == 1
    assert Occurrence.TOKEN_RESTED not in occurred(effects)


def test_a_wake_of_another_ring_is_ignored() -> None:
    solo = resting()
    assert sent(solo.give(Wake(RING._replace(seq=12), TWO)), Token) == []


def test_a_copy_of_the_resting_token_is_refused() -> None:
    """Section 4.1: duplicates are told by token_seq, also while the token is here."""
    solo = resting()
    effects = solo.pass_token()
    assert sent(effects, Token) == []
    assert occurred(effects) == [Occurrence.DUPLICATE_TOKEN]


def test_a_submission_elsewhere_sends_a_wake_to_the_representative_and_repeats_it_until_the_token_comes() -> None:
    solo = quiet()
    (wake,) = [effect for effect in solo.submit("now") if isinstance(effect, SendTo)]
    assert wake.process == ONE
    assert sent([wake], Wake) == [Wake(RING, TWO)]
    again = solo.wait(2 * SMALL.token_retransmit_ns)
    assert len(sent(again, Wake)) == 2
    assert seqs(solo.pass_token()) == [1]
    assert sent(solo.wait(2 * SMALL.token_retransmit_ns), Wake) == []


def test_one_wake_is_enough_for_several_submissions() -> None:
    solo = quiet()
    assert len(sent(solo.submit("a"), Wake)) == 1
    assert sent(solo.submit("b"), Wake) == []


def test_on_a_busy_ring_nobody_is_woken() -> None:
    solo = Solo(TWO).to_operational()
    solo.give_packets(packet_of(1))
    solo.pass_token(seq=1, aru=0, aru_id=THREE)
    assert sent(solo.submit("a"), Wake) == []
    solo.pass_token(aru=1)
    solo.give_packets(packet_of(2))  # sent after the token was here: it comes again
    assert sent(solo.submit("b"), Wake) == []


def test_the_token_of_a_quiet_ring_is_not_sent_again_while_it_may_rest() -> None:
    """Section 4.1: the Token Retransmission timer allows for the rest."""
    solo = quiet()
    assert sent(solo.wait(REST + SMALL.token_retransmit_ns - 1), Token) == []
    assert len(sent(solo.wait(1), Token)) == 1


def test_the_packet_rate_of_an_idle_ring_falls() -> None:
    """and resting is no token loss."""
    play = Play()
    tokens: list[int] = []

    def rule(source: int, target: int, packet: bytes) -> bool:
        if kind_of(packet) == MessageKind.TOKEN:
            tokens.append(play.world.now)
        return True

    play.rule = rule
    play.at(150, lambda: play.submit(1))
    assert play.run().is_valid

    def rate(start: int, stop: int) -> float:
        return sum(start * MILLISECOND <= at < stop * MILLISECOND for at in tokens) / (stop - start)

    assert rate(200, 300) <= 3 / (SIM_RING.rest_ns / MILLISECOND)
    assert rate(150, 151) > 10 * rate(200, 300)
    assert play.memberships(0) == [[0], [0, 1, 2]]


@pytest.mark.parametrize("node", range(3))
@pytest.mark.parametrize("moment", [200.0, 203.5, 207.1])
def test_a_submission_at_any_member_wakes_the_ring_at_once(node: int, moment: float) -> None:
    """delivered at all within some hops, long before the rest would have ended."""
    play = Play()
    play.at(moment, lambda: play.submit(node))
    assert play.run().is_valid
    times = [event.at for event in play.events if isinstance(event, DeliveredBatch)]
    assert len(times) == 3
    assert max(times) - moment * MILLISECOND < 1 * MILLISECOND


def test_a_lost_wake_is_repeated() -> None:
    play = Play()
    wakes: list[bytes] = []

    def rule(source: int, target: int, packet: bytes) -> bool:
        if kind_of(packet) in (MessageKind.WAKE, MessageKind.TOKEN) and play.world.now > 200 * MILLISECOND:
            if kind_of(packet) == MessageKind.WAKE:
                wakes.append(packet)
            return len(wakes) != 1
        return True

    play.rule = rule
    play.at(203, lambda: play.submit(2))
    assert play.run().is_valid
    assert len(wakes) >= 2
    assert play.memberships(0) == [[0], [0, 1, 2]]
    assert [len(play.deliveries(one)) for one in range(3)] == [1, 1, 1]
