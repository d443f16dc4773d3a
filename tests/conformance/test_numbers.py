"""Numbers that leap are refused or cut, and whatever a forged packet did to a number heals. (Not in the paper, whose
network loses packets and does not lie.)"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from ordercast.model.configuration import ChangeReason
from ordercast.model.effects import AlarmKind, Effect, Persist
from ordercast.model.ids import SECOND, ConfigurationId, Seq
from ordercast.model.notes import Occurrence
from ordercast.model.service import Service
from ordercast.order.membership.bounds import (
    CLOCK_LEAP,
    CLOCK_MAX,
    JOIN_NUMBER_LEAP,
    RING_SEQ_LEAP,
    RING_SEQ_MAX,
)
from ordercast.order.membership.hearing import KNOWN_FACTOR, lifetime_of
from ordercast.order.membership.suspicion import WARN_AGAIN_NS
from ordercast.wire.codec import NUMBER_MAX
from ordercast.wire.header import PART_SHIFT, Part
from ordercast.wire.messages import Announcement, CommitToken, Leave, Token
from ordercast.wire.run import build_data

from .solo import (
    ONE,
    RING,
    SMALL,
    THREE,
    TRIO,
    TWO,
    Solo,
    alarms,
    data_of,
    delivered,
    ignored,
    occurred,
    packet_of,
    sent,
    seqs,
)

LIFETIME = lifetime_of(SMALL)


def persisted(effects: Sequence[Effect]) -> list[int]:
    return [int.from_bytes(effect.value, "big") for effect in effects if isinstance(effect, Persist)]


def kinds(effects: Sequence[Effect]) -> list[AlarmKind]:
    return [alarm.kind for alarm in alarms(effects)]


# Ring seqs


@pytest.mark.parametrize("leap", [RING_SEQ_LEAP + 1, NUMBER_MAX - 100])
def test_a_join_whose_ring_seq_leaps_is_refused(leap: int) -> None:
    solo = Solo().to_operational()
    effects = solo.give(solo.join_of(THREE, TRIO, ring_seq=8 + leap))
    assert solo.node.state_name == "Operational"
    assert occurred(effects) == [Occurrence.IMPLAUSIBLE] and kinds(effects) == [AlarmKind.IMPLAUSIBLE]
    assert "n3 speaks of a ring seq far above 8" in alarms(effects)[0].text
    assert not alarms(solo.give(solo.join_of(THREE, TRIO, ring_seq=8 + leap))), "once in a while"


def test_what_the_highest_join_leads_to_is_within_what_others_take_for_a_ring() -> None:
    """ONE is told the highest ring seq that it believes, and proposes four more; TWO was told nothing."""
    one, two = Solo(ONE).to_gather(), Solo(TWO).to_gather()
    told = one.join_of(TWO, ring_seq=one.join.ring_seq + RING_SEQ_LEAP)
    one.give(told, one.join_of(THREE))
    assert one.node.state_name == "Commit"
    proposed = one.commit_forwarded.ring
    assert proposed.seq == one.join.ring_seq + RING_SEQ_LEAP + 4
    two.agree()
    two.give(two.first_commit(ring=proposed))
    assert two.node.state_name == "Commit" and persisted(two.log)[-1] == proposed.seq


@pytest.mark.parametrize("seq", [8 + 2 * RING_SEQ_LEAP + 1, RING_SEQ_MAX + 1, NUMBER_MAX])
def test_a_commit_token_whose_ring_leaps_is_neither_stored_nor_forwarded(seq: int) -> None:
    solo = Solo().to_gather().agree()
    effects = solo.give(solo.first_commit(ring=ConfigurationId(seq, ONE)))
    assert solo.node.state_name == "Gather"
    assert not persisted(effects) and not sent(effects, CommitToken)


def test_whoever_leaps_is_not_heard_so_that_nobody_tries_to_merge_with_it() -> None:
    solo = Solo(ONE).to_ring_of_one()
    far = ConfigurationId(4 + 3 * RING_SEQ_LEAP, THREE)
    solo.give(Announcement(far, THREE, (THREE,), (ONE, THREE)))
    solo.give_packets(packet_of(1, originator=THREE, ring=far))
    effects = solo.wait(SMALL.announce_ns)
    assert all(not announcement.heard for announcement in sent(effects, Announcement))
    assert solo.node.state_name == "Operational"


def test_a_number_that_cannot_be_is_told_again_after_a_while() -> None:
    solo = Solo(ONE).to_ring_of_one()
    far = Announcement(ConfigurationId(NUMBER_MAX, THREE), THREE, (THREE,), (ONE, THREE))
    assert kinds(solo.give(far)) == [AlarmKind.IMPLAUSIBLE]
    solo.wait(WARN_AGAIN_NS - 1)
    assert not kinds(solo.give(far))
    solo.wait(1)
    assert kinds(solo.give(far)) == [AlarmKind.IMPLAUSIBLE]


def _is_heard(solo: Solo, ring: ConfigurationId) -> bool:
    """Whether THREE's data packets of a ring show that it is alive."""
    solo.give_packets(packet_of(1, originator=THREE, ring=ring))
    return THREE in sent(solo.wait(SMALL.announce_ns), Announcement)[-1].heard


