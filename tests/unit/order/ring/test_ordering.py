"""One token visit of member TWO on a ring of three. (Paper, Figures 4.1 and 4.4)"""

from __future__ import annotations

from dataclasses import replace

import pytest

from ordercast.model.effects import Broadcast, Burst
from ordercast.model.ids import NOBODY, Seq
from ordercast.model.service import Service
from ordercast.order.membership.past import Source
from ordercast.order.ring.config import RingConfig
from ordercast.order.ring.ordering import add_to_visit, held_back_by, updated_aru, visit, with_news
from ordercast.wire.codec import decode, encode
from ordercast.wire.header import RETRANSMITTED
from ordercast.wire.messages import Token
from ordercast.wire.run import PacketRun
from tests.packets import header_of, seq_of

from ..rings import CLUSTER, ONE, THREE, TWO, fill, make_packet, make_ring, make_run, make_token

CONFIG = RingConfig(window=8, visit_max=4, backlog_max=12, requests_max=5)
ACCELERATED = replace(CONFIG, accelerated=True, accelerated_window=2)


def _nothing(first: Seq, token_round: int, timestamp: int, limit: int) -> list[PacketRun]:
    return []


def _plenty(first: Seq, token_round: int, timestamp: int, limit: int) -> list[PacketRun]:
    return [make_packet(first + offset, originator=TWO) for offset in range(limit)]


def _few(count: int) -> Source:
    return lambda first, token_round, timestamp, limit: _plenty(first, token_round, timestamp, min(count, limit))


def _seqs(bursts: list[Burst]) -> list[int]:
    return [seq_of(packet) for packet in Broadcast(bursts).packets]


# The aru rule


def test_who_has_less_lowers_the_aru_and_signs_it() -> None:
    assert updated_aru(make_token(seq=10, aru=9, aru_id=ONE), Seq(5), Seq(10), TWO) == (5, TWO)
    assert updated_aru(make_token(seq=10, aru=10), Seq(5), Seq(10), TWO) == (5, TWO)


def test_who_has_more_leaves_anothers_aru_alone() -> None:
    assert updated_aru(make_token(seq=10, aru=5, aru_id=ONE), Seq(9), Seq(10), TWO) == (5, ONE)
    assert updated_aru(make_token(seq=10, aru=5, aru_id=ONE), Seq(10), Seq(10), TWO) == (5, ONE)


def test_who_lowered_the_aru_raises_it_again() -> None:
    assert updated_aru(make_token(seq=10, aru=5, aru_id=TWO), Seq(8), Seq(10), TWO) == (8, TWO)
    assert updated_aru(make_token(seq=10, aru=5, aru_id=TWO), Seq(10), Seq(10), TWO) == (10, NOBODY)


def test_an_unsigned_aru_moves_with_seq() -> None:
    assert updated_aru(make_token(seq=10, aru=10), Seq(13), Seq(13), TWO) == (13, NOBODY)


def test_equal_to_anothers_aru_is_not_below_it() -> None:
    assert updated_aru(make_token(seq=10, aru=5, aru_id=ONE), Seq(5), Seq(10), TWO) == (5, ONE)


# New packets


def test_new_packets_take_the_next_numbers_and_are_received_at_once() -> None:
    ring = make_ring()
    fill(ring, 1, 2, 3)
    done = visit(ring, make_token(seq=3, aru=3), 2, _few(2), CONFIG)
    assert _seqs(done.before) == [4, 5]
    assert (done.token.seq, done.token.aru, done.token.aru_id) == (5, 5, NOBODY)
    assert (done.sent, ring.store.aru) == (2, 5)
    assert not done.after


def test_every_new_packet_ticks_the_clock_of_the_ring() -> None:
    done = visit(make_ring(), make_token(timestamp=100), 3, _few(3), CONFIG)
    assert done.token.timestamp == 103


