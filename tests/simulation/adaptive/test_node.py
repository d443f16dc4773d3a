"""The adaptive engine in the simulator: calm and hostile runs, and scenes of single rules."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ordercast.model.configuration import ChangeReason
from ordercast.model.ids import MILLISECOND
from ordercast.model.notes import Occurrence
from ordercast.model.service import Service
from ordercast.sim.faults import Fault, FaultKind
from ordercast.sim.options import SIM_RING, SimOptions
from ordercast.sim.run import Result, simulate
from ordercast.sim.swarm import SwarmKind, options_of
from ordercast.sim.topology import Rate
from ordercast.sim.world import World
from ordercast.trace.records import Event, Installed
from ordercast.wire.head import KIND_AT
from ordercast.wire.header import MessageKind

from .planted import THIRDS, TOKEN_DROPPED


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


def token_lost_at_the_last() -> Result:
    """The token with which the last of three would install is lost, when both others have installed."""
    lost: list[bytes] = []
    installed: set[int] = set()

    def observe(event: Event) -> None:
        if isinstance(event, Installed) and len(event.configuration.members) == 3:
            installed.add(event.process >> 48)

    def rule(source: int, target: int, packet: bytes) -> bool:
        if packet[KIND_AT] != MessageKind.TOKEN or target != 2 or 1 not in installed or 2 in installed or lost:
            return True
        lost.append(packet)
        return False

    def script(world: World) -> None:
        world.rule = rule

    result = simulate(SimOptions(nodes=3, engine="adaptive", messages=20), 1, observer=observe, script=script)
    assert lost and result.is_valid, result.verdict.sentence
    return result


def test_the_token_is_served_until_everybody_has_installed() -> None:
    row = f"gather: {ChangeReason.RECOVERY_LOST.text}"
    assert not token_lost_at_the_last().counts[row]
    with pytest.MonkeyPatch.context() as patch:
        TOKEN_DROPPED.plant(patch)
        assert token_lost_at_the_last().counts[row]


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
