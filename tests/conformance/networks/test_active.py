"""Active replication, predicate by predicate of the paper (sections 3 and 5). R-numbers: docs/internals/networks.md."""

from __future__ import annotations

from itertools import combinations

import pytest

from ordercast.model.effects import Broadcast, SendTo
from ordercast.model.ids import ConfigurationId, Instant
from ordercast.model.notes import Evidence, NetworkState, Release
from ordercast.networks.config import Replication
from tests.packets import seq_of
from tests.unit.networks.stage import (
    HOLD,
    ME,
    THREE,
    TWO,
    Stage,
    alarms,
    announcement,
    burst,
    data_packet,
    join,
    releases,
    sends,
    token_networks,
    token_out,
    token_packet,
    turns,
)

# Two packets on two networks: which of (1x, 2x) among (1y, 2y) come when. The six scenarios of Figure 1.
SCENARIOS = [
    tuple((0, xs.pop(0)) if slot in places else (1, ys.pop(0)) for slot in range(4))
    for places in combinations(range(4), 2)
    for xs, ys in [([1, 2], [1, 2])]
]


def test_there_are_six_scenarios() -> None:
    assert len(set(SCENARIOS)) == 6


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_r2_a_message_goes_up_at_its_first_copy_whatever_the_order(scenario: tuple[tuple[int, int], ...]) -> None:
    stage, first = Stage(), set()
    for network, seq in scenario:
        before = len(stage.up)
        stage.give(network, data_packet(seq))
        assert seq_of(stage.up[before]) == seq
        first.add(seq)
    assert len(stage.up) == 4  # the engine's filter makes one of each two


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_r7_and_r10_a_token_behind_a_message_goes_up_once_when_all_have_brought_it(
    scenario: tuple[tuple[int, int], ...],
) -> None:
    stage = Stage()
    brought = set()
    for network, what in scenario:
        if what == 1:
            stage.give(network, data_packet(1))
        else:
            brought.add(network)
            stage.token(4, network, seq=1)
            assert stage.tokens_up == ([4] if brought == {0, 1} else [])
    assert stage.tokens_up == [4]


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_r12_the_next_message_overtakes_the_token_on_another_network(scenario: tuple[tuple[int, int], ...]) -> None:
    stage = Stage()
    for network, what in scenario:
        stage.token(4, network) if what == 1 else stage.give(network, data_packet(2))
    assert stage.tokens_up == [4]


def test_r11_without_the_last_copy_it_goes_up_when_the_timer_ends_and_late_copies_are_dropped() -> None:
    stage = Stage()
    stage.token(4, 0)
    assert stage.wait(HOLD - 1) == [] and stage.tokens_up == []
    assert releases(stage.wait(1)) == [Release.TIMER]
    stage.token(4, 1)
    stage.token(4, 0)
    assert stage.tokens_up == [4]