def test_the_hop_is_counted_by_all_and_the_round_by_the_representative() -> None:
    token = make_token(token_seq=7, round_=5)
    rounds = {me: visit(make_ring(me), token, 0, _nothing, CONFIG).token for me in (ONE, TWO, THREE)}
    assert [rounds[me].round for me in (ONE, TWO, THREE)] == [6, 5, 5]
    assert {forwarded.token_seq for forwarded in rounds.values()} == {8}
    assert [rounds[me].sender for me in (ONE, TWO, THREE)] == [ONE, TWO, THREE]


def test_a_visit_sends_no_more_than_it_may() -> None:
    assert visit(make_ring(), make_token(), 99, _plenty, CONFIG).sent == 4
    ring = make_ring()
    fill(ring, *range(1, 12))
    assert visit(ring, make_token(seq=11, aru=11), 99, _plenty, CONFIG).sent == 1


def test_the_rotation_is_measured_from_the_last_receipt() -> None:
    ring = make_ring()
    visit(ring, make_token(), 99, _plenty, CONFIG)
    fill(ring, 5, 6, 7, 8, 9, 10)
    assert (ring.memory.received_seq, ring.memory.forwarded_seq) == (0, 4)
    assert visit(ring, make_token(seq=10, aru=10), 99, _plenty, CONFIG).sent == 2


def test_no_more_is_told_to_wait_than_a_visit_may_send() -> None:
    ring = make_ring()
    token = visit(ring, make_token(), 99, _nothing, CONFIG).token
    assert token.waiting == CONFIG.visit_max
    add_to_visit(ring, token, 99, _nothing, CONFIG, 0)
    assert token.waiting == CONFIG.visit_max


# Requests


def test_requests_that_can_be_answered_are_answered_and_removed() -> None:
    ring = make_ring()
    fill(ring, 1, 2, 4)
    ring.memory.received_seq = Seq(5)
    done = visit(ring, make_token(seq=5, aru=1, aru_id=ONE, requests=(2, 3, 4)), 0, _nothing, CONFIG)
    assert _seqs(done.before) == [2, 4]
    for packet in Broadcast(done.before).packets:
        header = header_of(packet)
        assert (header.flags & RETRANSMITTED, header.transmitter, header.place) == (RETRANSMITTED, TWO, 0)
    assert done.token.requests == (3, 5)
    assert (done.retransmitted, done.requested) == (2, 2)


def test_answers_go_before_new_packets_and_leave_me_my_share() -> None:
    ring = make_ring()
    fill(ring, 1, 2, 3)
    done = visit(ring, make_token(seq=3, aru=1, aru_id=ONE, requests=(2, 3)), 99, _plenty, CONFIG)
    assert _seqs(done.before) == [2, 3, 4, 5, 6, 7]


def test_answers_count_against_the_rotation() -> None:
    ring = make_ring()
    fill(ring, *range(1, 8))
    done = visit(ring, make_token(seq=7, aru=1, aru_id=ONE, requests=(2, 3, 4)), 99, _plenty, CONFIG)
    assert _seqs(done.before) == [2, 3, 4, 8, 9]  # window 8 + visit 4 - sent 7 - answered 3


def test_no_more_than_one_visit_is_answered_and_the_rest_stays_asked_for() -> None:
    ring = make_ring()
    fill(ring, *range(1, 7))
    done = visit(ring, make_token(seq=6, aru=1, aru_id=ONE, requests=(2, 3, 4, 5, 6)), 0, _nothing, CONFIG)
    assert _seqs(done.before) == [2, 3, 4, 5]
    assert done.token.requests == (6,)


def test_what_i_miss_is_asked_for_once_ascending_and_up_to_the_limit() -> None:
    ring = make_ring()
    fill(ring, 1, 3)
    ring.memory.received_seq = Seq(9)
    done = visit(ring, make_token(seq=9, aru=3, requests=(2, 8)), 0, _nothing, CONFIG)
    assert done.token.requests == (2, 4, 5, 6, 7)
    assert (done.token.aru, done.token.aru_id) == (1, TWO)


