"""ONE and TWO are a ring and THREE and FOUR another; ONE listens."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ordercast.model.configuration import ChangeReason
from ordercast.model.ids import NOBODY, ConfigurationId, Instant, ProcessId
from ordercast.order.membership.bounds import JOIN_NUMBER_LEAP
from ordercast.order.membership.hearing import (
    HOLD_DOWN_LEVEL_MAX,
    KNOWN_FACTOR,
    Hearing,
    lifetime_of,
)
from ordercast.order.ring.config import LIFETIME_ANNOUNCEMENTS, MANY, RingConfig
from ordercast.wire.codec import NUMBER_MAX
from ordercast.wire.messages import Announcement, Join

from ..rings import FOUR, ONE, THREE, TWO, process

CONFIG = RingConfig(announce_ns=10, hold_down_ns=1000, members_max=8)
LIFETIME = LIFETIME_ANNOUNCEMENTS * CONFIG.announce_ns
OURS, THEIRS = ConfigurationId(8, ONE), ConfigurationId(4, THREE)
NOW = Instant(100)
LATER = Instant(NOW + LIFETIME)


def _told(hearing: Hearing, sender: ProcessId, *heard: ProcessId, now: Instant = NOW) -> None:
    ring, members = (OURS, (ONE, TWO)) if sender in (ONE, TWO) else (THEIRS, (THREE, FOUR))
    hearing.report(Announcement(ring, sender, members, heard), now)


def _all_hear_all() -> Hearing:
    hearing = Hearing(ONE, CONFIG)
    _told(hearing, TWO, ONE, THREE, FOUR)
    _told(hearing, THREE, ONE, TWO, FOUR)
    _told(hearing, FOUR, ONE, TWO, THREE)
    return hearing


def test_rings_that_hear_each_other_both_ways_merge() -> None:
    assert _all_hear_all().mergeable((ONE, TWO), NOW)[:2] == ((THREE, FOUR), False)


def test_one_link_that_works_one_way_only_prevents_the_merge() -> None:
    for deaf, heard in ((TWO, (ONE, THREE)), (THREE, (TWO, FOUR)), (FOUR, (ONE, THREE))):
        hearing = _all_hear_all()
        _told(hearing, deaf, *heard)
        assert hearing.mergeable((ONE, TWO), NOW)[:2] == ((), False)


def test_a_ring_of_which_one_member_is_silent_is_not_merged() -> None:
    hearing = Hearing(ONE, CONFIG)
    _told(hearing, TWO, ONE, THREE, FOUR)
    _told(hearing, THREE, ONE, TWO, FOUR)
    hearing.hear(FOUR, NOW)
    assert hearing.mergeable((ONE, TWO), NOW)[:2] == ((), False)


def test_a_ring_whose_members_disagree_on_it_is_not_merged() -> None:
    hearing = _all_hear_all()
    hearing.report(Announcement(ConfigurationId(12, FOUR), FOUR, (FOUR,), (ONE, TWO, THREE)), NOW)
    newcomers, *_ = hearing.mergeable((ONE, TWO), NOW)
    assert newcomers == (FOUR,)


def test_my_own_ring_is_no_other_ring() -> None:
    hearing = Hearing(ONE, CONFIG)
    _told(hearing, TWO, ONE)
    assert hearing.mergeable((ONE, TWO), NOW)[:2] == ((), False)


def test_rings_of_strangers_that_do_not_hear_each_other_are_not_both_merged() -> None:
    hearing = Hearing(ONE, CONFIG)
    hearing.report(Announcement(ConfigurationId(4, THREE), THREE, (THREE,), (ONE,)), NOW)
    hearing.report(Announcement(ConfigurationId(4, FOUR), FOUR, (FOUR,), (ONE,)), NOW)
    assert hearing.mergeable((ONE,), NOW)[:2] == ((THREE,), False)


def test_no_more_are_merged_than_a_ring_may_have() -> None:
    hearing = Hearing(ONE, replace(CONFIG, members_max=3))
    _told(hearing, TWO, ONE, THREE, FOUR)
    _told(hearing, THREE, ONE, TWO, FOUR)
    _told(hearing, FOUR, ONE, TWO, THREE)
    assert hearing.mergeable((ONE, TWO), NOW)[:2] == ((), False)


def test_evidence_expires() -> None:
    hearing = _all_hear_all()
    assert hearing.admits([THREE, FOUR], [ONE, TWO], Instant(LATER - 1))
    assert not hearing.admits([THREE, FOUR], [ONE, TWO], LATER)
    assert hearing.mergeable((ONE, TWO), LATER)[:2] == ((), False)
    assert hearing.heard(Instant(LATER - 1)) == (TWO, THREE, FOUR)
    assert hearing.heard(LATER) == ()


def test_an_old_report_is_no_evidence_although_its_sender_is_still_heard() -> None:
    hearing = _all_hear_all()
    for speaker in (TWO, THREE, FOUR):
        hearing.hear(speaker, LATER)
    assert hearing.heard(LATER) == (TWO, THREE, FOUR)
    assert not hearing.admits([THREE], [TWO], LATER)


def test_news_is_the_first_sign_of_life_for_a_while() -> None:
    hearing = Hearing(ONE, CONFIG)
    assert hearing.hear(TWO, NOW)
    assert not hearing.hear(TWO, Instant(NOW + 1))
    assert hearing.hear(TWO, Instant(NOW + 1 + LIFETIME))


def test_i_do_not_hear_myself() -> None:
    hearing = Hearing(ONE, CONFIG)
    assert not hearing.hear(ONE, NOW)
    assert hearing.heard(NOW) == ()


def _held_for(hearing: Hearing, since: Instant) -> int:
    """How long THREE is held down from `since` on, in hold-downs of the first length."""
    length = 0
    while hearing.is_held_down(THREE, Instant(since + length)):
        length += CONFIG.hold_down_ns
    return length // CONFIG.hold_down_ns


def test_the_hold_down_doubles_up_to_a_limit() -> None:
    hearing = Hearing(ONE, CONFIG)
    now, lengths = NOW, []
    for _ in range(HOLD_DOWN_LEVEL_MAX + 2):
        hearing.hear(THREE, now)
        hearing.hold_down([THREE], now)
        lengths.append(_held_for(hearing, now))
        now = Instant(now + lengths[-1] * CONFIG.hold_down_ns)
        assert not hearing.is_held_down(THREE, now)
    assert lengths == [1, 2, 4, 8, 8, 8]


def test_a_member_of_many_that_was_cut_off_is_not_held_down() -> None:
    """It announced itself seldom, and nobody has heard it since: it could not be heard when it was given up."""
    many = tuple(process(number) for number in range(1, 41))
    hearing = Hearing(ONE, CONFIG)
    hearing.installed(many)
    hearing.hear(THREE, NOW)
    assert hearing.is_heard(THREE, LATER)
    hearing.hold_down([THREE], LATER)
    assert not hearing.is_held_down(THREE, LATER)
    hearing.hold_down([THREE], LATER, is_blamed=True)  # the ring was whole when it was blamed
    assert hearing.is_held_down(THREE, LATER)


def test_the_hold_down_is_forgotten_after_a_quiet_time() -> None:
    hearing = Hearing(ONE, CONFIG)
    hearing.hear(THREE, NOW)
    hearing.hold_down([THREE], NOW)
    much_later = Instant(NOW + 10 * CONFIG.hold_down_ns)
    hearing.hear(THREE, much_later)
    hearing.hold_down([THREE], much_later)
    assert _held_for(hearing, much_later) == 1


def test_who_failed_to_receive_is_held_down_longer_at_once() -> None:
    hearing = Hearing(ONE, CONFIG)
    hearing.hear(THREE, NOW)
    hearing.hold_down([THREE], NOW, is_blamed=True)
    assert _held_for(hearing, NOW) == 4


def test_who_cannot_be_heard_needs_no_hold_down() -> None:
    hearing = Hearing(ONE, CONFIG)
    hearing.hold_down([THREE], NOW)
    assert not hearing.is_held_down(THREE, NOW)


def test_a_held_down_process_is_not_proposed_but_may_propose() -> None:
    hearing = _all_hear_all()
    hearing.hold_down([FOUR], NOW)
    assert hearing.mergeable((ONE, TWO), NOW)[:2] == ((), True)
    assert hearing.admits([THREE, FOUR], [ONE, TWO], NOW)


def _join(number: int, sender: ProcessId = TWO) -> Join:
    return Join(OURS, sender, number, 8, (ONE, sender), (), 0, ChangeReason.MERGE, NOBODY, ())


def test_an_older_join_of_the_same_sender_is_stale() -> None:
    hearing = Hearing(ONE, CONFIG)
    numbers = (3, 2, 3, 4, 3)
    assert [hearing.is_stale(_join(number), NOW) for number in numbers] == [False, True, False, False, True]
    assert not hearing.is_stale(_join(1, THREE), NOW)


def test_a_number_that_leaps_is_not_taken_for_the_newest() -> None:
    hearing = Hearing(ONE, CONFIG)
    assert not hearing.is_stale(_join(3), NOW)
    assert hearing.is_stale(_join(4 + JOIN_NUMBER_LEAP), NOW)
    assert not hearing.is_stale(_join(4), NOW)


@pytest.mark.parametrize("forged", [5, 1_000_000, NUMBER_MAX])
def test_a_sender_in_whose_name_a_high_number_came_is_believed_again_after_a_while(forged: int) -> None:
    """It is Joins that keep coming with rising numbers who are believed, not one that was late."""
    hearing = Hearing(ONE, CONFIG)
    lifetime = lifetime_of(CONFIG)
    assert not hearing.is_stale(_join(forged), NOW)
    numbers = (1, 1, 2, 2, 3, 4)
    times = [NOW + number * lifetime // 4 for number in range(6)]
    stale = [hearing.is_stale(_join(number), Instant(at)) for number, at in zip(numbers, times, strict=True)]
    assert stale == [True, True, True, True, False, False]


def test_old_joins_that_come_late_one_by_one_stay_stale() -> None:
    hearing = Hearing(ONE, CONFIG)
    hearing.is_stale(_join(9), NOW)
    late = [Instant(NOW + number * lifetime_of(CONFIG)) for number in range(4)]
    assert all(hearing.is_stale(_join(8 - number), at) for number, at in enumerate(late))
    assert not hearing.is_stale(_join(10), late[-1])
    assert hearing.is_stale(_join(8), Instant(late[-1] + lifetime_of(CONFIG)))


def test_what_is_remembered_is_bounded_and_the_longest_silent_go_first() -> None:
    hearing = Hearing(ONE, replace(CONFIG, announce_ns=1000))
    limit = KNOWN_FACTOR * CONFIG.members_max
    for number in range(2 * limit):
        stranger = process(2, number + 1)
        hearing.hear(stranger, Instant(NOW + number))
        hearing.is_stale(_join(5, stranger), NOW)
    end = Instant(NOW + 2 * limit)
    known = hearing.heard(end)
    assert known == tuple(process(2, number + 1) for number in range(limit, 2 * limit))
    assert not hearing.is_stale(_join(1, process(2, 1)), NOW)
    assert hearing.is_stale(_join(1, known[0]), NOW)


CROWD = tuple(process(number) for number in range(1, MANY + 1))


def test_members_of_a_ring_of_many_are_heard_for_longer_and_nobody_else() -> None:
    hearing, stranger = Hearing(ONE, CONFIG), process(MANY + 1)
    hearing.installed(CROWD)
    for other in (TWO, stranger):
        hearing.hear(other, NOW)
    assert hearing.heard(LATER) == (TWO,)
    assert hearing.is_calm((TWO,)) and not hearing.is_calm((TWO, stranger))


def test_where_announcements_are_counted_a_ring_of_many_spares_none() -> None:
    hearing = Hearing(ONE, CONFIG, is_counted=True)
    hearing.installed(CROWD)
    hearing.hear(TWO, NOW)
    assert not hearing.is_heard(TWO, LATER) and not hearing.is_calm((TWO,))


def test_a_ring_of_few_is_never_calm() -> None:
    hearing = Hearing(ONE, CONFIG)
    hearing.installed((ONE, TWO))
    assert not hearing.is_calm((TWO,)) and not hearing.is_calm(())
