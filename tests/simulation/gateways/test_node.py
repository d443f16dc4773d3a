"""Networks of rings in the simulator: the shipped engine over real rings, groups on it."""

from __future__ import annotations

import pytest

from ordercast.model.configuration import ChangeReason, ConfigurationKind
from ordercast.model.ids import node_of
from ordercast.order.clock import CLOCK_RESERVE
from ordercast.sim.fault_text import fault_from
from ordercast.sim.faults import Fault, FaultKind
from ordercast.sim.options import SimOptions
from ordercast.sim.run import simulate
from ordercast.sim.swarm import SwarmKind, options_of
from ordercast.trace.records import Installed, StorageTurned

LINE = ((0,), (0,), (0, 1), (1,), (1,))  # two rings, one gateway

# 2, 11: a message in parts on both sides of a merge; 35: one whose originator has left; 7 (groups): carried packets of
# several ticks read as one; 13 (groups): what a daemon had sent that has left; 45: a view behind a packet and another
# before the next one had one place; 40: what others deliver in a view of the same number is not in the past; 5
# (networks): a message that others deliver in an earlier view than that in which its submitter crashed; 361, 383: an
# aru forged too low, which its holder raised before the others had compared it; 342: a packet whose tick had leapt was
# owed although the next ring was born before it; 708: whose ring changed after its farewell read what came of the new
# ring as the old one's; 788 (groups): a view above the bound of the clock that was stored; 1315 (groups): what nobody
# wants came hollow over another ring before its sender's own ring handed it up, and the sender was told no place of it.
REGRESSIONS = [
    *((SwarmKind.PLAIN, seed) for seed in (2, 35, 40, 45, 342, 361, 383)),
    pytest.param(SwarmKind.PLAIN, 708, marks=pytest.mark.long),
    (SwarmKind.GROUPS, 13),
    (SwarmKind.GROUPS, 788),
    (SwarmKind.GROUPS, 1315),
    (SwarmKind.NETWORKS, 5),
]


@pytest.mark.parametrize(
    ("kind", "seed"),
    [
        *REGRESSIONS,
        *((SwarmKind.PLAIN, seed) for seed in (0, 1, 3, 5)),
        (SwarmKind.GROUPS, 0),
        (SwarmKind.REPLICATED, 0),
        (SwarmKind.REPLICATED, 1),
        (SwarmKind.NETWORKS, 0),
    ],
)
def test_hostile_runs_are_valid(kind: SwarmKind, seed: int) -> None:
    result = simulate(options_of(seed, kind, "gateways"), seed)
    assert result.settled and result.is_valid, f"{kind.value} {seed}: {result.verdict.sentence}"


def test_a_calm_network_is_one_view_of_everybody() -> None:
    options = SimOptions(nodes=5, engine="gateways", attachments=LINE, messages=20)
    result = simulate(options, 1, keep_events=True)
    assert result.settled and result.is_valid, result.verdict.sentence
    last = {event.process: event.configuration for event in result.events if isinstance(event, Installed)}
    assert {len(view.members) for view in last.values()} == {5} and len({view.id for view in last.values()}) == 1


def test_an_orderly_leave_is_one_in_the_other_rings_too() -> None:
    faults = (Fault(1_000_000_000, FaultKind.LEAVE, node=0),)
    options = SimOptions(nodes=5, engine="gateways", attachments=LINE, messages=20, faults=faults)
    result = simulate(options, 1, keep_events=True)
    assert result.settled and result.is_valid, result.verdict.sentence
    views = [event.configuration for event in result.events if isinstance(event, Installed)]
    left = [view for view in views if view.kind is ConfigurationKind.REGULAR and len(view.members) == 4]
    assert len(left) == 4 and {view.reason for view in left} == {ChangeReason.LEFT}


def test_a_view_above_what_is_stored_waits_for_the_disk() -> None:
    crashes = ("0.2s crash n0", "0.4s restart n0", "0.9s crash n4", "1s restart n4")  # n0 counts on above n4's bound
    faults = tuple(map(fault_from, (*crashes, "0.3s fail-disk n4", "1.2s mend-disk n4")))
    options = SimOptions(nodes=5, engine="gateways", attachments=LINE, messages=20, faults=faults)
    result = simulate(options, 1, keep_events=True)
    assert result.settled and result.is_valid, result.verdict.sentence
    told = [one for one in result.events if isinstance(one, Installed | StorageTurned) and node_of(one.process) == 4]
    above = next(
        place
        for place, one in enumerate(told)
        if isinstance(one, Installed) and one.configuration.id.seq > CLOCK_RESERVE
    )
    assert any(isinstance(one, StorageTurned) and not one.in_use for one in told[:above])


def test_storage_is_in_use_again_when_all_that_waits_for_it_is_stored() -> None:
    """The disk of n4 is mended; its ring's seq is stored, and the bound of its clock is not, when it crashes."""
    crashes = [
        f"{at}s {what} n0" for at, what in ((0.2, "crash"), (0.25, "restart"), (0.4, "crash"), (0.45, "restart"))
    ]
    crashes += ["0.52s crash n3", "0.6s crash n0", "0.65s restart n0", "1.2s restart n3"]
    disk = ["0.1s fail-disk n4", "1.1s mend-disk n4", "1.1023s crash n4", "1.12s restart n4"]
    faults = tuple(map(fault_from, (*crashes, *disk)))
    result = simulate(SimOptions(nodes=5, engine="gateways", attachments=LINE, messages=60, faults=faults), 1)
    assert result.settled and result.is_valid, result.verdict.sentence


def test_a_ring_alone_is_a_network_too() -> None:
    result = simulate(SimOptions(nodes=3, engine="gateways", messages=20, random_faults=3), 4)
    assert result.settled and result.is_valid, result.verdict.sentence
