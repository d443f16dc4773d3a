"""Where more than a few hear each other, everything that all of them read goes at a slower pace, and nobody joins a
quarrel of many. (Beyond the paper: docs/internals/deviations.md)"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ordercast.model.configuration import ChangeReason
from ordercast.model.ids import Instant, ProcessId
from ordercast.order.membership.hearing import Hearing, lifetime_of
from ordercast.order.ring.config import FEW
from ordercast.wire.messages import Announcement, CommitToken, Join

from .solo import SMALL, Solo, ignored, packets_of, process, reasons, sent
from .test_lists_of_others import roster

MANY = tuple(process(number) for number in range(1, 33))
EIGHT = MANY[:FEW]
ME = MANY[1]


def heard(members: tuple[ProcessId, ...] = MANY, me: ProcessId = ME) -> Solo:
    """On a ring of its own; everybody hears everybody."""
    solo = Solo(me).to_ring_of_one()
    solo.give(*solo.announcements(members))
    return solo


def growing(solo: Solo, members: tuple[ProcessId, ...]) -> list[Join]:
    """Return Joins that come from one after the other, and each names one more."""
    return [
        solo.join_of(members[0], {ME, *members[:count]}, reason=ChangeReason.MERGE)
        for count in range(2, len(members) + 1)
    ]


def test_few_tell_at_once_whatever_they_hear_of() -> None:
    solo = heard(EIGHT)
    told = sent(solo.give(*growing(solo, EIGHT)), Join)
    assert [len(join.candidates) for join in told] == list(range(2, FEW + 1))


def test_many_tell_once_what_they_have_heard_at_one_moment_and_all_of_it_soon() -> None:
    solo = heard()
    told = sent(solo.give(*growing(solo, MANY)), Join)
    assert [len(join.candidates) for join in told] == [2]
    gap = SMALL.opinion_gap_of(len(MANY))
    assert gap < SMALL.join_gap_of(len(MANY)) < SMALL.consensus_of(len(MANY)) // 2
    assert sent(solo.wait(gap - 1), Join) == []
    (join,) = sent(solo.wait(1), Join)
    assert join.candidates == MANY and not join.failed
    assert [join.number for join in sent(solo.wait(SMALL.join_gap_of(len(MANY))), Join)] == [join.number]


def test_consensus_is_reached_with_an_opinion_that_was_not_told_yet() -> None:
    """All others agree on what the representative has not told: it tells it, and sends the Commit token."""
    solo = heard(me=MANY[0])
    solo.wait(SMALL.announce_ns // 4)
    assert solo.node.state_name == "Gather" and solo.join.candidates == MANY
    effects = solo.give(*(solo.join_of(one, MANY, MANY[-1:]) for one in MANY[1:-1]))
    (join,) = sent(effects, Join)
    assert join.failed == MANY[-1:] and solo.node.state_name == "Commit"
    (token,) = sent(effects, CommitToken)
    assert tuple(entry.process for entry in token.members) == MANY[:-1]


@pytest.mark.parametrize(("members", "times"), [(EIGHT, 1), (MANY, 4)])
def test_the_more_there_are_the_longer_they_have_to_agree(members: tuple[ProcessId, ...], times: int) -> None:
    solo = heard(members)
    solo.give(solo.join_of(members[0], members, reason=ChangeReason.MERGE))
    assert solo.node.state_name == "Gather"
    solo.wait(times * SMALL.consensus_ns - 1)
    assert not solo.join.failed
    solo.wait(1)
    assert set(solo.join.failed) == set(members) - {ME, members[0]}


def test_who_was_paused_gives_many_as_long_again() -> None:
    solo = heard()
    solo.give(solo.join_of(MANY[0], MANY, reason=ChangeReason.MERGE))
    solo.wake_late(4 * SMALL.consensus_ns + SMALL.pause_ns)
    solo.wait(4 * SMALL.consensus_ns - 1)
    assert not solo.join.failed
    solo.wait(1)
    assert solo.join.failed


def test_whoever_has_consensus_waits_for_the_commit_token_as_long_as_the_representative_may_wait() -> None:
    solo = heard()
    solo.give(solo.join_of(MANY[0], MANY, reason=ChangeReason.MERGE))
    solo.give(*solo.agreement())
    solo.wait(SMALL.token_loss_ns + 3 * SMALL.consensus_ns - 1)
    assert reasons(solo.log)[-1] is ChangeReason.MERGE
    solo.wait(1)
    assert reasons(solo.log)[-1] is ChangeReason.COMMIT_LOST


def test_a_join_is_repeated_before_its_sender_counts_as_not_heard() -> None:
    assert 3 * SMALL.join_gap_of(1000) <= lifetime_of(SMALL)


def test_many_announce_half_as_often() -> None:
    """Others do not hear it, so it stays alone."""
    solo = Solo(ME).to_ring_of_one()
    times = []
    for _ in range(20):
        solo.give(*(replace(one, heard=MANY[2:]) for one in solo.announcements(MANY)))
        times.append(len(sent(solo.wait(SMALL.announce_ns // 2), Announcement)))
    assert sum(times[4:]) == 16 // 4


def announced(solo: Solo, others: tuple[ProcessId, ...], times: int, **said: Any) -> int:
    """Return how often a member announces its ring in so many usual gaps, while these announce theirs."""
    count = 0
    for _ in range(4 * times):
        solo.pass_token()
        solo.give(*(replace(one, **said) for one in solo.announcements(others)))
        count += len(sent(solo.wait(SMALL.announce_ns // 4), Announcement))
    return count


@pytest.mark.parametrize(("members", "times"), [(EIGHT, 8), (MANY, 2)])
def test_members_of_a_ring_of_many_announce_it_together_as_often_as_eight(
    members: tuple[ProcessId, ...], times: int
) -> None:
    solo = Solo(ME).to_operational(members)
    announced(solo, members, 8)  # until it is its turn
    assert announced(solo, members, 8) == times


def test_a_ring_of_many_is_announced_as_before_once_a_stranger_is_heard() -> None:
    solo = Solo(ME).to_operational(MANY)
    announced(solo, MANY, 8)
    stranger = process(99)
    assert announced(solo, (*MANY, stranger), 8) >= 4


@pytest.mark.parametrize("me", [MANY[1], MANY[20]])
def test_members_of_a_ring_of_many_take_turns_by_their_clocks(me: ProcessId) -> None:
    solo = Solo(me).to_operational(MANY)
    announced(solo, MANY, 8)
    gap = SMALL.calm_gap_of(len(MANY))
    turn = gap * MANY.index(me) // len(MANY)
    solo.wait(gap - 1 - (solo.now - turn) % gap)
    solo.pass_token()
    assert (solo.now + 1 - turn) % gap == 0
    assert sent(solo.wait(1), Announcement)


def test_a_ring_of_many_is_announced_as_before_while_its_lists_differ() -> None:
    mine = roster(1, *range(1, len(MANY) + 1))
    solo = Solo(ME).to_operational(MANY)
    solo.node.enlist(mine, solo.now)
    announced(solo, MANY, 8, claim=mine.claim)
    assert announced(solo, MANY, 8, claim=mine.claim) == 2
    assert announced(solo, MANY, 8, claim=roster(1, *range(1, len(MANY) + 2)).claim) >= 4


def test_what_is_known_of_members_of_many_outlives_an_announcement_that_is_lost() -> None:
    config, now = SMALL, Instant(SMALL.announce_ns)
    hearing = Hearing(ME, config)
    hearing.hear(MANY[0], now)
    later = Instant(now + lifetime_of(config))
    assert not hearing.is_heard(MANY[0], later)
    hearing.installed(MANY)
    assert hearing.is_heard(MANY[0], later)
    assert hearing.is_heard(MANY[0], Instant(now + 2 * config.calm_gap_of(len(MANY))))
    hearing.installed(EIGHT)
    assert not hearing.is_heard(MANY[0], later)


def test_nobody_joins_many_that_give_up_whom_it_hears() -> None:
    solo = heard()
    solo.give(solo.join_of(MANY[0], MANY, MANY[9:20], reason=ChangeReason.MERGE))
    assert solo.node.state_name == "Operational"
    assert "it gives up processes that are heard here" in ignored(solo.log)


def test_whoever_gives_up_the_dead_is_joined() -> None:
    dead = process(99)
    solo = heard()
    solo.give(solo.join_of(MANY[0], {*MANY, dead}, {dead}, reason=ChangeReason.MERGE))
    assert solo.node.state_name == "Gather"


def test_few_that_give_up_one_of_them_are_joined_as_in_the_paper() -> None:
    solo = heard(EIGHT)
    solo.give(solo.join_of(EIGHT[0], EIGHT, EIGHT[7:], reason=ChangeReason.MERGE))
    assert solo.node.state_name == "Gather"


def test_a_commit_token_of_many_travels_in_packets_of_the_usual_size() -> None:
    members = tuple(process(number) for number in range(1, 65))
    solo = heard(members, me=members[0])
    solo.wait(SMALL.announce_ns // 4)
    effects = solo.give(*solo.agreement())
    assert solo.node.state_name == "Commit"
    packets = packets_of(effects)
    assert len(packets) == 2 and max(map(len, packets)) <= SMALL.packet_size_max
    (token,) = sent(effects, CommitToken)
    assert tuple(entry.process for entry in token.members) == members
