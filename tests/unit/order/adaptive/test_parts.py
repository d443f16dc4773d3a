"""Streams, repair, policy, the lookout: each by itself."""

from __future__ import annotations

import pytest

from ordercast.model.errors import WireError
from ordercast.model.ids import SECOND, Instant
from ordercast.order.adaptive.codec import Wish
from ordercast.order.adaptive.config import AdaptiveConfig
from ordercast.order.adaptive.flow import burst_left, share_left
from ordercast.order.adaptive.lookout import Lookout
from ordercast.order.adaptive.marks import Voice
from ordercast.order.adaptive.policy import Policy, difference, weights_from
from ordercast.order.adaptive.repair import Repair
from ordercast.order.adaptive.stream import MemberStream

from ..rings import ONE, THREE, TWO
from .test_merge import advanced, make_merge, mark, packet

NOW = Instant(10 * SECOND)
MS = 1_000_000


def test_a_stream_orders_by_number_and_knows_what_is_missing() -> None:
    stream = MemberStream()
    assert stream.add(packet(14, 4, ONE), 4) == (True, [])
    assert stream.missing(9) == [(1, 3)]
    first, third = packet(1, 1, ONE), packet(13, 3, ONE)
    assert stream.add(first, 1) == (True, [first])
    assert stream.missing(9) == [(2, 3)] and stream.add(third, 3) == (True, [])
    assert not stream.add(third, 3)[0] and stream.missing(9) == [(2, 2)]
    new, ordered = stream.add(packet(7, 2, ONE), 2)
    assert new and [run.seq for run in ordered] == [7, 13, 14] and stream.missing(9) == []
    assert stream.count == 4 and stream.packet(3) == third.packet(third.seq)
    stream.discard(13)
    assert stream.count == 1 and stream.packet(3) is None and stream.has(3)
    stream.check_invariants()
    with pytest.raises(WireError, match="earlier place"):
        stream.add(packet(8, 5, ONE), 5)
    assert stream.missing(9) == [], "what was refused was not heard of"


