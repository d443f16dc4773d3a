"""What a ring offers to an engine that encloses it: stamps, a clock that can be raised, a token that rests when all is
settled. A ring that stands alone does none of it."""

from __future__ import annotations

import pytest

from ordercast.model.effects import Broadcast, Deliver, Effect, Subscribed
from ordercast.model.ids import ProcessId
from ordercast.model.inputs import Interest
from ordercast.model.notes import Occurrence
from ordercast.model.service import Service
from ordercast.order.membership.bounds import CLOCK_LEAP
from ordercast.wire.head import KIND_AT
from ordercast.wire.header import TIMESTAMP, MessageKind
from ordercast.wire.messages import Token

from .solo import ONE, SMALL, TRIO, TWO, Solo, occurred, packet_of, sent


def stamps_sent(effects: list[Effect]) -> list[int]:
    return [
        int(TIMESTAMP.unpack_from(packet)[0])
        for effect in effects
        if isinstance(effect, Broadcast)
        for packet in effect.packets
        if packet[KIND_AT] == MessageKind.DATA
    ]


def stamps_delivered(effects: list[Effect]) -> list[list[list[int]] | None]:
    return [effect.stamps for effect in effects if isinstance(effect, Deliver)]


# Stamps


def test_deliveries_carry_the_stamps_of_their_packets_when_asked() -> None:
    solo = Solo(TWO, stamps=True).to_operational()
    effects = solo.give_packets(packet_of(1, originator=ONE), packet_of(2, originator=ONE))
    assert [stamp for stamps in stamps_delivered(effects) for parcel in stamps or [] for stamp in parcel] == [1, 2]


def test_own_messages_are_delivered_with_the_stamps_they_are_sent_with() -> None:
    solo = Solo(TWO, stamps=True).to_operational()
    solo.submit("a", "b")
    effects = solo.pass_token()
    assert stamps_delivered(effects) == [[stamps_sent(effects)]]


def test_a_ring_that_stands_alone_delivers_no_stamps() -> None:
    solo = Solo(TWO).to_operational()
    assert stamps_delivered(solo.give_packets(packet_of(1, originator=ONE))) == [None]


# The clock


@pytest.mark.parametrize("me", TRIO)
def test_what_is_numbered_after_a_stamp_was_heard_lies_above_it(me: ProcessId) -> None:
    solo = Solo(me, stamps=True).to_operational()
    solo.pass_token()
    solo.node.hear(1000, solo.now)
    solo.submit("after")
    effects = solo.pass_token()
    assert stamps_sent(effects) == [1001]
    assert solo.token_forwarded.timestamp == 1001


def test_a_token_at_rest_takes_a_stamp_too() -> None:
    solo = Solo(ONE, stamps=True).to_operational()
    while Occurrence.TOKEN_RESTED not in occurred(solo.pass_token()):
        pass
    solo.node.hear(1000, solo.now)
    assert stamps_sent(solo.submit("after")) == [1001]


def test_a_stamp_that_is_heard_while_a_ring_is_formed_is_not_forgotten() -> None:
    solo = Solo(TWO, stamps=True).to_recovery()
    solo.node.hear(1000, solo.now)
    solo.submit("after")
    stamps: list[int] = []
    for _ in range(10):
        stamps += stamps_sent(solo.pass_token())
    assert stamps == [1001]


def test_the_clock_never_falls() -> None:
    solo = Solo(TWO, stamps=True).to_operational()
    solo.node.hear(1000, solo.now)
    solo.node.hear(5, solo.now)
    solo.submit("after")
    assert stamps_sent(solo.pass_token(timestamp=7)) == [1001]


def test_a_stamp_from_far_above_is_passed_on_whole() -> None:
    """Rings that have counted for years may meet a new one: a member believes the token that another raised."""
    told = 5 * CLOCK_LEAP
    solo = Solo(TWO, stamps=True).to_operational()
    solo.submit("after")
    assert stamps_sent(solo.pass_token(timestamp=told)) == [told + 1]
    alone = Solo(TWO).to_operational()
    alone.submit("after")
    assert stamps_sent(alone.pass_token(timestamp=told)) < [told]


# Settling


def rounds_to_rest(solo: Solo) -> int:
    for visits in range(1, 20):
        if Occurrence.TOKEN_RESTED in occurred(solo.pass_token()):
            return visits
    raise AssertionError("the token never rested")


@pytest.mark.parametrize("me", TRIO)
def test_a_ring_that_settles_rests_when_everything_is_known_to_be_safe(me: ProcessId) -> None:
    early, late = (Solo(me, settles=settles).to_operational() for settles in (False, True))
    for solo in (early, late):
        solo.pass_token()
        solo.submit("agreed")
        sent(solo.pass_token(), Token) or solo.wait(SMALL.linger_ns)
    assert rounds_to_rest(late) == rounds_to_rest(early) + 1
    memory = late.node.ring.memory
    assert memory.safe_seq == memory.forwarded_seq == 1


def test_safe_messages_take_no_longer_on_a_ring_that_settles() -> None:
    rounds = []
    for settles in (False, True):
        solo = Solo(ONE, settles=settles).to_operational()
        solo.pass_token()
        solo.submit("safe", service=Service.SAFE)
        solo.pass_token()
        rounds.append(rounds_to_rest(solo))
    assert rounds[0] == rounds[1]


def test_a_ring_of_one_that_settles_comes_to_rest() -> None:
    solo = Solo(ONE, settles=True)
    solo.written()
    solo.wait(solo.config.consensus_ns)
    solo.submit("alone")
    solo.wait(solo.config.announce_ns)
    assert solo.node.is_idle()
    assert sent(solo.wait(solo.config.rest_ns), Token) == []


# Interest


def test_a_ring_brings_everything_so_that_every_wish_is_granted_at_once() -> None:
    solo = Solo(TWO).to_operational()
    wishes = [Interest("g", True), Interest("h", False), Interest("i", True)]
    assert solo.node.interest(wishes, solo.now) == [Subscribed(("g", "i"))]
    assert solo.node.interest([Interest("g", False)], solo.now) == []