def test_a_ring_is_doubted_no_longer_than_evidence_lasts() -> None:
    solo, far = Solo(ONE).to_ring_of_one(), ConfigurationId(NUMBER_MAX, THREE)
    solo.give(Announcement(far, THREE, (THREE,), (ONE, THREE)))
    solo.wait(LIFETIME - 1)
    assert not _is_heard(solo, far)
    assert _is_heard(solo, far)


def test_a_join_whose_ring_seq_leaps_casts_no_doubt_on_the_ring_that_its_sender_had() -> None:
    solo, theirs = Solo(ONE).to_ring_of_one(), ConfigurationId(4, THREE)
    solo.give(replace(solo.join_of(THREE, ring_seq=NUMBER_MAX - 100), ring=theirs))
    assert _is_heard(solo, theirs)


def test_of_rings_that_cannot_be_only_so_many_are_remembered() -> None:
    solo = Solo(ONE).to_ring_of_one()
    count = KNOWN_FACTOR * SMALL.members_max + 1
    rings = [ConfigurationId(NUMBER_MAX - index, THREE) for index in range(count)]
    solo.give(*(Announcement(ring, THREE, (THREE,), (ONE, THREE)) for ring in rings))
    assert not _is_heard(solo, rings[1])
    assert _is_heard(solo, rings[0])


def test_a_process_that_was_led_far_up_is_believed_after_some_time() -> None:
    """The bound rises by one leap in each lifetime of evidence, and only while something beyond it is told."""
    solo = Solo(ONE).to_ring_of_one()
    far = ConfigurationId(4 + 5 * RING_SEQ_LEAP, THREE)
    announcement = Announcement(far, THREE, (THREE,), (ONE, THREE))
    refused = 0
    while Occurrence.IMPLAUSIBLE in occurred(solo.give(announcement)):
        refused += 1
        solo.wait(LIFETIME)
    assert refused == 4


@pytest.mark.parametrize("stored", [RING_SEQ_MAX - RING_SEQ_LEAP + 1, NUMBER_MAX + 1, (1 << 64) - 1])
def test_a_stored_ring_seq_that_cannot_be_true_is_not_used_and_told(stored: int) -> None:
    solo = Solo(stored={"ring_seq": stored.to_bytes(8, "big")})
    assert kinds(solo.log) == [AlarmKind.STORAGE_DAMAGED]
    assert persisted(solo.log) == [4]
    assert solo.to_operational().node.ring.id == RING


def test_the_highest_stored_ring_seq_that_is_used_leads_to_rings_that_can_be_formed() -> None:
    highest = RING_SEQ_MAX - RING_SEQ_LEAP
    solo = Solo(stored={"ring_seq": highest.to_bytes(8, "big")})
    assert not alarms(solo.log) and persisted(solo.log) == [highest + 4]


# Join numbers


def test_a_join_number_that_leaps_is_stale_and_its_senders_next_is_taken() -> None:
    solo = Solo().to_gather()
    forged = solo.join_of(THREE, (TWO, THREE), (), number=NUMBER_MAX)
    first = solo.give(solo.join_of(THREE, number=1))
    assert not any("older opinion" in str(effect) for effect in first)
    assert any("older opinion" in str(effect) for effect in solo.give(forged))
    assert not any("older opinion" in str(effect) for effect in solo.give(solo.join_of(THREE, number=2)))


def test_a_process_goes_above_a_join_that_came_in_its_name() -> None:
    """So that its own opinion is the newest again, at once."""
    solo = Solo().to_operational()
    number = solo.join.number + JOIN_NUMBER_LEAP
    effects = solo.give(solo.join_of(TWO, TRIO, (THREE,), number=number))
    assert solo.node.state_name == "Operational"
    assert occurred(effects) == [Occurrence.IMPOSTOR] and kinds(effects) == [AlarmKind.FORGED]
    solo.lose_ring()
    assert solo.join.number == number + 1


def test_a_join_of_my_own_that_comes_back_is_nothing() -> None:
    solo = Solo().to_operational().lose_ring()
    assert not occurred(solo.give(solo.join))


def test_nobody_can_push_a_process_beyond_what_others_believe() -> None:
    solo = Solo().to_operational()
    before = solo.join.number
    solo.give(solo.join_of(TWO, TRIO, number=before + JOIN_NUMBER_LEAP + 1))
    assert solo.lose_ring().join.number == before + 1


