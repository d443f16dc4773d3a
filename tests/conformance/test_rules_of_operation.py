"""Rules of normal operation that nothing else would miss: each test fails when one condition is taken out.
(`python -m tests.mutation` takes them out.)"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ordercast.model.configuration import ChangeReason
from ordercast.model.effects import AlarmKind, Broadcast, LeaveDone, Record
from ordercast.model.ids import NOBODY, ConfigurationId, NodeId, ProcessId, Seq, TokenSeq
from ordercast.model.notes import Occurrence, Visited
from ordercast.model.roster import Entry, Place, Roster
from ordercast.model.service import Service
from ordercast.order.membership.rosters import FAREWELLS
from ordercast.wire.messages import Announcement, CommitEntry, RosterCopy, Token, Wake

from .solo import (
    FOUR,
    ONE,
    RING,
    SMALL,
    THREE,
    TRIO,
    TWO,
    Solo,
    alarms,
    ignored,
    occurred,
    packet_of,
    reasons,
    sent,
    seqs,
)

REST, SOON, LIMIT = SMALL.rest_ns, SMALL.announce_ns // 4, SMALL.fail_to_receive_rotations
EVERYBODY = (*TRIO, FOUR)


def settled(me: ProcessId = ONE, **ring: Any) -> Solo:
    """A member of a ring on which nothing has happened for some rotations; the token is on its way."""
    solo = Solo(me, **ring).to_operational()
    for _ in range(6):
        solo.pass_token()
        solo.wait(REST)
    return solo


def resting() -> Solo:
    """The representative with the token at rest."""
    solo = settled()
    assert rests(solo)
    return solo


def rests(solo: Solo, **changes: Any) -> bool:
    """Whether the token stays, when it comes next."""
    effects = solo.pass_token(**changes)
    assert (Occurrence.TOKEN_RESTED in occurred(effects)) == (sent(effects, Token) == [])
    return Occurrence.TOKEN_RESTED in occurred(effects)


# Newcomers


def announced(*senders: ProcessId) -> list[Announcement]:
    """Announcements by which everybody hears everybody: of members, and of FOUR, which is alone."""
    return [
        Announcement(ConfigurationId(4, FOUR), FOUR, (FOUR,), EVERYBODY)
        if sender == FOUR
        else Announcement(RING, sender, TRIO, EVERYBODY)
        for sender in senders
    ]


def test_a_newcomer_whom_everybody_hears_is_merged_and_nothing_is_held() -> None:
    solo = settled()
    solo.give(*announced(TWO, THREE, FOUR))
    effects = solo.wait(SOON)
    assert reasons(effects) == [ChangeReason.MERGE]
    assert not {Occurrence.MERGE_HELD, Occurrence.NEWCOMER_HELD} & set(occurred(effects))


def test_a_merge_is_looked_for_soon_after_the_first_news_however_many_follow() -> None:
    solo = settled()
    solo.give(*announced(TWO, THREE, FOUR))
    solo.wait(SOON // 2)
    solo.give(*announced(FOUR))
    assert reasons(solo.wait(SOON // 2)) == [ChangeReason.MERGE]


def test_members_are_no_news() -> None:
    solo = settled()
    solo.give(*announced(FOUR))
    solo.wait(SOON)
    solo.give(*announced(TWO, THREE))
    assert reasons(solo.wait(SOON)) == [], "an outsider has to say that it is still there"
    solo.give(*announced(FOUR))
    assert reasons(solo.wait(SOON)) == [ChangeReason.MERGE]


def test_a_merge_that_is_held_up_is_told() -> None:
    """THREE was expelled for hearing nothing."""
    solo = Solo(ONE).to_operational()
    solo.give_packets(packet_of(1, originator=TWO))
    solo.give(Announcement(RING, THREE, TRIO, TRIO))
    solo.pass_token(seq=1, aru=0, aru_id=THREE)
    for _ in range(LIMIT):
        solo.pass_token()
    solo.recover(CommitEntry(TWO, True, RING, Seq(1), Seq(1))).install()
    solo.give(
        Announcement(solo.node.ring.id, TWO, (ONE, TWO), TRIO),
        Announcement(ConfigurationId(16, THREE), THREE, (THREE,), TRIO),
    )
    effects = solo.wait(SOON)
    assert occurred(effects).count(Occurrence.MERGE_HELD) == 1 and Occurrence.NEWCOMER_HELD not in occurred(effects)
    assert solo.node.state_name == "Operational"


def roster(version: int, *nodes: int) -> Roster:
    place = Place("10.0.0.1", 4701, 4700)
    return Roster(version, tuple(Entry(NodeId(node), f"n{node}", (place,)) for node in nodes), is_ordered=True)


def listed(me: ProcessId, mine: Roster) -> Solo:
    """A member of the ring of three, all of whom have this roster."""
    solo = settled(me)
    solo.node.enlist(mine, solo.now)
    solo.give(*(RosterCopy(RING, one, mine) for one in TRIO if one != me))
    return solo


def test_a_newcomer_whom_a_list_keeps_out_is_told() -> None:
    mine, theirs = roster(1, 1, 2, 3, 4), roster(1, 4)
    solo = listed(ONE, mine)
    solo.give(*(replace(one, claim=mine.claim) for one in announced(TWO, THREE)))
    solo.give(*announced(FOUR), RosterCopy(ConfigurationId(4, FOUR), FOUR, theirs))
    effects = solo.wait(SOON)
    assert occurred(effects).count(Occurrence.NEWCOMER_HELD) == 1 and Occurrence.MERGE_HELD not in occurred(effects)


# Joins of others


def with_four() -> Solo:
    solo = settled(TWO)
    solo.give(*announced(ONE, THREE, FOUR))
    return solo


def test_why_an_outsiders_ring_ended_is_not_why_mine_does() -> None:
    solo = with_four()
    effects = solo.give(solo.join_of(FOUR, EVERYBODY, (), ring_seq=4, reason=ChangeReason.TOKEN_LOST))
    assert reasons(effects) == [ChangeReason.MERGE]


@pytest.mark.parametrize(
    ("sender", "blamed", "believed"), [(ONE, THREE, THREE), (ONE, FOUR, NOBODY), (FOUR, THREE, NOBODY)]
)
def test_members_alone_blame_and_members_alone(sender: ProcessId, blamed: ProcessId, believed: ProcessId) -> None:
    solo = with_four()
    ring_seq = 4 if sender == FOUR else 8
    solo.give(solo.join_of(sender, EVERYBODY, (), ring_seq=ring_seq, blamed=blamed))
    assert solo.node.state_name == "Gather" and solo.join.blamed == believed


# Members that all lists have dropped


@pytest.mark.parametrize(
    ("me", "kept", "expelled"), [(ONE, (1, 2), (THREE,)), (TWO, (1, 2), ()), (TWO, (2, 3), (ONE,)), (THREE, (2, 3), ())]
)
def test_the_first_of_those_who_stay_expels_whom_all_have_dropped(
    me: ProcessId, kept: tuple[int, ...], expelled: tuple[ProcessId, ...]
) -> None:
    solo = listed(me, roster(2, *kept))
    for _ in range(3 * FAREWELLS):
        if solo.node.state_name == "Operational":
            solo.pass_token()
            solo.wait(SMALL.announce_ns)
    assert (solo.node.state_name == "Gather") == bool(expelled)
    assert (Occurrence.MEMBER_DROPPED in occurred(solo.log)) == bool(expelled)
    assert not expelled or (solo.join.failed, solo.join.reason) == (expelled, ChangeReason.REMOVED)


# The token at rest


def test_a_token_that_comes_while_one_rests_here_is_not_taken_whatever_its_number() -> None:
    solo = resting()
    expected = TokenSeq(solo.node.ring.expected_token_seq())
    effects = solo.pass_token(token_seq=expected)
    assert sent(effects, Token) == [] and occurred(effects) == [Occurrence.DUPLICATE_TOKEN]


def test_another_rings_token_that_comes_while_one_rests_here_is_no_copy() -> None:
    solo = resting()
    effects = solo.pass_token(ring=ConfigurationId(4, ONE))
    assert ignored(effects) == ["another ring's token"] and occurred(effects) == []


def test_the_token_does_not_rest_with_requests_on_it() -> None:
    for requests in ((), (Seq(1),)):
        solo = resting()
        solo.submit("one")
        solo.wait(SMALL.linger_ns)
        assert rests(solo, requests=requests) != bool(requests)


def test_the_token_does_not_rest_with_whoever_has_news() -> None:
    solo = settled()
    solo.behind(True)
    assert not rests(solo)


def test_the_token_does_not_rest_with_whoever_is_leaving() -> None:
    solo = settled()
    solo.submit("last")
    solo.leave()
    assert not rests(solo) and solo.token_forwarded.seq == 1


@pytest.mark.parametrize("is_enclosed", [False, True])
def test_a_little_keeps_the_token_only_where_no_engine_waits_for_it(is_enclosed: bool) -> None:
    solo = settled(stamps=is_enclosed)
    solo.submit("little")
    assert rests(solo) != is_enclosed


def test_what_is_added_later_does_not_put_off_when_the_token_goes_on() -> None:
    solo = resting()
    solo.submit("one")
    solo.wait(SMALL.linger_ns // 2)
    solo.submit("two")
    assert [token.seq for token in sent(solo.wait(SMALL.linger_ns // 2), Token)] == [2]


def test_in_a_ring_of_one_nobody_waits_for_a_sign_of_life() -> None:
    solo = Solo().to_ring_of_one()
    solo.wait(0)
    assert solo.node.next_deadline() == solo.now + SMALL.announce_ns


def test_where_nothing_is_added_to_a_visit_nothing_is_sent() -> None:
    effects = resting().behind(True)
    assert len(sent(effects, Token)) == 1 and not any(isinstance(effect, Broadcast) for effect in effects)


def test_visits_are_noted_when_asked_for_alone() -> None:
    for verbose in (False, True):
        solo = settled(verbose=verbose)
        solo.submit("one")
        effects = solo.pass_token()
        solo.submit("two")
        notes = [one for one in solo.log if isinstance(one, Record) and isinstance(one.note, Visited)]
        assert seqs(effects) == [1] and (len(notes) > 2) == bool(notes) == verbose


# Whom to wake, and when


def test_whoever_falls_behind_or_catches_up_asks_for_the_token() -> None:
    solo = settled(TWO)
    assert len(sent(solo.behind(True), Wake)) == 1
    solo.behind(False)
    assert sent(solo.wait(2 * SMALL.linger_ns), Wake) == [], "there is no news any more"


def test_whoever_has_left_wakes_nobody() -> None:
    effects = settled(TWO).leave()
    assert any(isinstance(effect, LeaveDone) for effect in effects) and sent(effects, Wake) == []


def test_who_leaves_before_its_first_view_is_gone_with_it() -> None:
    solo = Solo()
    solo.leave()
    assert isinstance(solo.written()[-1], LeaveDone) and solo.node.state_name == "Gone"


# Tokens and packets that cannot be


def test_a_token_with_fewer_packets_than_were_numbered_is_not_taken() -> None:
    solo = settled(TWO)
    solo.submit("one")
    solo.pass_token()
    effects = solo.pass_token(seq=Seq(0), aru=Seq(0))
    assert sent(effects, Token) == [] and occurred(effects) == [Occurrence.DUPLICATE_TOKEN]


def test_what_the_token_speaks_of_is_kept_when_a_foreign_packet_ends_the_ring() -> None:
    solo = settled(TWO)
    solo.give_packets(packet_of(1, service=Service.SAFE), packet_of(3, "forged", THREE))
    effects = solo.pass_token(seq=1, aru=1)
    assert reasons(effects) == [ChangeReason.FOREIGN_PACKET] and solo.node.ring.store.high == 1
    (alarm,) = alarms(effects)
    assert alarm.kind is AlarmKind.FORGED and alarm.text.startswith(f"packet 3 of ring {RING} came from somebody")


def test_a_packet_under_a_number_of_mine_is_named() -> None:
    solo = settled(TWO)
    solo.submit("one", "two", size=SMALL.whole_size_max)
    solo.pass_token()
    solo.give_packets(packet_of(1, "forged", THREE))
    (alarm,) = alarms(solo.pass_token())
    assert alarm.text.startswith(f"packet 1 of ring {RING} came from somebody")