@pytest.mark.parametrize("config", [CONFIG, ACCELERATED], ids=["plain", "accelerated"])
def test_what_was_numbered_since_the_last_visit_is_asked_for_one_round_later(config: RingConfig) -> None:
    ring = make_ring()
    first = visit(ring, make_token(seq=3, aru=3), 0, _nothing, config)
    assert first.token.requests == ()
    assert (first.token.aru, first.token.aru_id) == (0, TWO)
    second = visit(ring, make_token(seq=5, aru=0, aru_id=TWO), 0, _nothing, config)
    assert second.token.requests == (1, 2, 3)


def test_what_others_ask_for_is_passed_on_as_it_came() -> None:
    asked = (9, 8, 7, 6, 5, 4)
    assert len(asked) > CONFIG.requests_max
    assert visit(make_ring(), make_token(seq=9, requests=asked), 0, _nothing, CONFIG).token.requests == asked


def test_a_request_for_what_everybody_has_is_dropped() -> None:
    ring = make_ring()
    fill(ring, 1, 2, 3)
    ring.store.discard(Seq(2))
    done = visit(ring, make_token(seq=3, aru=0, aru_id=ONE, requests=(1,)), 0, _nothing, CONFIG)
    assert not done.before and done.token.requests == ()


def test_retransmissions_of_the_last_rotation_are_counted_on_the_token() -> None:
    ring = make_ring()
    fill(ring, 1, 2, 3)
    asked = make_token(seq=3, aru=1, aru_id=ONE, requests=(2, 3), retransmitted=3)
    assert visit(ring, asked, 0, _nothing, CONFIG).token.retransmitted == 5
    assert visit(ring, make_token(seq=3, aru=3, retransmitted=5), 0, _nothing, CONFIG).token.retransmitted == 3
    assert visit(ring, make_token(seq=3, aru=3, retransmitted=3), 0, _nothing, CONFIG).token.retransmitted == 3


def test_a_forwarded_token_survives_the_wire() -> None:
    ring = make_ring()
    fill(ring, 1, 3)
    token = visit(ring, make_token(seq=9, aru=3, requests=(2, 8)), 1, _few(1), CONFIG).token
    assert decode(encode(CLUSTER, token), CLUSTER) == token


# What is safe, what is stuck, what is quiet


def test_safe_is_what_the_aru_was_on_two_successive_visits() -> None:
    ring = make_ring()
    fill(ring, 1, 2, 3)
    visit(ring, make_token(seq=3, aru=2, aru_id=ONE), 0, _nothing, CONFIG)
    assert ring.memory.safe_seq == 0
    visit(ring, make_token(seq=3, aru=3), 0, _nothing, CONFIG)
    assert ring.memory.safe_seq == 2
    visit(ring, make_token(seq=3, aru=1, aru_id=THREE), 0, _nothing, CONFIG)
    assert ring.memory.safe_seq == 2


def test_an_aru_that_was_forged_under_my_name_goes_round_once_more_in_a_network_of_rings() -> None:
    """A member that lacks packet 2 does not see that the aru is above what it has while it is forged below that."""
    ring = make_ring()
    fill(ring, 1, 2)
    visit(ring, make_token(seq=4, aru=4), 0, _nothing, CONFIG, is_attached=True)
    fill(ring, 3)
    forged = visit(ring, make_token(seq=4, aru=1, aru_id=TWO), 0, _nothing, CONFIG, is_attached=True)
    assert (forged.token.aru, forged.token.aru_id, ring.memory.safe_seq) == (1, TWO, 1)
    back = visit(ring, make_token(seq=4, aru=1, aru_id=TWO), 0, _nothing, CONFIG, is_attached=True)
    assert (back.token.aru, back.token.aru_id, ring.memory.safe_seq) == (3, TWO, 1)