def test_a_farewell_in_my_name_is_an_alarm() -> None:
    solo = Solo().to_operational()
    effects = solo.give(Leave(RING, TWO))
    assert kinds(effects) == [AlarmKind.FORGED] and "a Leave that n2 did not send" in alarms(effects)[0].text
    assert solo.node.state_name == "Operational"


# The Lamport clock


@pytest.mark.parametrize("told", [CLOCK_LEAP + 1, NUMBER_MAX])
def test_a_clock_on_the_token_is_cut_and_the_token_goes_on(told: int) -> None:
    solo = Solo().to_operational()
    clock = solo.token_forwarded.timestamp
    solo.pass_token(timestamp=told)
    assert solo.token_forwarded.timestamp == clock + CLOCK_LEAP


def test_a_clock_stands_still_long_before_it_would_be_refused() -> None:
    solo = Solo().to_gather().agree()
    solo.give(replace(solo.first_commit(), timestamp=NUMBER_MAX))
    assert solo.commit_forwarded.timestamp == CLOCK_MAX, "one who is new takes over what the others have counted"
    solo.written()
    solo.give(replace(solo.second_commit(), timestamp=NUMBER_MAX))
    assert solo.commit_forwarded.timestamp == CLOCK_MAX
    solo.install()
    for _ in range(3):
        solo.submit("one", "two")
        solo.pass_token(timestamp=NUMBER_MAX, round=solo.token_forwarded.round)
        assert CLOCK_MAX <= solo.token_forwarded.timestamp <= CLOCK_MAX + SMALL.visit_max


def test_a_clock_on_a_commit_token_is_cut_by_who_has_been_on_a_ring() -> None:
    solo = Solo().to_operational().lose_ring().agree()
    clock = solo.token_forwarded.timestamp
    solo.give(replace(solo.first_commit(ring=ConfigurationId(12, ONE)), timestamp=NUMBER_MAX))
    assert solo.commit_forwarded.timestamp == clock + CLOCK_LEAP


# The token


@pytest.mark.parametrize("changes", [{"round": 1000}, {"round": NUMBER_MAX}, {"seq": 9, "aru_id": 77}])
def test_a_token_with_a_round_or_a_holder_of_the_aru_that_cannot_be_is_refused(changes: dict[str, Any]) -> None:
    solo = Solo().to_operational()
    effects = solo.pass_token(**changes)
    assert Occurrence.IMPLAUSIBLE in occurred(effects) and not sent(effects, Token)
    assert sent(solo.pass_token(), Token), "the true one that comes after it is taken"


def test_a_flag_that_nobody_takes_back_ends_the_recovery_and_not_the_cluster() -> None:
    solo = Solo().to_recovery()
    solo.begin_token()
    for _ in range(SMALL.fail_to_receive_rotations + 1):
        assert solo.node.state_name == "Recovery"
        solo.pass_token(exchanging=True)
    solo.pass_token(exchanging=True)
    assert solo.node.state_name == "Gather"


# Packets under numbers that nobody gave


def test_a_token_that_speaks_of_more_packets_than_anybody_takes_is_ignored() -> None:
    """What were numbered behind them nobody else would take, nor be given when the ring ends."""
    solo = Solo().to_operational()
    solo.submit("mine")
    effects = solo.pass_token(seq=Seq(2 * SMALL.backlog_max + 1), aru=Seq(0))
    assert ignored(effects) == ["its seq cannot be true"] and not data_of(effects)
    assert seqs(solo.pass_token()) == [1]


def test_a_packet_above_the_tokens_seq_is_foreign_and_ends_the_ring_before_anything_is_numbered() -> None:
    solo = Solo().to_operational()
    solo.submit("mine")
    assert delivered(solo.give_packets(packet_of(1, "forged", THREE))) == ["forged"]
    effects = solo.pass_token()
    assert solo.node.state_name == "Gather" and solo.join.reason is ChangeReason.FOREIGN_PACKET
    assert occurred(effects) == [Occurrence.FOREIGN_PACKET] and kinds(effects) == [AlarmKind.FORGED]
    assert not data_of(effects), "what waits is numbered on the next ring"


def test_more_parts_than_all_members_can_have_in_their_queues_end_the_ring() -> None:
    size = SMALL.whole_size_max
    config = replace(SMALL, message_size_max=1 << 10, queue_size_max=2 << 10)
    solo = Solo(config=config).to_operational()
    count = 3 * config.queue_size_max // size + 1
    for seq in range(1, count + 1):
        entry = (seq, size, int(Service.AGREED), bytes(size))
        flags = Part.FIRST << PART_SHIFT
        part = build_data(solo.node.ring.heading, flags, [entry], THREE, Seq(seq), 1, seq).packet(Seq(seq))
        solo.give_packets(part)
        effects = solo.pass_token(seq=Seq(seq), aru=Seq(seq))
        assert solo.node.state_name == ("Operational" if seq < count else "Gather")
    assert "bytes of messages without an end came" in alarms(effects)[0].text


