"""Rules of Gather, Commit and Recovery that nothing else would miss: each test fails when one condition is taken out.
(`python -m tests.mutation` takes them out.)"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ordercast.model.configuration import ChangeReason
from ordercast.model.ids import ConfigurationId, ProcessId, Seq, TokenSeq
from ordercast.model.notes import Occurrence
from ordercast.wire.messages import Announcement, CommitEntry, Token

from .solo import (
    FOUR,
    ONE,
    RING,
    SMALL,
    THREE,
    TRIO,
    TWO,
    Solo,
    ignored,
    occurred,
    packet_of,
    packets_of,
    reasons,
    sent,
    seqs,
    wrapped,
)

NEXT = ConfigurationId(12, ONE)
KEEP, LIMIT = SMALL.token_retransmit_ns, SMALL.fail_to_receive_rotations


def gathering(me: ProcessId = TWO) -> Solo:
    """It lost the token of its ring of three and proposes the same three."""
    return Solo(me).to_operational().lose_ring()


def committed() -> Solo:
    """It has forwarded the Commit token of ring 12 once."""
    solo = gathering().agree()
    solo.give(solo.first_commit(TRIO, NEXT))
    return solo


def recovering(me: ProcessId = TWO) -> Solo:
    """It has forwarded the Commit token of ring 12 twice, and ONE and TWO are on it."""
    other = TWO if me == ONE else ONE
    solo = Solo(me).to_operational().lose_ring().fail(THREE)
    return solo.recover(CommitEntry(other, True, RING, Seq(0), Seq(0)))


def hear_four(solo: Solo) -> Solo:
    """Everybody here hears FOUR, which hears everybody."""
    everybody = (*TRIO, FOUR)
    solo.give(*(Announcement(RING, one, TRIO, everybody) for one in (ONE, THREE)))
    solo.give(Announcement(ConfigurationId(4, FOUR), FOUR, (FOUR,), everybody))
    return solo


# Gather


def test_who_was_blamed_may_not_even_propose_itself_for_a_while() -> None:
    solo = Solo().to_operational()
    solo.give_packets(packet_of(1))
    solo.give(Announcement(RING, THREE, TRIO, TRIO))
    solo.pass_token(seq=1, aru=0, aru_id=THREE)
    for _ in range(LIMIT):
        solo.pass_token()
    assert solo.join.blamed == THREE
    solo.recover(CommitEntry(ONE, True, RING, Seq(1), Seq(1))).install()
    solo.give(
        *(Announcement(NEXT, ONE, (ONE, TWO), TRIO), Announcement(ConfigurationId(16, THREE), THREE, (THREE,), TRIO))
    )
    solo.give(solo.join_of(THREE, (THREE,), (), ring_seq=16, reason=ChangeReason.MERGE))
    assert solo.node.state_name == "Operational"


def test_the_join_that_ends_a_ring_is_an_agreement() -> None:
    solo = Solo(ONE).to_operational()
    solo.give(solo.join_of(TWO, TRIO, {THREE}, ring_seq=8))
    assert solo.node.state_name == "Commit", "both of those who are left have said the same"


def test_an_agreement_that_is_repeated_is_no_second_consensus() -> None:
    solo = gathering().agree()
    effects = solo.give(*solo.agreement())
    assert packets_of(effects) == [] and occurred(effects) == []


def test_a_ring_mates_join_of_before_the_last_ring_is_ignored() -> None:
    solo = gathering()
    effects = solo.give(solo.join_of(ONE, {*TRIO, FOUR}, {FOUR}, ring_seq=4))
    assert ignored(effects) == ["stale: sent before the last ring was formed"] and packets_of(effects) == []


def test_an_agreement_is_withdrawn_by_a_join_that_says_less() -> None:
    solo = gathering(ONE)
    solo.give(solo.join_of(TWO))
    solo.give(solo.join_of(TWO, (ONE, TWO), ()))
    solo.give(solo.join_of(THREE))
    assert solo.node.state_name == "Gather"


def test_an_outsider_whom_everybody_hears_becomes_a_candidate_for_a_merge() -> None:
    solo = hear_four(gathering())
    effects = solo.give(solo.join_of(FOUR, {FOUR}, (), ring_seq=4, reason=ChangeReason.TOKEN_LOST))
    assert reasons(effects) == [ChangeReason.MERGE], "why its own ring, of a lower seq, ended is not why ours did"
    assert solo.join.candidates == (*TRIO, FOUR)


def test_an_outsider_that_counts_me_as_failed_is_no_candidate() -> None:
    solo = hear_four(gathering())
    effects = solo.give(solo.join_of(FOUR, {TWO, FOUR}, {TWO}))
    assert ignored(effects) == ["not everybody here and there hear each other"] and packets_of(effects) == []


def test_a_ring_mates_reason_is_taken_over() -> None:
    solo = gathering()
    effects = solo.give(solo.join_of(ONE, TRIO, {THREE}, reason=ChangeReason.LEFT))
    assert reasons(effects) == [ChangeReason.LEFT]


# Commit


def test_a_second_copy_of_the_complete_token_changes_nothing_while_the_disk_is_awaited() -> None:
    solo = committed()
    first = solo.second_commit()
    solo.give(first)
    other = replace(first, members=(replace(first.members[0], old_aru=Seq(7)), *first.members[1:]))
    assert occurred(solo.give(other)) == [Occurrence.DUPLICATE_TOKEN]


@pytest.mark.parametrize("members", [(ONE, TWO), (*TRIO, FOUR)])
def test_a_second_rotation_with_other_members_is_ignored(members: tuple[ProcessId, ...]) -> None:
    solo = committed()
    solo.written()
    token = solo.second_commit()
    known = {entry.process: entry for entry in token.members}
    entries = tuple(known.get(one, CommitEntry(one, True, ConfigurationId(4, one))) for one in members)
    effects = solo.give(replace(token, members=entries))
    assert ignored(effects) == ["it contradicts what I wrote on it"] and solo.node.state_name == "Commit"


# Recovery


@pytest.mark.parametrize("hop", [4, 5, 6])
def test_others_than_the_representative_never_make_a_commit_token_the_regular_one(hop: int) -> None:
    solo = recovering(TWO)
    effects = solo.give(replace(solo.third_commit(), token_seq=TokenSeq(hop)))
    assert packets_of(effects) == [] and occurred(effects) == [Occurrence.DUPLICATE_TOKEN]


@pytest.mark.parametrize(
    "changes", [{"ring": ConfigurationId(16, ONE)}, {"token_seq": TokenSeq(3)}, {"token_seq": TokenSeq(5)}]
)
def test_the_representative_takes_its_own_rings_token_after_two_rotations_alone(changes: dict[str, Any]) -> None:
    solo = recovering(ONE)
    effects = solo.give(replace(solo.third_commit(), **changes))
    assert packets_of(effects) == [] and occurred(effects) == [Occurrence.DUPLICATE_TOKEN]


def test_a_packet_that_nobody_numbered_ends_a_recovery() -> None:
    solo = recovering()
    solo.begin_token()
    solo.give_packets(wrapped(packet_of(1), 5, NEXT, ONE))
    assert reasons(solo.pass_token()) == [ChangeReason.FOREIGN_PACKET]


def test_a_member_that_hears_nothing_ends_a_recovery_and_is_blamed() -> None:
    solo = Solo().to_recovery()
    solo.pass_token(seq=1, aru=0, aru_id=THREE)
    effects = [effect for _ in range(LIMIT) for effect in solo.pass_token(aru=0, aru_id=THREE)]
    assert reasons(effects) == [ChangeReason.FAILED_TO_RECEIVE]
    assert (solo.join.failed, solo.join.blamed) == ((THREE,), THREE)


def idle(solo: Solo, flags: list[bool]) -> int:
    """Pass a token with these flags, one after the other, on which nothing else changes; return how many times until
    the recovery was given up."""
    solo.begin_token()
    for number, flag in enumerate(flags):
        if solo.node.state_name != "Recovery":
            return number
        solo.pass_token(exchanging=flag)
    return len(flags) + (solo.node.state_name == "Recovery")


def test_a_flag_that_nobody_takes_back_is_waited_for_so_many_visits_in_a_row() -> None:
    assert idle(recovering(), [True] * (LIMIT + 9)) == LIMIT + 1
    assert idle(recovering(), [*[True] * LIMIT, False, *[True] * LIMIT]) == 2 * LIMIT + 2, "it was taken back once"


def test_a_flag_is_believed_while_packets_come() -> None:
    solo = recovering()
    solo.begin_token()
    for seq in range(1, 3 * LIMIT):
        solo.give_packets(wrapped(packet_of(seq), seq, NEXT, ONE))
        solo.pass_token(exchanging=True, seq=seq, aru=seq)
    assert solo.node.state_name == "Recovery"


def with_much_to_send() -> Solo:
    """It has six packets of the old ring that ONE lacks, more than are sent on one visit."""
    solo = Solo().to_operational()
    solo.give_packets(*map(packet_of, range(1, 7)))
    return solo.lose_ring().fail(THREE).recover(CommitEntry(ONE, True, RING, Seq(0), Seq(0)))


def test_a_flag_that_another_raised_is_not_mine_to_lower() -> None:
    solo = with_much_to_send()
    solo.pass_token(exchanging=True)
    solo.pass_token()
    assert solo.token_forwarded.exchanging and len(seqs(solo.log)) == 6


def test_who_has_something_to_send_and_may_not_yet_does_not_give_up() -> None:
    solo = with_much_to_send()
    for _ in range(2 * LIMIT):
        solo.pass_token(exchanging=True, budget=0)
    assert solo.node.state_name == "Recovery" and not seqs(solo.log)


def test_the_token_of_a_recovery_is_sent_again_until_somebody_has_numbered_more() -> None:
    solo = recovering()
    solo.pass_token(seq=1, aru=0)
    assert [token.seq for token in sent(solo.wait(KEEP), Token)] == [1]
    solo.give_packets(wrapped(packet_of(1), 1, NEXT, ONE))
    assert sent(solo.wait(KEEP), Token), "an old packet that was lost is no sign of the token"
    solo.give_packets(wrapped(packet_of(2), 2, NEXT, ONE))
    assert sent(solo.wait(KEEP), Token) == []


def test_nothing_is_said_of_large_messages_when_none_was_cut() -> None:
    assert Occurrence.LARGE_SENT_AGAIN not in occurred(recovering().install().log)
