"""An idle ring rests and wakes at once. (Paper, appendix: MAX_FAST_ROUNDS and MAX_DELAY_PROC)

Deviation: in the paper every processor delays an idle token a little. Here whoever sent last alone keeps it, and who
else gets something to send asks for it with a packet.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ordercast.model.effects import Broadcast, SendTo
from ordercast.model.ids import MILLISECOND, ConfigurationId, ProcessId
from ordercast.model.notes import Occurrence
from ordercast.model.promises import RestPromise
from ordercast.model.service import Service
from ordercast.order.membership.states.base import State
from ordercast.order.membership.step import Step
from ordercast.order.ring.states.operational import Operational
from ordercast.sim.options import SIM_RING
from ordercast.trace.records import DeliveredBatch
from ordercast.wire.header import MessageKind, retransmitted
from ordercast.wire.messages import Token, Wake, WireMessage
from tests.simulation.planted import rest_one_visit_early

from .play import Play, kind_of, options
from .solo import (
    FOUR,
    ONE,
    RING,
    SMALL,
    THREE,
    TRIO,
    TWO,
    Solo,
    delivered,
    occurred,
    packet_of,
    sent,
    seqs,
    wrapped,
)

REST = SMALL.rest_ns


def resting(me: ProcessId = ONE) -> Solo:
    """The representative with the token at rest; or another, which has sent packet 1."""
    solo = Solo(me).to_operational()
    if me != ONE:
        solo.submit("first")
        solo.pass_token()
    for _ in range(20):
        if Occurrence.TOKEN_RESTED in occurred(solo.pass_token()):
            return solo
    raise AssertionError("the token never rested")


def rests(solo: Solo, **changes: Any) -> bool:
    """Whether the token stays, when it comes next."""
    effects = solo.pass_token(**changes)
    assert (Occurrence.TOKEN_RESTED in occurred(effects)) == (sent(effects, Token) == [])
    return Occurrence.TOKEN_RESTED in occurred(effects)


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


@pytest.mark.parametrize("me", TRIO)
@pytest.mark.parametrize("sender", TRIO)
def test_whoever_sent_last_keeps_the_token(me: ProcessId, sender: ProcessId) -> None:
    """after one rotation without anything new."""
    solo = Solo(me).to_operational()
    solo.pass_token()
    if sender == me:
        solo.submit("1")
        sent(solo.pass_token(), Token) or solo.wait(SMALL.linger_ns)
    else:
        solo.give_packets(packet_of(1, originator=sender))
        assert not rests(solo, seq=1, aru=1)
    assert rests(solo) == (sender == me)


def test_who_sent_last_is_known_when_the_packet_is_forgotten() -> None:
    """Section 4.1: what is safe is discarded."""
    solo = quiet()
    solo.give_packets(packet_of(1, originator=THREE))
    for _ in range(4):
        solo.pass_token(seq=1, aru=1)
    assert (solo.node.ring.store.base, solo.node.ring.store.high) == (1, 1)
    (wake,) = [effect for effect in solo.submit("now") if isinstance(effect, SendTo)]
    assert wake.process == THREE


def test_who_sends_a_packet_again_is_not_its_sender() -> None:
    solo = quiet()
    solo.give_packets(retransmitted(packet_of(1, originator=TWO), THREE))
    assert solo.node.ring.last_sender == TWO


def test_of_packets_out_of_order_the_highest_counts() -> None:
    solo = quiet()
    solo.give_packets(packet_of(3, originator=THREE), packet_of(1, originator=ONE))
    assert solo.node.ring.last_sender == THREE
    solo.give_packets(packet_of(2, originator=TWO))
    assert solo.node.ring.last_sender == THREE


@pytest.mark.parametrize("me", TRIO)
def test_a_safe_message_is_delivered_everywhere_before_the_token_rests(me: ProcessId) -> None:
    """The sender knows it to be safe at its next visit; then everybody else has to learn it: one rotation more."""
    solo = Solo(me).to_operational()
    solo.pass_token()
    solo.submit("safe", service=Service.SAFE)
    assert delivered(solo.pass_token()) == []
    effects = solo.pass_token()
    assert (delivered(effects), len(sent(effects, Token))) == (["safe"], 1)
    assert rests(solo)


def test_a_busy_ring_does_not_rest() -> None:
    """A packet, a request or an aru that stands below seq keeps the token going."""
    solo = Solo(ONE).to_operational()
    for number in range(1, 12):
        solo.give_packets(packet_of(number, originator=TWO))
        assert Occurrence.TOKEN_RESTED not in occurred(solo.pass_token(seq=number, aru=number))
    for _ in range(5):
        assert Occurrence.TOKEN_RESTED not in occurred(solo.pass_token(aru=10, aru_id=THREE))


def test_while_somebody_is_behind_the_token_rests_though_others_wait() -> None:
    """Nobody may send: going round would bring nothing."""
    solo = resting()
    solo.wait(REST)
    solo.submit("waits")
    assert rests(solo, behind=1, waiting=3, counted=(0, 3, 1))


def test_a_forged_count_of_members_that_are_behind_does_not_let_the_representative_rest() -> None:
    """It goes by the second count, as it does when it sends."""
    solo = resting()
    solo.wait(REST)
    solo.submit(*map(str, range(40)), size=SMALL.whole_size_max)
    assert not rests(solo, behind=9, counted=(0, 0, 0))
    assert solo.token_forwarded.seq == SMALL.visit_max


def test_a_submission_at_the_holder_ends_the_rest_at_once() -> None:
    solo = resting()
    effects = solo.submit("now")
    assert seqs(effects) == [1]
    assert sent(effects, Token) == []
    assert seqs(solo.submit("and now")) == [2]
    (token,) = sent(solo.wait(SMALL.linger_ns), Token)
    assert (token.seq, token.aru) == (2, 2)


def test_a_little_that_came_while_the_token_went_round_is_sent_and_the_token_rests_on() -> None:
    """So one message at a time, whose sender waits for the last, never waits for the token."""
    solo = resting()
    solo.wait(REST)
    solo.submit("meanwhile")
    effects = solo.pass_token()
    assert Occurrence.TOKEN_RESTED in occurred(effects)
    assert (seqs(effects), delivered(effects), sent(effects, Token)) == ([1], ["meanwhile"], [])
    assert seqs(solo.submit("next")) == [2]
    (token,) = sent(solo.wait(SMALL.linger_ns), Token)
    assert (token.seq, token.aru) == (2, 2)


@pytest.mark.parametrize("service", [Service.AGREED, Service.SAFE])
def test_much_that_came_or_something_safe_does_not_keep_the_token(service: Service) -> None:
    solo = resting()
    solo.wait(REST)
    solo.submit(*map(str, range(40 if service is Service.AGREED else 1)), size=SMALL.whole_size_max, service=service)
    assert len(sent(solo.pass_token(), Token)) == 1


def test_a_little_does_not_keep_the_token_from_others_that_wait() -> None:
    solo = resting()
    solo.wait(REST)
    solo.submit("meanwhile")
    assert not rests(solo, waiting=1, counted=(0, 1, 0))


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


@pytest.mark.parametrize("last", [ONE, THREE])
def test_a_submission_elsewhere_wakes_whoever_sent_last(last: ProcessId) -> None:
    """and before anybody has sent, the representative."""
    solo = quiet()
    if last != ONE:
        solo.give_packets(packet_of(1, originator=last))
        solo.pass_token(seq=1, aru=1)
    (wake,) = [effect for effect in solo.submit("now") if isinstance(effect, SendTo)]
    assert wake.process == last
    assert sent([wake], Wake) == [Wake(RING, TWO)]


def test_a_wake_is_repeated_to_everybody_until_the_token_comes() -> None:
    """Soon for the first time, in case it was lost; then rarely: whoever has the token may be paused."""
    solo = quiet()
    solo.submit("now")
    assert sent(solo.wait(SMALL.linger_ns - 1), Wake) == []
    (again,) = [effect for effect in solo.wait(1) if isinstance(effect, Broadcast)]
    assert sent([again], Wake) == [Wake(RING, TWO)]
    assert len(sent(solo.wait(2 * SMALL.token_retransmit_ns), Wake)) == 2
    assert seqs(solo.pass_token()) == [1]
    assert sent(solo.wait(2 * SMALL.token_retransmit_ns), Wake) == []


def test_nobody_is_woken_by_whoever_sent_last() -> None:
    """The token rests nowhere else, so it comes."""
    solo = resting(TWO)
    solo.wait(REST)
    assert sent(solo.submit("more"), Wake) == []
    assert sent(solo.wait(SMALL.linger_ns), Wake) == []


def test_a_ring_that_is_given_up_is_not_woken_any_more() -> None:
    solo = quiet()
    solo.submit("now")
    solo.lose_ring()
    assert sent(solo.wait(SMALL.token_retransmit_ns), Wake) == []


def test_one_wake_is_enough_for_several_submissions() -> None:
    solo = quiet()
    assert len(sent(solo.submit("a"), Wake)) == 1
    assert sent(solo.submit("b"), Wake) == []


def test_on_a_busy_ring_nobody_is_woken() -> None:
    solo = Solo(TWO).to_operational()
    solo.give_packets(packet_of(1))
    solo.pass_token(seq=1, aru=0, aru_id=THREE)
    assert sent(solo.submit("a"), Wake) == []


def test_who_has_just_sent_may_linger_and_is_woken() -> None:
    solo = quiet()
    solo.give_packets(packet_of(1, originator=THREE))
    (wake,) = [effect for effect in solo.submit("b") if isinstance(effect, SendTo)]
    assert (wake.process, len(sent([wake], Wake))) == (THREE, 1)


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


def waited(play: Play, moment: float) -> float:
    """Milliseconds from the moment of the last submission to the last delivery."""
    times = [event.at for event in play.run().events if isinstance(event, DeliveredBatch)]
    assert play.is_valid and len(times) % 3 == 0
    return max(times) / MILLISECOND - moment


def after_another(last: int | None, sender: int, moment: float, service: Service = Service.AGREED) -> float:
    """How long a message takes on a resting ring on which another has sent before."""
    play = Play()
    if last is not None:
        play.at(150, lambda: play.submit(last))
    play.at(moment, lambda: play.submit(sender, service))
    return waited(play, moment)


@pytest.mark.parametrize("service", [Service.AGREED, Service.SAFE])
@pytest.mark.parametrize("sender", range(3))
@pytest.mark.parametrize("last", [None, 0, 1, 2])
@pytest.mark.parametrize("moment", [200.0, 203.5, 207.1])
def test_a_submission_at_any_member_wakes_the_ring_at_once(
    last: int | None, sender: int, moment: float, service: Service
) -> None:
    """Delivered at all within some hops, long before the rest would have ended, whoever sent before."""
    assert after_another(last, sender, moment, service) < (1 if service is Service.AGREED else 2)


def test_a_wake_to_the_wrong_member_only_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: the representative is asked, and nobody else. Nothing is lost by it but time."""

    def send(step: Step, target: ProcessId, message: WireMessage) -> None:
        ring = step.facts.installed
        right(step, ring.representative if isinstance(message, Wake) else target, message)

    right = Step.send
    monkeypatch.setattr(Step, "send", send)
    monkeypatch.setattr(Operational, "on_wake", _but_not_of_all(Operational.on_wake))
    assert max(after_another(1, 2, moment) for moment in (200.0, 203.5, 207.1)) > 1