def test_what_is_missing_is_asked_for_again_and_again_ever_later() -> None:
    merge, repair = make_merge(), Repair(MS, 4 * MS, 100)
    merge.take(packet(8, 2, ONE), 2)
    repair.review(merge, 0, NOW)
    assert repair.deadline() == NOW + MS and repair.due_wishes(merge, NOW) == []
    times = []
    now = NOW
    for _ in range(4):
        deadline = repair.deadline()
        assert deadline is not None
        times.append((deadline - now) // MS)
        now = deadline
        assert Wish(0, 1, 1) in repair.due_wishes(merge, now)
    assert times == [1, 2, 4, 4]
    merge.take(packet(1, 1, ONE), 1)
    repair.review(merge, 0, now)
    wishes = repair.due_wishes(merge, Instant(now + 4 * MS))
    assert wishes == [Wish(2, 0, 0)]  # nothing is missing any more, but THREE's word is waited for


def test_a_member_that_says_nothing_for_long_blocks_the_order_until_it_speaks() -> None:
    merge, repair = make_merge(), Repair(MS, 4 * MS, 100)
    merge.take(packet(1, 1, ONE), 1)
    merge.give_up(13)
    merge.hear(mark(2, 1, 0, 13))
    repair.review(merge, 0, NOW)
    assert not repair.is_blocked(merge, Instant(NOW + 9 * MS))  # nobody else has a place below the packet's
    merge.take(packet(8, 2, ONE), 2)
    merge.take(packet(17, 1, THREE), 1)
    repair.review(merge, 0, NOW)
    assert not repair.is_blocked(merge, Instant(NOW + 3 * MS)) and repair.is_blocked(merge, Instant(NOW + 4 * MS))
    merge.hear(mark(0, 1, 2, 25))
    assert not repair.is_blocked(merge, Instant(NOW + 4 * MS))


def test_acknowledgements_that_are_waited_for_are_asked_for() -> None:
    merge, repair = make_merge(), Repair(MS, 4 * MS, 100)
    merge.take(packet(5, 1, THREE, safe=True), 1)
    merge.give_up(13)
    merge.hear(mark(0, 1, 0, 13, 12))
    merge.hear(mark(2, 1, 1, 13))
    assert advanced(merge) == [] and merge.asked_safe == 5
    repair.review(merge, merge.asked_safe, NOW)
    assert repair.due_wishes(merge, Instant(NOW + MS)) == [Wish(2, 1, 0)]  # THREE has not said that it knows place 5
    merge.hear(mark(2, 2, 1, 13, 12))
    repair.review(merge, merge.asked_safe, Instant(NOW + MS))
    assert repair.deadline() is None


def test_where_acknowledgements_are_gathered_the_one_who_tells_all_is_asked() -> None:
    merge, repair = make_merge(THREE), Repair(MS, 4 * MS, 100)
    merge.teller = 0
    merge.take(packet(3, 1, TWO, safe=True), 1)
    merge.give_up(13)
    for member, last in ((0, 0), (1, 1)):
        merge.hear(mark(member, 1, last, 13))
    assert advanced(merge) == [] and merge.asked_safe == 3
    repair.review(merge, merge.asked_safe, NOW)
    assert repair.due_wishes(merge, Instant(NOW + MS)) == [Wish(0, 1, 0)]


def test_what_all_acknowledge_at_once_is_named_when_that_takes_longer_than_usual() -> None:
    voice = Voice(AdaptiveConfig(), SECOND, 100, 3)
    voice.sent(1, NOW)
    assert voice.close_at == NOW + voice.config.close_ns
    voice.sent(2, NOW, patience=7 * MS)
    assert voice.close_at == NOW + 7 * MS


def test_acknowledgements_in_time_fall_between_two_packets_of_a_sender_with_a_rhythm() -> None:
    """Else all would acknowledge just when its next packet comes, where whole periods pass until then."""
    merge, period, at = make_merge(THREE), 10 * MS, NOW
    voice = Voice(AdaptiveConfig(), SECOND, 1000, 3, said_at=NOW, is_due=False)
    for _ in range(100):
        at = Instant(at + period)
        voice.came(1, False, at)
    merge.take(packet(1, 1, ONE), 1)
    voice.look(merge, at, tells=False)
    assert voice.ack_at == at + voice.config.ack_ns - voice.beat_ns // 2
    assert period // 4 < (voice.ack_at - at) % period < 3 * period // 4


def test_a_third_answers_in_its_turn_unless_somebody_was_faster() -> None:
    merge, repair = make_merge(THREE), Repair(MS, 4 * MS, 100)
    merge.take(packet(1, 1, ONE), 1)
    merge.take(packet(2, 2, ONE), 2)
    repair.asked(1, Wish(0, 1, 3), merge, NOW)
    assert repair.deadline() == NOW + 2 * MS
    repair.answered(0, 1, 1, NOW, is_third=False)
    repair.asked(1, Wish(0, 1, 1), merge, NOW)  # a copy of what was asked
    assert repair.due_answers(Instant(NOW + MS)) == ([], [])
    assert repair.due_answers(Instant(NOW + 2 * MS)) == ([(0, 2)], [])
    repair.asked(1, Wish(0, 4, 0), merge, NOW)
    repair.spoken(0, 4, is_third=False)
    assert repair.pending
    repair.spoken(0, 5, is_third=False)
    assert not repair.pending
    repair.asked(1, Wish(0, 4, 0), merge, NOW)  # the same once more: it does not hear the originator
    repair.spoken(0, 5, is_third=False)
    assert repair.pending
    repair.spoken(0, 5, is_third=True)
    assert not repair.pending


def test_weights_give_everybody_a_slot_and_the_rest_by_demand() -> None:
    assert weights_from((0, 0, 0), 16) == (1, 1, 1)
    assert weights_from((10, 10, 20), 16) == (4, 4, 8)
    assert weights_from((1, 0, 0), 16) == (14, 1, 1)
    assert difference((1, 1), (1, 1)) == 0 and difference((1, 3), (3, 1)) == 0.5


def test_saturated_members_do_not_confirm_weights_that_starve_one_of_them() -> None:
    config = AdaptiveConfig(period=16)
    for policy, is_fair in (("demand", True), ("window", False)):
        rule = Policy(AdaptiveConfig(policy=policy, period=config.period))
        rule.begin((ONE, TWO))
        rule.sent(ONE, 150, Instant(0))
        rule.sent(TWO, 10, Instant(0))
        wanted = rule.wanted((ONE, TWO), (10_000, 10_000), (15, 1), NOW)
        assert (wanted == (8, 8)) is is_fair


def test_who_waits_wants_as_much_as_anybody_else_who_waits_whatever_was_sent_before() -> None:
    """A queue holds little beside what a busy member sent in a second."""
    rule = Policy(AdaptiveConfig(period=16))
    rule.begin((ONE, TWO, THREE))
    rule.sent(ONE, 10_000, Instant(0))
    assert rule.wanted((ONE, TWO, THREE), (40, 40, 0), (14, 1, 1), NOW) == (8, 7, 1)


def test_the_window_of_the_paper_has_the_last_packets_of_all_and_a_little_for_everybody() -> None:
    rule = Policy(AdaptiveConfig(policy="window", period=16))
    rule.begin((ONE, TWO))
    assert rule.wanted((ONE, TWO), (0, 0), (8, 8), NOW) is None
    rule.sent(ONE, 100, Instant(0))  # the window holds no more
    assert rule.wanted((ONE, TWO), (0, 0), (8, 8), NOW) == (15, 1)  # 101 to 1 of what is to share out


def test_distributions_that_follow_each_other_come_ever_more_slowly() -> None:
    rule = Policy(AdaptiveConfig(period=16))
    rule.begin((ONE, TWO))
    rule.sent(ONE, 100, Instant(0))
    times, now = [], NOW
    weights: tuple[int, ...] = (1, 1)
    for _ in range(5):
        began = now
        while (wanted := rule.wanted((ONE, TWO), (0, 0), weights, now)) is None:
            now = Instant(now + 50 * MS)
        times.append((now - began) // MS)
        weights = tuple(reversed(wanted)) if len(set(wanted)) > 1 else wanted
    assert times == [0, 200, 400, 800, 1000]  # in a quiet second it is half as long again


def test_who_is_not_heard_is_silent_and_who_stands_below_all_others_is_deaf() -> None:
    lookout = Lookout(3, 1, NOW)
    later = Instant(NOW + 60 * MS)
    assert lookout.silent(later, 60 * MS) == [0, 2]
    assert not lookout.hear(0, Instant(NOW + 20 * MS), 60 * MS) and lookout.hear(2, later, 60 * MS)
    assert lookout.silent(later, 60 * MS) == []
    assert lookout.deaf((5, 9, 9), later, 50 * MS) is None
    assert lookout.deaf((5, 9, 9), Instant(later + 50 * MS), 50 * MS) == 0
    lookout.forgive(Instant(later + 50 * MS))
    assert lookout.deaf((5, 9, 9), Instant(later + 50 * MS), 50 * MS) is None


def test_it_is_looked_when_somebody_will_be_doubted_or_silent() -> None:
    lookout = Lookout(3, 1, NOW)
    assert lookout.due(NOW, 80 * MS) == NOW + 20 * MS  # and in any case now and then
    lookout.hear(0, Instant(NOW + 30 * MS), 80 * MS)
    assert lookout.due(Instant(NOW + 30 * MS), 80 * MS) == NOW + 40 * MS  # then 2 is doubted
    assert lookout.due(Instant(NOW + 40 * MS), 80 * MS) == NOW + 50 * MS  # and looked for more often
    assert lookout.due(Instant(NOW + 75 * MS), 80 * MS) == NOW + 80 * MS


def test_nobody_has_more_under_way_than_its_share() -> None:
    merge = make_merge(ONE)
    for number in range(1, 17):
        assert share_left(merge, 40, 100) == 17 - number
        merge.sent(packet(merge.next_place(), number, ONE))
    assert share_left(merge, 40, 100) == 0 and share_left(merge, 60, 100) == 4
    merge.hear(mark(1, 1, 0, 400))
    merge.hear(mark(2, 1, 0, 400))
    merge.hear_aru(1, 100)
    merge.hear_aru(2, 100)
    merge.advance([])
    merge.discard()
    assert share_left(merge, 40, 100) == 16


def test_short_bursts_wait_where_much_is_on_its_way() -> None:
    merge = make_merge(ONE)
    assert burst_left(merge, 60, 100, 1) == 20  # nothing is on its way
    for number in range(1, 7):
        merge.sent(packet(merge.next_place(), number, ONE))
    assert burst_left(merge, 60, 100, 1) == burst_left(merge, 60, 100, 14) == 14
    for number in range(7, 17):
        merge.sent(packet(merge.next_place(), number, ONE))
    assert burst_left(merge, 60, 100, 1) == 0 and burst_left(merge, 60, 100, 4) == 4
    for number in range(17, 20):
        merge.sent(packet(merge.next_place(), number, ONE))
    assert (share_left(merge, 60, 100), burst_left(merge, 60, 100, 50)) == (1, 0)  # less than a slot is left