def test_r12_a_copy_does_not_restart_the_timer() -> None:
    stage = Stage(count=3)
    stage.token(4, 0)
    stage.wait(HOLD // 2)
    stage.token(4, 1)
    stage.token(4, 0)  # sent again by the predecessor
    assert releases(stage.wait(HOLD - HOLD // 2)) == [Release.TIMER]


def test_r7_a_marked_network_is_not_waited_for() -> None:
    stage = Stage(count=3)
    stage.mark(1)
    assert releases(stage.token(4, 0, 2)) == [Release.ALL]


def test_an_older_token_is_dropped_and_one_of_an_older_ring_is_left_to_the_engine() -> None:
    stage = Stage()
    stage.token(8, 0, 1)
    stage.token(4, 0, 1)
    assert stage.tokens_up == [8]
    stage.token(9, 0, ring=ConfigurationId(4, ME))
    assert stage.tokens_up == [8, 9]


def test_token_identity_an_idle_ring_has_new_tokens_with_the_same_seq() -> None:
    stage = Stage()
    for number in range(4, 40, 4):
        stage.token(number, 0, 1, seq=7)
    assert stage.tokens_up == list(range(4, 40, 4))


def test_r13_every_packet_goes_out_on_every_good_network_in_rising_order() -> None:
    stage = Stage(count=3)
    assert sends(stage.send(burst(1, 2))) == [(0, 1), (0, 2), (1, 1), (1, 2), (2, 1), (2, 2)]
    assert token_networks(stage.send(token_out())) == [(0, 1, 2)]
    stage.mark(1)
    assert {network for network, _ in sends(stage.send(burst(3)))} == {0, 2}
    assert token_networks(stage.send(token_out())) == [(0, 2)]


def test_r17_what_comes_on_a_marked_network_goes_up() -> None:
    stage = Stage()
    stage.mark(1)
    stage.give(1, data_packet(1), announcement(), join())
    assert len(stage.up) == 3


def test_r20_and_r18_the_threshold_marks_once_with_one_alarm() -> None:
    stage = Stage(problem_threshold=3)
    for round_ in range(1, 6):
        effects = stage.token(4 * round_, 0)
        effects += stage.wait(HOLD)
        assert [alarm.network for alarm in alarms(effects)] == ([1] if round_ == 3 else [])
    assert stage.state(1) is NetworkState.FAULTY
    assert [alarm.evidence for alarm in alarms(stage.log)] == [Evidence.TOKEN_TIMER]


def test_after_the_mark_tokens_do_not_wait() -> None:
    stage = Stage(problem_threshold=1)
    stage.token(4, 0)
    stage.wait(HOLD)
    assert releases(stage.token(8, 0)) == [Release.ALL]


def test_r21_the_counter_decays_with_time_and_with_tokens_that_came() -> None:
    stage = Stage(problem_threshold=3, decay_ns=10 * HOLD, decay_tokens=2)
    for round_ in range(1, 9):
        stage.token(4 * round_, 0)
        stage.wait(11 * HOLD)
    assert stage.state(1) is NetworkState.GOOD
    number = 40
    for _ in range(6):
        stage.token(number, 0)
        stage.wait(HOLD)
        for _ in range(2):
            number += 4
            stage.token(number, 0, 1)
        number += 4
    assert stage.state(1) is NetworkState.GOOD


def test_without_decay_the_same_losses_mark() -> None:
    stage = Stage(problem_threshold=3, decay_ns=1 << 60, decay_tokens=1 << 60)
    for round_ in range(1, 4):
        stage.token(4 * round_, 0)
        stage.wait(11 * HOLD)
    assert stage.state(1) is NetworkState.FAULTY


def test_a_timer_that_is_very_late_blames_nobody() -> None:
    stage = Stage(problem_threshold=1)
    stage.token(4, 0)
    stage.now = Instant(stage.now + 3 * HOLD)
    effects = stage.layer.wake(stage.now)
    assert releases(effects) == [Release.TIMER] and stage.state(1) is NetworkState.GOOD


def test_the_last_good_network_is_never_marked_and_everything_is_used() -> None:
    stage = Stage(problem_threshold=2)
    stage.mark(0)
    assert stage.state(0) is NetworkState.FAULTY
    for round_ in range(1, 8):
        stage.token(4 * round_, 0)
        stage.wait(HOLD)
    assert stage.state(1) is NetworkState.GOOD and stage.state(0) is NetworkState.ON_TRIAL
    assert [turn.evidence for turn in turns(stage.log)] == [Evidence.REFUSAL, Evidence.TOKEN_TIMER, Evidence.NEED]
    assert token_networks(stage.send(token_out())) == [(0, 1)]


def test_the_blind_spot_a_member_that_is_no_neighbour_is_missed_by_its_messages() -> None:
    stage = Stage(message_lag_max=200)
    for seq in range(1, 300):
        stage.give(0, data_packet(seq))
        if alarms(stage.log):
            break
    assert [(a.network, a.evidence) for a in alarms(stage.log)] == [(1, Evidence.MESSAGES)] and 200 < seq < 215


def test_the_blind_spot_on_an_idle_ring_announcements_find_it() -> None:
    stage = Stage()
    for _ in range(11):
        stage.give(0, announcement())
        stage.give_all((0, announcement(THREE)), (1, announcement(THREE)))
    assert [(a.network, a.evidence) for a in alarms(stage.log)] == [(1, Evidence.ANNOUNCEMENTS)]


def test_membership_packets_go_out_on_every_network_that_is_not_marked() -> None:
    for style in Replication:
        stage = Stage(style, count=4)
        stage.mark(2)
        packet = join()
        effects = stage.send(Broadcast([(packet, len(packet))]), SendTo(TWO, packet))
        assert [e.networks for e in effects if isinstance(e, Broadcast | SendTo)] == [(0, 1, 3), (0, 1, 3)]


def test_a_token_that_is_cut_short_is_left_to_the_engine() -> None:
    stage = Stage()
    stage.give(0, token_packet(4)[:50])
    assert len(stage.up) == 1
