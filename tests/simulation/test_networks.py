"""Several networks in the simulator. Hostile runs: `test_recorded.py`."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ordercast.model.effects import AlarmKind
from ordercast.model.ids import MILLISECOND, SECOND, NodeId
from ordercast.networks.config import Replication
from ordercast.networks.layer import Networks
from ordercast.order.ring.node import RingNode
from ordercast.sim.faults import Fault, FaultKind
from ordercast.sim.network_swarm import expected_network_rows, with_networks
from ordercast.sim.options import SimOptions
from ordercast.sim.run import engine_of, simulate
from ordercast.sim.swarm import SwarmKind, hostile_options, options_of

from .network_scenes import BEGIN, KINDS, MENDED, MESSAGES, NETWORK, NODES, PAIRS, WHOLE, options, told

FOUND_NS = 3 * SECOND  # from the fault to the last alarm: the slowest is a passive ring that loses tokens
REPAIRED_NS = 2 * SECOND  # from the repair to its use
MEND = Fault(MENDED, FaultKind.MEND, network=NETWORK)
REGRESSIONS = [
    5224,  # two of three networks died at once: a token that was sent again met a dead one, too, and was lost
    3890,  # the same delayed messages for longer than is allowed
    17916,  # an idle ring's members wait long before they send a token again; one dead network took it at every hop
    7482,  # the judge took the copy on a network on trial for another retransmission
]


@pytest.mark.parametrize("seed", REGRESSIONS)
def test_what_failed_once_stays_valid(seed: int) -> None:
    result = simulate(options_of(seed, SwarmKind.NETWORKS), seed)
    assert result.is_valid, result.verdict.sentence


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("style", Replication)
def test_r25_a_fault_is_found_by_everybody_and_changes_no_view(style: Replication, kind: str) -> None:
    story = told(style, KINDS[kind], MEND)
    assert story.result.is_valid, story.result.verdict.sentence
    assert story.views == 0
    assert sorted(story.found) == list(range(NODES)), "R24: the mark spreads to all"
    assert max(story.found.values()) - BEGIN < FOUND_NS
    assert sorted(story.repaired) == list(range(NODES))
    assert max(story.repaired.values()) - MENDED < REPAIRED_NS


@pytest.mark.parametrize("messages", [MESSAGES, 0])
@pytest.mark.parametrize("kind", PAIRS)
@pytest.mark.parametrize("style", [pytest.param(Replication.ACTIVE, marks=pytest.mark.long), Replication.PASSIVE])
def test_r25_faults_of_all_networks_change_no_view_while_every_neighbour_is_reached(
    style: Replication, kind: str, messages: int
) -> None:
    story = told(style, *PAIRS[kind], messages=messages)
    assert story.result.is_valid, story.result.verdict.sentence
    assert story.views == 0
    assert any(alarm.kind is AlarmKind.NO_GOOD_NETWORK for _, _, alarm in story.result.alarms)


@pytest.mark.parametrize("style", Replication)
def test_r22_an_idle_ring_finds_it_too(style: Replication) -> None:
    story = told(style, WHOLE, messages=0)
    assert sorted(story.found) == list(range(NODES))
    assert max(story.found.values()) - BEGIN < FOUND_NS and story.views == 0


def test_r26_active_masks_what_one_network_loses_without_sending_again() -> None:
    story = told(Replication.ACTIVE, KINDS["a fifth is lost"])
    assert story.result.counts["retransmissions"] == 0 and story.result.is_valid


def test_r27_active_passive_masks_what_fewer_than_k_networks_lose() -> None:
    story = told(Replication.ACTIVE_PASSIVE, WHOLE)
    assert story.result.counts["retransmissions"] == 0 and story.result.is_valid


def test_r6_passive_sends_nothing_again_when_networks_are_unlike() -> None:
    slow = Fault(BEGIN, FaultKind.SLOW, duration_ns=4 * MILLISECOND, network=NETWORK)
    story = told(Replication.PASSIVE, slow, messages=500, count=3)
    assert story.result.counts["retransmissions"] == 0 and story.result.is_valid
    assert story.result.counts["token released: what was missing came"] > 0
    assert not story.found


def test_a_network_that_flaps_is_held_off_longer_and_longer() -> None:
    flaps = [
        Fault(BEGIN + n * SECOND // 2, kind, network=NETWORK)
        for n in range(0, 14, 2)
        for kind, n in ((FaultKind.DOWN, n), (FaultKind.MEND, n + 1))
    ]
    story = told(Replication.ACTIVE, *flaps, end=BEGIN + 7 * SECOND)
    assert story.result.is_valid and story.views == 0
    alarms = [alarm for _, _, alarm in story.result.alarms if alarm.kind is AlarmKind.NETWORK_FAULTY]
    assert len(alarms) < 7 * NODES  # not once for each flap at each node


@pytest.mark.parametrize("style", Replication)
def test_every_token_copy_lost_is_recovered_without_a_change_of_view(style: Replication) -> None:
    lost = [Fault(BEGIN + n * SECOND, FaultKind.LOSE_TOKEN, duration_ns=150 * MILLISECOND) for n in range(4)]
    story = told(style, *lost)
    assert story.result.is_valid and story.views == 0
    assert story.result.counts["token retransmitted"] > 0


def test_one_network_has_no_layer_in_its_path() -> None:
    assert isinstance(engine_of(SimOptions(), True, NodeId(0)), RingNode)
    assert isinstance(engine_of(options(Replication.ACTIVE), True, NodeId(0)), Networks)


def test_every_style_and_both_kinds_of_runs_are_drawn() -> None:
    drawn = [with_networks(hostile_options(seed), seed) for seed in range(40)]
    assert {one.networks.replication for one in drawn} == set(Replication)
    assert {one.is_one_whole for one in drawn} == {True, False}
    for one in drawn:
        one.validate()
        struck = {fault.network for fault in one.faults}
        assert not one.is_one_whole or len(struck) < one.networks.count, "one network is left whole"
        assert not one.is_one_whole or one.ring.token_loss_ns == 800 * MILLISECOND, "the default timeouts"
    assert len(expected_network_rows()) == len(set(expected_network_rows()))


def test_a_fault_of_one_network_leaves_the_others_alone() -> None:
    faults = (replace(WHOLE, at=0), Fault(1, FaultKind.LOSSY, chance=0.5, network=0))
    bad = replace(options(Replication.ACTIVE), faults=(*faults, Fault(2, FaultKind.DOWN, network=2)))
    with pytest.raises(Exception, match=r"names network 2, there are 0\.\.1"):
        bad.validate()
