"""Marks, alarms, probes, trials: what the paper says of marks, and what we add to it. R-numbers:
docs/internals/networks.md."""

from __future__ import annotations

import pytest

from ordercast.model.effects import AlarmKind, Broadcast, Record
from ordercast.model.ids import ConfigurationId, ProcessId
from ordercast.model.notes import Evidence, NetworkState, PacketDropped
from ordercast.networks.config import NetworksConfig, Replication
from ordercast.networks.probe import Probe, encode_probe
from ordercast.wire.head import KIND_AT, LAYER_KIND
from tests.unit.networks.stage import (
    CLUSTER,
    FOUR,
    ME,
    RING,
    THREE,
    TWO,
    Stage,
    alarms,
    burst,
    commit_out,
    data_packet,
    probes,
    sends,
    token_networks,
    token_out,
    turns,
    view,
)

OTHERS = (TWO, THREE, FOUR)
GOOD, TRIAL, FAULTY = NetworkState.GOOD, NetworkState.ON_TRIAL, NetworkState.FAULTY
PROBE_NS, PROOF = NetworksConfig().probe_ns, NetworksConfig().proof


def probing_round(stage: Stage, network: int, state: NetworkState = FAULTY, whole: bool = True) -> None:
    """Everybody probes once, and the time of one probe passes."""
    for member in OTHERS:
        stage.probe(network, member, state, whole)
    stage.wait(PROBE_NS)


def repaired(stage: Stage, network: int) -> None:
    """All prove it, all try it, all use it."""
    for _ in range(PROOF << stage.layer.marks.levels[network]):
        probing_round(stage, network)
    assert stage.state(network) is TRIAL
    for member in OTHERS:
        stage.probe(network, member, TRIAL)
    assert stage.state(network) is GOOD


