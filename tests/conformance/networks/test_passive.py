"""Passive and active-passive replication, predicate by predicate (sections 6 and 7). R-numbers:
docs/internals/networks.md."""

from __future__ import annotations

from collections import Counter

import pytest

from ordercast.model.notes import Evidence, NetworkState, Release
from ordercast.networks.config import Replication
from tests.unit.networks.stage import (
    HOLD,
    RING,
    THREE,
    Stage,
    alarms,
    burst,
    data_packet,
    releases,
    sends,
    token_networks,
    token_out,
)

PASSIVE, BOTH = Replication.PASSIVE, Replication.ACTIVE_PASSIVE


def test_r14_messages_and_tokens_take_the_networks_in_turn_each_by_its_own_pointer() -> None:
    stage = Stage(PASSIVE, 3)
    networks = [sends(stage.send(burst(seq)))[0][0] for seq in range(1, 8)]
    assert networks == [0, 1, 2, 0, 1, 2, 0]
    assert [token_networks(stage.send(token_out(number)))[0] for number in range(5, 9)] == [(0,), (1,), (2,), (0,)]
    assert sends(stage.send(burst(8))) == [(1, 8)]


def test_r14_marked_networks_are_passed_over() -> None:
    stage = Stage(PASSIVE, 3)
    stage.mark(1)
    assert [sends(stage.send(burst(seq)))[0][0] for seq in range(1, 6)] == [0, 2, 0, 2, 0]
    assert [token_networks(stage.send(token_out(number)))[0] for number in range(5, 8)] == [(0,), (2,), (0,)]


@pytest.mark.parametrize("count", [2, 3, 4])
def test_r14b_and_r30_batches_are_spread_evenly_and_each_packet_goes_out_once(count: int) -> None:
    stage, seq, sent = Stage(PASSIVE, count), 1, Counter[int]()
    for size in (1, 7, 2, 12, 5, 1, 1, 30):
        out = sends(stage.send(burst(seq, size)))
        assert sorted(number for _, number in out) == list(range(seq, seq + size))
        sent.update(network for network, _ in out)
        assert max(sent.values()) - min(sent[n] for n in range(count)) <= 1
        seq += size


def test_what_a_network_gets_of_a_batch_is_in_one_piece() -> None:
    stage = Stage(PASSIVE, 2)
    assert sends(stage.send(burst(1, 5))) == [(0, 1), (0, 2), (0, 3), (1, 4), (1, 5)]
    assert sends(stage.send(burst(6, 2))) == [(1, 6), (0, 7)]


def test_r8_a_token_goes_up_at_once_when_nothing_is_missing() -> None:
    stage = Stage(PASSIVE)
    assert releases(stage.token(4, 0, seq=3)) == [Release.DIRECT]
    assert releases(stage.token(8, 1, seq=5)) == [Release.DIRECT]
    assert stage.engine.asked == [(RING, 0), (RING, 3)]