def test_an_aru_that_was_forged_upwards_under_my_name_is_taken_back() -> None:
    ring = make_ring()
    fill(ring, 1, 2)
    visit(ring, make_token(seq=4, aru=4), 0, _nothing, CONFIG)
    fill(ring, 3)
    done = visit(ring, make_token(seq=4, aru=4, aru_id=TWO), 0, _nothing, CONFIG)
    assert (done.token.aru, done.token.aru_id, ring.memory.safe_seq) == (2, TWO, 2)


def test_a_signed_aru_that_stands_still_is_blamed_once_it_did_so_too_often() -> None:
    ring = make_ring()
    fill(ring, 1, 2, 3)
    stuck = make_token(seq=3, aru=1, aru_id=THREE)
    blamed = []
    for _ in range(4):
        blamed.append(held_back_by(ring, stuck, 2))
        visit(ring, stuck, 0, _nothing, CONFIG)
    assert blamed == [None, None, None, THREE]
    assert held_back_by(ring, make_token(seq=3, aru=2, aru_id=THREE), 2) is None


def test_who_lowered_the_aru_and_raises_it_on_every_visit_is_never_stuck() -> None:
    ring = make_ring()
    for seq in range(1, 6):
        fill(ring, seq)
        behind = make_token(seq=seq + 1, aru=seq - 1, aru_id=TWO)
        assert held_back_by(ring, behind, 0) is None
        visit(ring, behind, 0, _nothing, CONFIG)


def test_an_unsigned_aru_is_never_stuck() -> None:
    ring = make_ring()
    assert [held_back_by(ring, make_token(), 0) for _ in range(3)] == [None] * 3


def test_quiet_visits_are_counted_and_any_packet_ends_them() -> None:
    ring = make_ring()
    for expected in (1, 2):
        visit(ring, make_token(), 0, _nothing, CONFIG)
        assert ring.memory.quiet == expected
    visit(ring, make_token(), 1, _few(1), CONFIG)
    assert ring.memory.quiet == 0


@pytest.mark.parametrize("asked", [2, 5], ids=["answered", "passed on"])
def test_a_visit_with_requests_is_not_quiet_and_the_token_does_not_rest_after_it(asked: int) -> None:
    ring = make_ring()
    fill(ring, 1, 2, 3)
    visit(ring, make_token(seq=3, aru=3), 0, _nothing, CONFIG)
    visit(ring, make_token(seq=3, aru=3, requests=(asked,)), 0, _nothing, CONFIG)
    assert (ring.memory.quiet, ring.memory.may_rest) == (0, False)


# The accelerated ring


def test_the_last_packets_follow_the_token() -> None:
    done = visit(make_ring(), make_token(), 99, _plenty, ACCELERATED)
    assert _seqs(done.before) == [1, 2]
    assert _seqs(done.after) == [3, 4]


def test_a_run_is_cut_in_two_where_the_token_leaves() -> None:
    ring = make_ring()
    fill(ring, 1)
    run = make_run(2, "2", "3", "4", originator=TWO)
    done = visit(ring, make_token(seq=1, aru=1, requests=(1,)), 9, lambda *_: [run], ACCELERATED)
    assert (_seqs(done.before), _seqs(done.after)) == ([1, 2], [3, 4])
    assert (len(done.before), len(done.after)) == (2, 1)
    assert (ring.store.aru, done.token.seq, done.token.timestamp) == (4, 4, 103)


def test_a_whole_run_goes_before_the_token_or_after_it() -> None:
    runs = [make_run(1, "1", "2", originator=TWO), make_run(3, "3", "4", originator=TWO, service=Service.SAFE)]
    done = visit(make_ring(), make_token(), 9, lambda *_: runs, ACCELERATED)
    assert (done.before, done.after) == ([runs[0].burst()], [runs[1].burst()])
    plain = visit(make_ring(), make_token(), 9, lambda *_: runs, CONFIG)
    assert (plain.before, plain.after) == ([run.burst() for run in runs], [])


