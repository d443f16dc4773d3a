"""How the order follows the senders: the office of the book-keeper, damping, and what a change of view leaves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from ordercast.model.ids import MICROSECOND, MILLISECOND, SECOND, Instant, NodeId, ProcessId
from ordercast.model.notes import Occurrence
from ordercast.model.promises import SlotPromise
from ordercast.model.service import Service
from ordercast.order.adaptive.node import AdaptiveNode
from ordercast.order.adaptive.office import Office
from ordercast.order.adaptive.policy import Policy
from ordercast.order.engine import Engine
from ordercast.sim.faults import Fault, FaultKind
from ordercast.sim.options import SIM_ADAPTIVE, SimOptions
from ordercast.sim.run import Result, engine_of, simulate
from ordercast.sim.topology import Link, Rate

# From host 0 to the others packets take between one and nine times as long as between those.
UNSTEADY = tuple(Link(0, other, delay_max_ns=900 * MICROSECOND) for other in range(1, 4))


def ran(options: SimOptions) -> tuple[Result, list[AdaptiveNode]]:
    """Return a run, and the last engine of each host."""
    made: dict[int, AdaptiveNode] = {}

    def make(node: NodeId) -> Engine:
        engine = engine_of(options, False, node)
        assert isinstance(engine, AdaptiveNode)
        made[node] = engine
        return engine

    result = simulate(options, 1, make_engine=make, verbose=False)
    assert result.settled and result.is_valid, result.verdict.sentence
    return result, [made[node] for node in sorted(made)]


def sent(rates: Sequence[float], **more: object) -> SimOptions:
    options = SimOptions(nodes=4, engine="adaptive", messages=0, services=(Service.AGREED,))
    options = replace(options, fault_time_ns=700 * MILLISECOND)
    rated = tuple(Rate(node, rate) for node, rate in enumerate(rates) if rate)
    return replace(options, rates=rated, **more)  # type: ignore[arg-type]


def steady(policy: str) -> SimOptions:
    adaptive = replace(SIM_ADAPTIVE, policy=policy)
    delays = {"delay_min_ns": 100 * MICROSECOND, "delay_max_ns": 110 * MICROSECOND}
    return sent((50, 50, 50, 50), adaptive=adaptive, links=UNSTEADY, **delays)


def test_the_steadiest_member_becomes_book_keeper() -> None:
    result, nodes = ran(steady("steady"))
    keepers = {node.merge.line.newest.keeper for node in nodes}
    assert len(keepers) == 1 and keepers.isdisjoint({0}) and result.counts[Occurrence.OFFICE_HANDED_OVER.value]
    result, nodes = ran(steady("demand"))
    assert {node.merge.line.newest.keeper for node in nodes} == {0}


def test_an_office_that_two_hold_is_caught() -> None:
    """A plant: the book-keeper goes on when it has handed over its office."""
    right = Office.is_mine
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Office, "is_mine", lambda self, merge: merge.me == 0 or right(merge))
        patch.setattr(Policy, "_may", lambda self, waiting, now: True)
        patch.setattr("ordercast.order.adaptive.policy.levelled", list)  # chance makes new weights all the time
        short = replace(steady("steady"), fault_time_ns=450 * MILLISECOND, settle_ns=50 * MILLISECOND)
        verdicts = simulate(short, 2, verbose=False).verdicts
    assert SlotPromise.SLOTS in {verdict.promise for verdict in verdicts if verdict.outcome.value == "INVALID"}


def emissions(*, damped: bool) -> int:
    rates = (Rate(0, 30), Rate(1, 30), Rate(2, 150, pulse_ns=80 * MILLISECOND), Rate(3, 1))
    options = replace(sent((1, 1, 1, 1)), rates=rates, fault_time_ns=1200 * MILLISECOND)
    with pytest.MonkeyPatch.context() as patch:
        if not damped:
            patch.setattr(Policy, "_may", lambda self, waiting, now: True)
        _, nodes = ran(options)
    return nodes[0].adaptive_stats.distributions


def test_a_member_that_pauses_and_resumes_is_damped() -> None:
    damped, wild = emissions(damped=True), emissions(damped=False)
    assert damped <= 10 and wild > damped


def test_adaptation_survives_a_view_change() -> None:
    """When a silent member is gone the others know who is busy, and distribution 1 follows at once."""
    options = sent((10, 10, 200, 0), faults=(Fault(500 * MILLISECOND, FaultKind.CRASH, 3),))
    options = replace(options, fault_time_ns=650 * MILLISECOND)
    _, nodes = ran(options)
    newest = nodes[0].merge.line.newest
    assert len(newest.weights) >= 3 and newest.number >= 1 and newest.ranks[2] == 0


def test_what_was_sent_before_a_view_change_counts_at_once() -> None:
    members = [ProcessId(number) for number in (1, 2, 3)]
    policy = Policy(SIM_ADAPTIVE)
    policy.begin(members)
    policy.sent(members[2], 50, Instant(0))
    assert policy.wanted(members, (0, 0, 0), (1, 1, 1), Instant(SECOND)) is not None
    assert policy.wanted(members, (0, 0, 0), (1, 1, 1), Instant(SECOND + 1)) is None  # not so soon
    policy.begin(members[1:])
    wanted = policy.wanted(members[1:], (0, 0), (1, 1), Instant(SECOND + 2))
    assert wanted is not None and wanted[1] > wanted[0]