def _but_not_of_all(right: Callable[[Operational, Wake, Step], State]) -> Callable[[Operational, Wake, Step], State]:
    def on_wake(state: Operational, wake: Wake, step: Step) -> State:
        ring = step.facts.installed
        return right(state, wake, step) if ring.me == ring.representative else state

    return on_wake


def test_a_rest_one_visit_early_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: the sender keeps the token as soon as it has come back, before the others know that all have it."""
    rest_one_visit_early(monkeypatch)
    play = Play(options(delay_min_ns=100_000))  # no token overtakes a packet
    play.at(200, lambda: play.submit(1, Service.SAFE))
    times = [event.at for event in play.run().events if isinstance(event, DeliveredBatch)]
    assert max(times) > 202 * MILLISECOND
    assert [verdict.promise for verdict in play.result.verdicts if verdict.witnesses] == [RestPromise.COMPLETE]


@pytest.mark.parametrize("me", [ONE, TWO])
def test_when_the_highest_packet_is_of_no_member_the_representative_keeps_the_token(me: ProcessId) -> None:
    """Section 4.3: on a new ring it may be a recovered one, of somebody who did not come along."""
    pair = ConfigurationId(8, ONE)
    solo = Solo(me).to_recovery((ONE, TWO))
    solo.begin_token()
    stranger = packet_of(7, originator=FOUR, ring=ConfigurationId(4, FOUR))
    solo.give_packets(wrapped(stranger, 1, pair, TWO if me == ONE else ONE))
    while solo.node.state_name == "Recovery":
        solo.pass_token(seq=1, aru=1)
    assert solo.node.ring.last_sender == ONE
    solo.pass_token()
    assert rests(solo) == (me == ONE)
    wakes = [effect.process for effect in solo.submit("now") if isinstance(effect, SendTo)]
    assert wakes == ([] if me == ONE else [ONE])


def test_a_lost_wake_is_repeated_soon() -> None:
    play = Play()
    wakes: list[bytes] = []

    def rule(source: int, target: int, packet: bytes) -> bool:
        if kind_of(packet) == MessageKind.WAKE and play.world.now > 200 * MILLISECOND:
            wakes.append(packet)
            return len(wakes) != 1
        return True

    play.rule = rule
    play.at(203.5, lambda: play.submit(2))
    assert waited(play, 203.5) < SIM_RING.linger_ns / MILLISECOND + 1
    assert len(wakes) >= 2
    assert play.memberships(0) == [[0], [0, 1, 2]]
    assert [len(play.deliveries(one)) for one in range(3)] == [1, 1, 1]