def test_own_runs_are_kept_behind_a_hole() -> None:
    ring = make_ring()
    fill(ring, 1, 3)
    run = make_run(4, "4", "5", originator=TWO)
    done = visit(ring, make_token(seq=3, aru=3), 9, lambda *_: [run], CONFIG)
    assert (done.token.seq, done.token.aru, done.token.aru_id) == (5, 1, TWO)
    assert [seq for seq, _ in ring.store.held_after(Seq(0))] == [1, 3, 4, 5]
    fill(ring, 2)
    assert ring.store.aru == 5


def test_any_packet_of_a_run_can_be_sent_again() -> None:
    ring = make_ring()
    run = make_run(1, "a", "b", "c")
    ring.store.extend(run)
    done = visit(ring, make_token(seq=3, aru=1, aru_id=ONE, requests=(2, 3)), 0, _nothing, CONFIG)
    assert _seqs(done.before) == [2, 3]
    assert [packet[-1:] for packet in Broadcast(done.before).packets] == [b"b", b"c"]


def test_few_packets_all_follow_the_token() -> None:
    done = visit(make_ring(), make_token(), 1, _few(1), ACCELERATED)
    assert (_seqs(done.before), _seqs(done.after)) == ([], [1])


# The sums over the members


def _rotations(token: Token, wishes: dict[int, tuple[int, bool]], count: int) -> list[Token]:
    """What the representative forwards in successive rotations of a ring of three, whose members want to send so many
    packets and have applications that are behind, or not."""
    rings = {me: make_ring(me) for me in (ONE, TWO, THREE)}
    seen: list[Token] = []
    for _ in range(count):
        for me, ring in rings.items():
            wanted, is_behind = wishes.get(me, (0, False))
            token = visit(ring, token, wanted, _nothing, CONFIG, is_behind=is_behind).token
            if me == ONE:
                seen.append(token)
    return seen


def test_the_sums_are_complete_at_the_representative_from_the_second_rotation_on() -> None:
    seen = _rotations(make_token(budget=0), {ONE: (1, False), TWO: (3, True), THREE: (4, True)}, 3)
    assert [(token.waiting, token.behind, token.budget) for token in seen] == [(1, 0, 8), (8, 2, 0), (8, 2, 0)]


@pytest.mark.parametrize("name", ["behind", "waiting", "retransmitted"])
@pytest.mark.parametrize("is_counted", [False, True])
def test_a_sum_that_is_nobodys_is_gone_after_two_rotations(name: str, is_counted: bool) -> None:
    """One token with `behind` above zero would stop all senders for ever, if the sums only ever changed."""
    forged = make_token()
    setattr(forged, name, 0xFFFF)
    if is_counted:
        forged.counted = (0xFFFF,) * 3
    second, third = _rotations(forged, {TWO: (2, False)}, 3)[1:]
    assert (second.retransmitted, second.waiting, second.behind, second.budget) == (0, 2, 0, 8)
    assert third.counted == (0, 0, 0)


def test_who_rests_with_the_token_renews_its_part_of_both_sums() -> None:
    ring = make_ring(ONE)
    token = visit(ring, make_token(), 3, _nothing, CONFIG).token
    add_to_visit(ring, token, 1, _nothing, CONFIG, 0)
    assert (token.waiting, token.counted) == (1, (0, 1, 0))
    told = with_news(ring, token, is_behind=True)
    assert (told.behind, told.budget, told.counted) == (1, 0, (0, 1, 1))
    assert with_news(ring, told, is_behind=False).counted == (0, 1, 0)


def test_a_token_that_rested_without_news_goes_on_as_it_is() -> None:
    ring = make_ring()
    token = visit(ring, make_token(behind=1), 0, _nothing, CONFIG).token
    assert with_news(ring, token, is_behind=False) is token


def test_who_has_caught_up_leaves_the_budget_alone() -> None:
    ring = make_ring()
    ring.memory.was_behind = True
    assert with_news(ring, make_token(behind=1, budget=7), is_behind=False).budget == 7