def test_what_is_foreign_and_not_delivered_is_forgotten() -> None:
    solo = Solo().to_operational()
    solo.give_packets(packet_of(2, "forged", THREE))
    solo.pass_token()
    assert solo.node.state_name == "Gather"
    assert solo.node.ring.store.high == 0


def test_who_rests_with_the_token_does_not_deliver_what_it_did_not_number() -> None:
    solo = Solo(ONE).to_operational()
    for _ in range(4):
        solo.pass_token()
    assert not sent(solo.pass_token(), Token), "it rests"
    effects = solo.give_packets(packet_of(1, "forged", THREE))
    assert solo.node.state_name == "Gather" and not delivered(effects)
    assert solo.node.ring.store.high == 0


def test_another_packet_under_my_number_ends_the_ring_at_the_next_visit() -> None:
    solo = Solo().to_operational()
    solo.submit("mine")
    effects = solo.pass_token()
    assert seqs(effects) == [1]
    solo.give_packets(*data_of(effects), packet_of(1, "forged", THREE))
    again = solo.pass_token()
    assert solo.node.state_name == "Gather" and kinds(again) == [AlarmKind.FORGED]
    assert "packet 1 of ring 8.n1 came from somebody who did not hold the token" in alarms(again)[0].text


def test_copies_of_my_packets_and_retransmissions_are_not_foreign() -> None:
    solo = Solo().to_operational()
    solo.submit("mine")
    first = data_of(solo.pass_token())
    again = data_of(solo.pass_token(requests=(Seq(1),), aru=Seq(0), aru_id=THREE))
    assert first != again
    solo.give_packets(*first, *again)
    solo.pass_token()
    assert solo.node.state_name == "Operational" and not alarms(solo.log)


def test_two_packets_of_one_number_of_somebody_else_are_an_alarm() -> None:
    solo = Solo().to_operational()
    effects = solo.give_packets(packet_of(1, "one", THREE), packet_of(1, "two", THREE))
    assert kinds(effects) == [AlarmKind.FORGED] and delivered(effects) == ["one"]
    solo.pass_token(seq=Seq(1))
    assert solo.node.state_name == "Operational"


def test_packets_far_above_the_last_token_are_not_kept() -> None:
    solo = Solo().to_operational()
    reach = 2 * SMALL.backlog_max
    for seq in range(1, 2 * reach):
        solo.give_packets(packet_of(seq, "forged", THREE))
    assert solo.node.ring.store.high == reach


# Nothing may be sent


def test_something_that_waits_a_second_in_vain_is_an_alarm_that_says_why() -> None:
    solo = Solo().to_operational()
    solo.submit("waits")
    told: list[Effect] = []
    for _ in range(11):
        told += solo.pass_token(behind=1, counted=(0, 0, 1)) + solo.wait(SECOND // 10)
    stalled = [alarm for alarm in alarms(told) if alarm.kind is AlarmKind.STALLED]
    assert len(stalled) == 1 and "an application of another member does not take its deliveries" in stalled[0].text
    assert solo.node.stalled(solo.now) is not None
    effects = solo.pass_token(behind=0, budget=9)
    assert seqs(effects) == [1] and kinds(effects) == [AlarmKind.STALL_ENDED]
    assert solo.node.stalled(solo.now) is None


def test_an_application_of_my_own_that_is_behind_is_named() -> None:
    solo = Solo().to_operational()
    solo.behind(True)
    solo.submit("waits")
    for _ in range(11):
        solo.pass_token()
        solo.wait(SECOND // 10)
    assert "the application of this process does not take" in (solo.node.stalled(solo.now) or "")


def test_who_has_nothing_to_send_is_not_stalled() -> None:
    solo = Solo().to_operational()
    for _ in range(11):
        solo.pass_token(behind=1)
        solo.wait(SECOND // 10)
    assert not alarms(solo.log)


def test_a_member_that_does_not_receive_is_named() -> None:
    solo = Solo(config=replace(SMALL, fail_to_receive_rotations=10_000)).to_operational()
    solo.give_packets(*(packet_of(seq, originator=ONE) for seq in range(1, SMALL.backlog_max + 1)))
    solo.submit("waits")
    for _ in range(11):
        solo.pass_token(seq=Seq(SMALL.backlog_max), aru=Seq(0), aru_id=THREE, budget=0)
        solo.wait(SECOND // 10)
    assert "n3 has not received packet 1" in (solo.node.stalled(solo.now) or "")


def test_a_pause_of_my_own_is_not_a_stall() -> None:
    solo = Solo().to_operational()
    solo.submit("waits")
    solo.wake_late(3 * SECOND)
    assert AlarmKind.STALLED not in kinds(solo.log)