@pytest.mark.parametrize("style", Replication)
def test_r16_a_marked_network_is_sent_nothing_but_probes(style: Replication) -> None:
    stage = Stage(style, 3)
    stage.mark(1)
    since = len(stage.log)
    for seq in range(1, 40, 4):
        stage.send(burst(seq, 4), token_out(seq))
        stage.wait(PROBE_NS // 3)
    on_marked = [e for e in stage.log[since:] if isinstance(e, Broadcast) and 1 in e.networks]
    assert on_marked and all(effect.bursts[0][0][KIND_AT] == LAYER_KIND for effect in on_marked)
    assert all(1 not in networks for networks in token_networks(stage.log))


def test_r18_an_alarm_says_which_network_and_why() -> None:
    stage = Stage(names=("red", "blue"))
    stage.mark(1)
    (alarm,) = alarms(stage.log)
    assert (alarm.network, alarm.evidence, alarm.process) == (1, Evidence.REFUSAL, TWO)
    assert alarm.text.startswith("blue is faulty and no longer used: a member sends nothing but probes on it (n2)")
    stage.mark(1)
    assert len(alarms(stage.log)) == 1


def test_r19_who_thinks_well_of_all_networks_sends_no_probe() -> None:
    stage = Stage()
    stage.send(burst(1, 10))
    stage.wait(100 * PROBE_NS)
    assert probes(stage.log) == []


def test_r24_a_mark_spreads_by_the_word_of_a_probe() -> None:
    stage = Stage()
    stage.probe(1, THREE, FAULTY)
    assert stage.state(1) is FAULTY


def test_a_marked_network_goes_on_trial_after_enough_probes_in_a_row_from_everybody() -> None:
    stage = Stage()
    stage.mark(1)
    for _ in range(PROOF - 1):
        probing_round(stage, 1)
    assert stage.state(1) is FAULTY
    probing_round(stage, 1)
    assert stage.state(1) is TRIAL
    assert [turn.evidence for turn in turns(stage.log)] == [Evidence.REFUSAL, Evidence.PROVED]


def test_a_lost_probe_starts_the_proof_again() -> None:
    stage = Stage()
    stage.mark(1)
    for _ in range(PROOF - 1):
        probing_round(stage, 1)
    stage.probe(1, THREE, FAULTY, skip=1)
    probing_round(stage, 1)
    assert stage.state(1) is FAULTY


def test_a_member_that_does_not_hear_everybody_keeps_the_network_marked() -> None:
    stage = Stage()
    stage.mark(1)
    for _ in range(3 * PROOF):
        for member in OTHERS:
            stage.probe(1, member, FAULTY, whole=member != THREE)
        stage.wait(PROBE_NS)
    assert stage.state(1) is FAULTY


def test_a_member_that_is_silent_there_keeps_the_network_marked() -> None:
    stage = Stage()
    stage.mark(1)
    for _ in range(3 * PROOF):
        stage.probe(1, TWO)
        stage.probe(1, THREE)
        stage.wait(PROBE_NS)
    assert stage.state(1) is FAULTY
    assert all(not probe.is_whole for network, probe in probes(stage.log) if network == 1)


@pytest.mark.parametrize("style", Replication)
def test_on_trial_it_carries_a_copy_of_everything_and_nothing_relies_on_it(style: Replication) -> None:
    stage = Stage(style, 3, problem_threshold=1)
    stage.mark(1)
    for _ in range(PROOF):
        probing_round(stage, 1)
    assert stage.state(1) is TRIAL
    out = sends(stage.send(burst(1, 6)))
    assert {seq for network, seq in out if network == 1} == set(range(1, 7))
    assert {seq for network, seq in out if network != 1} == set(range(1, 7))
    assert 1 in token_networks(stage.send(token_out()))[0]
    stage.token(4, 0, 2)
    assert stage.tokens_up == [4]


def test_on_trial_nothing_is_held_against_it() -> None:
    stage = Stage(message_lag_max=180)
    stage.mark(1)
    for _ in range(PROOF):
        probing_round(stage, 1)
    since = len(stage.log)
    for seq in range(1, 600):
        stage.give(0, data_packet(seq))
    assert stage.state(1) is TRIAL and not alarms(stage.log[since:])


def test_it_is_good_again_when_every_member_is_on_trial_there_or_thinks_it_good() -> None:
    stage = Stage()
    stage.mark(1)
    for _ in range(PROOF):
        probing_round(stage, 1)
    stage.probe(1, TWO, TRIAL)
    stage.probe(1, THREE, GOOD)
    assert stage.state(1) is TRIAL
    effects = stage.probe(1, FOUR, TRIAL)
    assert stage.state(1) is GOOD
    assert [alarm.network for alarm in alarms(effects, AlarmKind.NETWORK_REPAIRED)] == [1]
    assert [(network, probe.state) for network, probe in probes(effects)] == [(1, GOOD)]


def test_who_thinks_it_good_answers_probes_as_long_as_there_are_any() -> None:
    stage = Stage()
    stage.mark(1)
    repaired(stage, 1)
    since = len(stage.log)
    for _ in range(3):
        stage.probe(1, TWO, TRIAL)
        stage.wait(PROBE_NS)
    assert len(probes(stage.log[since:])) >= 3
    stage.probe(1, TWO, GOOD)
    stage.probe(1, THREE, GOOD)
    stage.probe(1, FOUR, GOOD)
    stage.wait(4 * PROBE_NS)
    since = len(stage.log)
    stage.wait(100 * PROBE_NS)
    assert probes(stage.log[since:]) == []


def test_a_trial_fails_when_a_member_is_not_heard_and_that_is_no_new_alarm() -> None:
    stage = Stage()
    stage.mark(1)
    for _ in range(PROOF):
        probing_round(stage, 1)
    stage.wait(5 * PROBE_NS)
    assert stage.state(1) is FAULTY
    assert turns(stage.log)[-1].evidence is Evidence.UNHEARD and len(alarms(stage.log)) == 1


def test_a_network_that_flaps_has_more_and_more_to_prove() -> None:
    stage = Stage()
    for level in range(4):
        stage.mark(1)
        assert stage.layer.marks.levels[1] == level
        repaired(stage, 1)
    stage.wait(NetworksConfig().calm_ns << 4)
    stage.mark(1)
    assert stage.layer.marks.levels[1] == 0


def test_after_its_return_it_is_measured_from_scratch() -> None:
    stage = Stage(message_lag_max=180)
    for seq in range(1, 150):
        stage.give(0, data_packet(seq))
    stage.mark(1)
    repaired(stage, 1)
    for seq in range(150, 300):
        stage.give(0, data_packet(seq))
    assert stage.state(1) is GOOD


def test_a_member_on_trial_is_not_measured_there() -> None:
    """It sends more than its share on that network: the others must not look behind."""
    stage = Stage(Replication.PASSIVE, 3, message_lag_max=180)
    stage.probe(2, TWO, TRIAL)
    for seq in range(1, 400):
        stage.give(2, data_packet(seq))
        stage.give(seq % 2, data_packet(seq))
    assert not alarms(stage.log)


def test_a_new_ring_gives_every_network_another_chance() -> None:
    stage = Stage()
    stage.mark(1)
    new = ConfigurationId(12, ME)
    effects = stage.send(view((ME, TWO), new))
    assert stage.state(1) is TRIAL and [turn.evidence for turn in turns(effects)] == [Evidence.NEW_RING]
    stage.probe(1, TWO, TRIAL, ring=new)
    assert stage.state(1) is GOOD


def test_a_new_ring_forgets_the_token_that_waits_and_all_counts() -> None:
    stage = Stage(problem_threshold=2)
    stage.token(4, 0)
    stage.wait(stage.config.token_hold_ns)
    stage.token(8, 0)
    stage.send(view((ME, TWO), ConfigurationId(12, ME)))
    stage.wait(10 * stage.config.token_hold_ns)
    assert stage.tokens_up == [4] and stage.state(1) is GOOD


def test_the_token_of_a_ring_that_is_being_formed_waits_as_any_other() -> None:
    stage = Stage()
    new = ConfigurationId(12, ME)
    stage.send(commit_out(new))
    stage.token(3, 0, ring=new)
    assert stage.tokens_up == []
    stage.token(3, 1, ring=new)
    assert stage.tokens_up == [3]


def test_a_token_of_a_ring_that_this_process_has_not_agreed_to_passes_and_changes_nothing() -> None:
    """One of a cluster that lost its memory, or of a stranger: it must neither push out the token that waits nor make
    our own ring's tokens look old."""
    stage = Stage()
    stage.token(4, 0)
    stage.token(900, 0, 1, ring=ConfigurationId(4000, TWO))
    assert stage.tokens_up == [900, 900]
    stage.token(4, 1)
    stage.token(8, 0)
    assert stage.tokens_up == [900, 900, 4], "each waits for its copies"
    stage.token(8, 1)
    assert stage.tokens_up == [900, 900, 4, 8]


def test_probes_of_another_ring_or_of_strangers_or_late_ones_say_nothing() -> None:
    stage = Stage()
    stage.probe(1, TWO, FAULTY, ring=ConfigurationId(4, ME))
    stage.probe(1, ProcessId(9 << 48 | 1), FAULTY)
    assert stage.state(1) is GOOD
    stage.probe(1, THREE, GOOD, skip=5)
    stage.numbers[THREE, 1] = 2
    stage.probe(1, THREE, FAULTY)
    assert stage.state(1) is GOOD


def test_a_probe_that_comes_on_another_network_is_told() -> None:
    stage = Stage()
    crossed = encode_probe(CLUSTER, Probe(RING, TWO, 9, 0, FAULTY, True))
    (effect,) = stage.give(1, crossed)
    assert isinstance(effect, Record) and isinstance(effect.note, PacketDropped)
    assert effect.note.why == "a probe of network 0 came on network 1: are they connected?"


def test_alone_nothing_can_be_learnt() -> None:
    stage = Stage()
    stage.mark(1)
    stage.send(view((ME,), ConfigurationId(12, ME)))
    stage.wait(50 * PROBE_NS)
    assert stage.state(1) is TRIAL


def torn(stage: Stage, rounds: int) -> None:
    """The first network does not bring n3, the second, which is marked, does not bring n4."""
    for _ in range(rounds):
        stage.probe(1, TWO, stage.state(1))
        stage.probe(1, THREE, stage.state(1), elsewhere=False)
        stage.probe(0, FOUR, GOOD, elsewhere=False)
        stage.wait(PROBE_NS)


def test_a_member_that_no_good_network_brings_makes_every_network_useful() -> None:
    stage = Stage()
    stage.mark(1)
    torn(stage, 5)
    assert (stage.state(0), stage.state(1)) == (GOOD, TRIAL)
    (alarm,) = alarms(stage.log, AlarmKind.NO_GOOD_NETWORK)
    assert (alarm.network, alarm.evidence, alarm.process) == (0, Evidence.UNHEARD, THREE)
    assert alarm.text == "no good network brings n3, which is heard on network 1: all are used now"
    assert {network for network, probe in probes(stage.log) if probe.is_in_need} == {0, 1}


def test_a_member_that_is_heard_nowhere_is_no_fault_of_the_networks() -> None:
    """It is gone, or does not run: its networks are not to blame."""
    stage = Stage()
    stage.mark(1)
    for _ in range(20):
        for other in (TWO, FOUR):
            stage.probe(1, other, FAULTY)
        stage.wait(PROBE_NS)
    assert stage.state(1) is FAULTY and not alarms(stage.log, AlarmKind.NO_GOOD_NETWORK)


def test_who_hears_that_another_is_in_need_uses_everything_as_long_as_that_lasts() -> None:
    stage = Stage()
    stage.mark(1)
    stage.probe(0, FOUR, GOOD, whole=False, in_need=True, elsewhere=False)
    assert stage.state(1) is TRIAL
    for _ in range(10):
        stage.probe(0, FOUR, GOOD, whole=False, in_need=True, elsewhere=False)
        stage.wait(PROBE_NS)
    assert stage.state(1) is TRIAL, "though nobody is heard there"
    stage.wait(5 * PROBE_NS)
    assert stage.state(1) is FAULTY and not alarms(stage.log, AlarmKind.NO_GOOD_NETWORK)


def test_need_ends_when_a_good_network_has_proved_itself_and_every_time_it_takes_longer() -> None:
    stage = Stage()
    stage.mark(1)
    for times in (1, 2):
        torn(stage, 5)
        assert len(alarms(stage.log, AlarmKind.NO_GOOD_NETWORK)) == times
        for _ in range(PROOF * times):
            assert len(alarms(stage.log, AlarmKind.NETWORK_REPAIRED)) == times - 1
            stage.probe(0, THREE, GOOD, elsewhere=False)  # the first network is whole again
            stage.probe(1, TWO, TRIAL)
            stage.probe(1, THREE, TRIAL, elsewhere=False)
            stage.probe(0, FOUR, GOOD, elsewhere=False)
            stage.wait(PROBE_NS)
        (*_, alarm) = alarms(stage.log, AlarmKind.NETWORK_REPAIRED)
        assert (alarm.network, alarm.evidence) == (0, Evidence.PROVED)
        assert stage.state(1) is FAULTY


def test_a_member_whose_last_word_was_lost_is_measured_again() -> None:
    """It says on trial, then its word that the network is good is lost, and nobody probes any more."""
    stage = Stage(Replication.PASSIVE, message_lag_max=180)
    stage.probe(1, TWO, TRIAL)
    stage.wait(10 * PROBE_NS)
    for seq in range(1, 600):
        stage.give(0, data_packet(seq))
    assert stage.state(1) is FAULTY


@pytest.mark.parametrize("style", [Replication.ACTIVE, Replication.PASSIVE])
def test_a_packet_that_never_comes_while_a_network_is_marked_is_need(style: Replication) -> None:
    stage = Stage(style)
    stage.mark(1)
    stage.engine.aru = 5
    for number in range(4, 4 * 23, 4):
        assert not alarms(stage.log, AlarmKind.NO_GOOD_NETWORK)
        stage.token(number, 0, seq=9)
        stage.wait(stage.config.token_hold_ns)
    assert stage.state(1) is TRIAL
    (alarm,) = alarms(stage.log, AlarmKind.NO_GOOD_NETWORK)
    assert (alarm.network, alarm.evidence, alarm.process) == (0, Evidence.MISSING, None)
    assert {network for network, probe in probes(stage.log) if probe.is_in_need} == {0, 1}


def test_packets_that_are_lost_one_after_the_other_are_no_need() -> None:
    stage = Stage()
    stage.mark(1)
    for number in range(4, 400, 4):
        stage.engine.aru = number - 4
        stage.token(number, 0, seq=number)
    assert stage.state(1) is FAULTY and not alarms(stage.log, AlarmKind.NO_GOOD_NETWORK)