def test_r6_and_r8_a_token_that_would_make_the_engine_ask_waits_until_the_gap_closes() -> None:
    stage = Stage(PASSIVE)
    stage.token(4, 0, seq=3)
    stage.engine.aru = 2  # packet 3 is still on its way on the slow network
    assert stage.token(8, 0, seq=5) == []
    stage.wait(HOLD // 3)
    stage.engine.aru = 3
    assert releases(stage.give(1, data_packet(3))) == [Release.GAP_CLOSED]
    assert stage.tokens_up == [4, 8]


def test_r6_and_r11_a_message_that_is_lost_costs_the_timer_and_no_more() -> None:
    stage = Stage(PASSIVE)
    stage.token(4, 0, seq=3)
    stage.engine.aru = 2
    stage.token(8, 0, seq=5)
    assert releases(stage.wait(HOLD - 1)) == []
    assert releases(stage.wait(1)) == [Release.TIMER]


def test_r12_the_timer_is_not_restarted_by_a_copy_that_was_sent_again() -> None:
    stage = Stage(PASSIVE)
    stage.token(4, 0, seq=3)
    stage.engine.aru = 2
    stage.token(8, 0, seq=5)
    stage.wait(HOLD // 2)
    stage.token(8, 1, seq=5)
    assert releases(stage.wait(HOLD - HOLD // 2)) == [Release.TIMER]
    stage.token(8, 0, seq=5)
    assert stage.tokens_up == [4, 8]  # R10


def test_data_and_token_in_one_look_are_judged_after_the_data() -> None:
    stage = Stage(PASSIVE)
    stage.token(4, 0, seq=3)
    assert releases(stage.give_all((0, data_packet(4)), (1, data_packet(5)))) == []
    assert stage.engine.asked[-1] == (RING, 0)


def test_a_vital_token_goes_out_on_every_network_and_takes_nobodys_turn() -> None:
    stage = Stage(PASSIVE, count=3)
    tokens = token_out(5), token_out(5, is_vital=True), token_out(6, is_vital=True), token_out(7)
    assert [token_networks(stage.send(token))[0] for token in tokens] == [(0,), (0, 1, 2), (0, 1, 2), (1,)]


def test_r22_a_member_that_is_not_heard_on_a_network_is_missed_by_its_messages() -> None:
    stage = Stage(PASSIVE, message_lag_max=180)
    for seq in range(1, 1000):
        stage.give(0, data_packet(seq))
        stage.give_all((0, data_packet(seq, THREE)), (1, data_packet(seq, THREE)))
        if alarms(stage.log):
            break
    alarm = alarms(stage.log)[0]
    assert (alarm.network, alarm.evidence, alarm.process) == (1, Evidence.MESSAGES, 2 << 48 | 1)
    assert 180 < seq <= 180 + 180 // 49 + 2  # the threshold, and what was forgiven meanwhile


def test_r22_on_an_idle_ring_the_token_monitor_finds_it() -> None:
    stage = Stage(PASSIVE)
    rounds = 0
    while not alarms(stage.log):
        rounds += 1
        stage.token(4 * rounds, 0)
    assert rounds == 11 and alarms(stage.log)[0].evidence is Evidence.TOKENS


def test_r23_losses_below_the_rate_of_forgiveness_never_mark() -> None:
    stage = Stage(PASSIVE, message_lag_max=180)
    for seq in range(1, 40_000, 2):
        stage.give(0, data_packet(seq))
        if seq % 120 != 1:
            stage.give(1, data_packet(seq + 1))
    assert not alarms(stage.log)


def test_r23_the_same_losses_mark_where_nothing_is_forgiven() -> None:
    stage = Stage(PASSIVE, message_lag_max=180, catch_up=1 << 40)
    for seq in range(1, 40_000, 2):
        stage.give(0, data_packet(seq))
        if seq % 120 != 1:
            stage.give(1, data_packet(seq + 1))
    assert alarms(stage.log)


def test_retransmissions_are_counted_for_who_transmits_them() -> None:
    stage = Stage(PASSIVE, message_lag_max=180)
    for seq in range(1, 200):
        packet = data_packet(seq, THREE, again=True)
        stage.give(0, packet)
    assert [alarm.process for alarm in alarms(stage.log)] == [THREE]


def test_runs_of_packets_are_counted_as_their_packets() -> None:
    stage = Stage(PASSIVE, message_lag_max=180)
    for first in range(1, 181, 60):
        stage.give_run(0, [data_packet(seq) for seq in range(first, first + 60)])
    assert not alarms(stage.log)
    stage.give_run(0, [data_packet(seq) for seq in range(181, 190)])
    assert len(alarms(stage.log)) == 1


def test_packets_of_several_members_in_one_read_are_counted_apart() -> None:
    stage = Stage(PASSIVE, message_lag_max=180)
    for first in range(1, 200, 2):
        stage.give_run(0, [data_packet(first), data_packet(first + 1, THREE)])
    assert not alarms(stage.log)


# Active-passive


def test_r15_and_r30_every_packet_goes_out_on_k_networks_in_a_row_which_slide() -> None:
    stage = Stage(BOTH, 3, copies=2)
    groups = [tuple(network for network, _ in sends(stage.send(burst(seq)))) for seq in range(1, 6)]
    assert groups == [(0, 1), (1, 2), (2, 0), (0, 1), (1, 2)]
    assert [token_networks(stage.send(token_out(number)))[0] for number in range(5, 8)] == [(0, 1), (1, 2), (2, 0)]


@pytest.mark.parametrize(("count", "copies"), [(3, 2), (4, 2), (4, 3)])
def test_r15_batches(count: int, copies: int) -> None:
    stage, seq, sent = Stage(BOTH, count, copies=copies), 1, Counter[int]()
    for size in (12, 1, 24, 7, 5):
        out = sends(stage.send(burst(seq, size)))
        assert Counter(number for _, number in out) == dict.fromkeys(range(seq, seq + size), copies)
        assert len(set(out)) == len(out)
        sent.update(network for network, _ in out)
        assert max(sent.values()) - min(sent.values()) <= copies
        seq += size


def test_r15_with_fewer_good_networks_than_copies_all_are_used() -> None:
    stage = Stage(BOTH, 4, copies=3)
    stage.mark(0)
    stage.mark(2)
    assert {network for network, _ in sends(stage.send(burst(1, 4)))} == {1, 3}


def test_r9_the_token_goes_up_when_k_copies_have_come() -> None:
    stage = Stage(BOTH, 3, copies=2)
    assert stage.token(4, 2) == []
    assert stage.token(4, 2) == []  # the same network again is no second copy
    assert releases(stage.token(4, 0)) == [Release.ENOUGH]


def test_r9_the_stricter_rule_waits_for_messages_too_and_the_looser_does_not() -> None:
    for is_strict in (True, False):
        stage = Stage(BOTH, 3, copies=2, is_strict=is_strict)
        stage.token(4, 0, 1, seq=3)
        stage.engine.aru = 2
        assert releases(stage.token(8, 1, 2, seq=5)) == ([] if is_strict else [Release.ENOUGH])


def test_the_timer_of_active_passive_blames_nobody() -> None:
    stage = Stage(BOTH, 3, copies=2, problem_threshold=1)
    stage.token(4, 0)
    assert releases(stage.wait(HOLD)) == [Release.TIMER]
    assert not alarms(stage.log)


def test_active_passive_finds_faults_by_counting() -> None:
    stage = Stage(BOTH, 3, copies=2)
    for number in range(1, 60):
        for network in {number % 3, (number + 1) % 3} - {2}:
            stage.token(4 * number, network)
        stage.wait(HOLD)
    assert [(alarm.network, alarm.evidence) for alarm in alarms(stage.log)] == [(2, Evidence.TOKENS)]
    assert stage.state(2) is NetworkState.FAULTY
