"""The adaptive engine in the simulator: calm and hostile runs, and scenes of single rules."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ordercast.model.ids import MILLISECOND
from ordercast.model.notes import Occurrence
from ordercast.model.service import Service
from ordercast.sim.faults import Fault, FaultKind
from ordercast.sim.options import SIM_RING, SimOptions
from ordercast.sim.run import Result, simulate
from ordercast.sim.swarm import SwarmKind, options_of
from ordercast.sim.topology import Rate

from .planted import SILENT, THIRDS
from .test_hops import hops, sending


@pytest.mark.parametrize(
    ("kind", "seed"),
    [
        *((SwarmKind.PLAIN, seed) for seed in (1, 7, 20)),
        (SwarmKind.GROUPS, 3),
        (SwarmKind.REPLICATED, 2),
        (SwarmKind.NETWORKS, 2),
        (SwarmKind.NETWORKS, 11),
    ],
)
def test_hostile_runs_are_valid(kind: SwarmKind, seed: int) -> None:
    result = simulate(options_of(seed, kind, "adaptive"), seed)
    assert result.settled and result.is_valid, f"{kind.value} {seed}: {result.verdict.sentence}"


def one_way_cut() -> Result:
    """Of four members one does not hear another for half a second, and all send."""
    cut = Fault(150 * MILLISECOND, FaultKind.CUT, links=((0, 1),))
    rates = tuple(Rate(node, 100) for node in range(4))
    options = SimOptions(nodes=4, engine="adaptive", messages=0, rates=rates, faults=(cut,))
    return simulate(replace(options, fault_time_ns=500 * MILLISECOND), 1)


def test_whom_only_some_hear_is_vouched_for() -> None:
    result = one_way_cut()
    assert result.is_valid and result.counts["regular views"] == 8  # alone, then together, and nothing since
    assert result.counts[Occurrence.MARK_RELAYED.value] and result.counts[Occurrence.THIRD_ANSWERED.value]
    with pytest.MonkeyPatch.context() as patch:
        THIRDS.plant(patch)
        assert one_way_cut().counts["regular views"] > 8


def skewed_then_saturated() -> Result:
    """One member sends alone for a while, then all have more than they can send."""
    options = SimOptions(
        nodes=4,
        engine="adaptive",
        messages=0,
        rates=(Rate(0, 1500),),
        saturation=250,
        ring=replace(SIM_RING, window=300, backlog_max=600, visit_max=50),
        receive_buffer=5000,
        bandwidth=8_000_000,
        services=(Service.AGREED,),
        fault_time_ns=400 * MILLISECOND,
    )
    return simulate(options, 1)


def test_a_view_that_suits_one_sender_is_fair_when_all_send() -> None:
    result = skewed_then_saturated()
    assert result.settled and result.is_valid, result.verdict.sentence


def test_nobody_waits_for_a_sign_of_life_of_those_who_have_nothing_to_send() -> None:
    with pytest.MonkeyPatch.context() as patch:
        SILENT.plant(patch)
        found = hops(4, sending(60, 60), Service.AGREED)
    assert max(map(max, found.values())) > 2.01
