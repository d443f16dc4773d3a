"""Plots hit what they aim at. In full: `ordercast swarm --seeds 10000..10049`, with each of --groups, --replicated,
--networks."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

import pytest

from ordercast.model.notes import Evidence, NetworkState, Occurrence
from ordercast.sim.aimed_swarm import AIMED_FIRST, AIMS, GROUP_AIMS, RING_AIMS
from ordercast.sim.faults import Fault, FaultKind
from ordercast.sim.group_tally import GroupOccurrence
from ordercast.sim.network_swarm import turn_row
from ordercast.sim.options import SimOptions
from ordercast.sim.plot import Aim
from ordercast.sim.replica_tally import ReplicaOccurrence
from ordercast.sim.ring.poison import Poison
from ordercast.sim.ring_episodes import BRIDGE_AIMS, EPISODES_FIRST
from ordercast.sim.run import Result, simulate
from ordercast.sim.swarm import (
    SwarmKind,
    hostile_group_options,
    hostile_options,
    hostile_replica_options,
    options_of,
)

RINGS = partial(options_of, engine="gateways")
RARE: dict[str, tuple[Callable[[int], SimOptions], int]] = {
    Occurrence.GAP_AMONG_COMPANIONS.value: (hostile_options, 10_000),
    Occurrence.PROMISE_DIFFERS.value: (hostile_options, 10_001),
    GroupOccurrence.GIVEN_UP_KEPT.value: (hostile_group_options, 10_002),
    GroupOccurrence.GIVEN_UP_SIGNALLED.value: (hostile_group_options, 10_013),
    GroupOccurrence.HELD_TOO_LONG.value: (hostile_group_options, 10_009),
    Poison.SEQ_BELOW.value: (hostile_group_options, 10_009),
    Occurrence.FOREIGN_PACKET.value: (hostile_group_options, 10_009),
    ReplicaOccurrence.FORGOTTEN.value: (hostile_replica_options, 10_001),
    Occurrence.NETWORK_CLAIMED_TWICE.value: (RINGS, 20_004),
    Occurrence.NETWORK_TWO_MINDS.value: (RINGS, 20_129),
    Occurrence.NETWORK_RESIDUAL_IN_HALVES.value: (RINGS, 20_074),
    turn_row(NetworkState.FAULTY, Evidence.ANNOUNCEMENTS): (partial(options_of, kind=SwarmKind.NETWORKS), 10_000),
}


@cache
def _result(draw: Callable[[int], SimOptions], seed: int) -> Result:
    return simulate(draw(seed), seed)


@pytest.mark.parametrize("row", RARE)
def test_a_rare_row_occurs_where_it_is_aimed_at(row: str) -> None:
    result = _result(*RARE[row])
    assert result.is_valid, result.verdict.sentence
    assert result.counts[row]


def test_no_seed_below_the_first_has_a_plot_and_all_others_have_by_turns() -> None:
    draws = (hostile_options, hostile_group_options, hostile_replica_options)
    assert all(draw(seed).aim is None for draw in draws for seed in (0, 1, 7, AIMED_FIRST - 1))
    aims = [hostile_options(seed).aim for seed in range(AIMED_FIRST, AIMED_FIRST + 50)]
    assert all(aims.count(aim) >= 10 for aim in AIMS) and aims.count(Aim.EXCHANGE) == 5
    assert {hostile_replica_options(seed).aim for seed in range(AIMED_FIRST, AIMED_FIRST + 2)} == {None, Aim.BEGINNING}
    of_groups = {options_of(seed, SwarmKind.GROUPS).aim for seed in range(AIMED_FIRST, AIMED_FIRST + 8)}
    assert of_groups == set(GROUP_AIMS)
    rings = range(AIMED_FIRST, AIMED_FIRST + 4)
    kinds = [kind for kind in SwarmKind if kind is not SwarmKind.SEALED]  # whose adversary has aims of its own
    assert all([options_of(seed, kind, "gateways").aim for seed in rings] == [*RING_AIMS] for kind in kinds)
    assert all(options_of(seed, kind, "gateways").aim is None for kind in SwarmKind for seed in (0, AIMED_FIRST - 1))
    bridges = [RINGS(seed).aim for seed in range(EPISODES_FIRST, EPISODES_FIRST + 50)]
    assert all(bridges.count(aim) >= 2 for aim in BRIDGE_AIMS) and bridges.count(None) == 40


@pytest.mark.parametrize("kind", SwarmKind)
def test_every_run_on_several_rings_can_be_run(kind: SwarmKind) -> None:
    """Those that are drawn with other numbers of hosts than their replicas were too."""
    for first in (0, AIMED_FIRST, EPISODES_FIRST):
        for seed in range(first, first + 80):
            options_of(seed, kind, "gateways").validate()


@pytest.mark.parametrize("seed", range(AIMED_FIRST, AIMED_FIRST + len(RING_AIMS)))
def test_a_network_of_rings_is_struck_at_its_worst_moments(seed: int) -> None:
    """The plot strikes besides what is scripted, and everything holds."""
    options, struck = options_of(seed, engine="gateways"), list[Fault]()
    result = simulate(options, seed, on_fault=lambda _, fault: struck.append(fault))
    assert result.is_valid, result.verdict.sentence
    more = [fault for fault in struck if fault not in options.faults and fault.kind is not FaultKind.RESTART]
    assert sum(fault.kind is not FaultKind.HEAL for fault in more) > options.random_faults + options.ambushes
