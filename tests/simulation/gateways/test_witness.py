"""The witness of a network of rings catches a fault in each of its rules, in hostile runs of the shipped engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from ordercast.checker import Outcome
from ordercast.model.effects import Effect
from ordercast.model.ids import ConfigurationId, ProcessId, node_of
from ordercast.model.promises import AnyPromise, Promise, RingsPromise
from ordercast.order.clock import StoredClock
from ordercast.order.gateways import network, timeline
from ordercast.order.gateways.coverage import Coverage
from ordercast.order.gateways.forwarding import Forwarding
from ordercast.order.gateways.holds import Pressure
from ordercast.order.gateways.items import Carried, Column, EndItem, Flooded, LogicalRing, Processes, Stretch
from ordercast.order.gateways.network import RingNetwork
from ordercast.order.gateways.passing import PassingUp
from ordercast.order.gateways.view_number import ViewNumber
from ordercast.order.gateways.views import NetworkView, Views
from ordercast.order.ring.handing import HandingUp
from ordercast.order.stamped.lanes import Stamp, StampedLane, StampedRun, lowest
from ordercast.sim.gateways import witness
from ordercast.sim.run import Result, simulate
from ordercast.sim.swarm import SwarmKind, options_of
from tests.simulation.catches import first_catch
from tests.unit.pipeline.agreement import assert_agreement

RUNS = 100  # within which each is caught
Plant = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True)
class Fault:
    name: str
    plant: Plant
    broken: AnyPromise


def _clock_forgotten(patch: pytest.MonkeyPatch) -> None:
    """A process begins at the first tick again after a restart."""
    right = StoredClock.start
    patch.setattr(StoredClock, "start", lambda self, stored: right(self, {}))
    patch.setattr(ViewNumber, "start", lambda self, stored: 0)


def _agreed_rings(patch: pytest.MonkeyPatch) -> None:
    """A ring hands up what is in order here, whether or not all have it (the paper, C1)."""
    right = HandingUp.deliver
    patch.setattr(HandingUp, "deliver", lambda self, safe, effects: right(self, self.ring.store.aru, effects))


def _halves_not_named(patch: pytest.MonkeyPatch) -> None:
    """Residual packets are carried like regular ones (the paper, C3)."""
    right = Forwarding.forward

    def wrong(self: Forwarding, item: Flooded, since: Stamp, domain: int | None, half: Processes | None) -> None:
        right(self, item, since, domain, None)

    patch.setattr(Forwarding, "forward", wrong)


def _out_of_order(patch: pytest.MonkeyPatch) -> None:
    """A gateway lets packets overtake what waits."""
    right = RingNetwork.step

    def wrong(self: RingNetwork) -> None:
        right(self)
        for queue in self.forwarding.queues.values():
            stretches = [at for at, carried in enumerate(queue) if isinstance(carried.item, Stretch)]
            turned: list[Carried] = [queue[at] for at in reversed(stretches)]
            for at, carried in zip(stretches, turned, strict=True):
                queue[at] = carried

    patch.setattr(RingNetwork, "step", wrong)


def _states_what_it_has(patch: pytest.MonkeyPatch) -> None:
    """A gateway states of its rings what it has taken itself."""

    def wrong(self: RingNetwork, ring: ConfigurationId, item: object, half: Any, is_regular: bool) -> None:
        if isinstance(item, Stretch):
            for own in self.known.own.values():
                self.coverage.count(own, Column(item.ring, half), self.forwarding.stamp(item), is_regular)

    patch.setattr(RingNetwork, "_count", wrong)


def _lost_on_the_way_up(patch: pytest.MonkeyPatch) -> None:
    """One node does not pass up what was numbered at some ticks."""
    right = PassingUp._messages

    def wrong(self: PassingUp, run: StampedRun[Stretch], me: ProcessId, effects: list[Effect]) -> None:
        if node_of(me) != 1 or run.content.tick % 5 or run.content.originator == me:
            right(self, run, me, effects)

    patch.setattr(PassingUp, "_messages", wrong)


def _never_holds(patch: pytest.MonkeyPatch) -> None:
    """A process has much to carry, and asks nobody to stop."""
    patch.setattr(witness, "QUEUE_HIGH", 2_000)
    patch.setattr(Pressure, "measure", lambda self, amount: False)


def _ends_that_differ(patch: pytest.MonkeyPatch) -> None:
    """Processes with an odd number say of a ring's end another birth than the others."""

    def wrong(ring: Any, half: Any, successor: LogicalRing, sure: Iterable[ProcessId], *reason: Any) -> EndItem:
        is_odd = not successor.is_merge and len(successor.members) > 1 and node_of(min(sure)) % 2
        return EndItem(ring, half, replace(successor, tick=successor.tick + is_odd), frozenset(sure), *reason)

    patch.setattr(network, "EndItem", wrong)


def _all_come_along(patch: pytest.MonkeyPatch) -> None:
    """At every change all members of the new view are taken to come along."""
    right = Views.settle

    def wrong(self: Views) -> NetworkView | None:
        view = right(self)
        return view if view is None else replace(view, transitional=view.members)

    patch.setattr(Views, "settle", wrong)


def _safe_is_agreed(patch: pytest.MonkeyPatch) -> None:
    """What is next is delivered, whoever has it."""
    patch.setattr(Coverage, "covers", lambda self, run: True)
    patch.setattr(Coverage, "lacking", lambda self, packet: frozenset())


def _silence_is_no_reason(patch: pytest.MonkeyPatch) -> None:
    """What is lowest is delivered although a ring from which nothing came may still bring what lies below."""
    right = lowest

    def wrong(lanes: Iterable[StampedLane[Stretch]], limit: Stamp) -> tuple[StampedLane[Stretch], Stamp] | None:
        return right([lane for lane in lanes if lane.runs], limit)

    patch.setattr(timeline, "lowest", wrong)


def _left_at_once(patch: pytest.MonkeyPatch) -> None:
    """Where members leave, the others are in a view without them at once, though these do not know it yet."""
    right = Views.settle

    def wrong(self: Views) -> NetworkView | None:
        view = right(self)
        return view if view is None else replace(view, is_provisional=False)

    patch.setattr(Views, "settle", wrong)


FAULTS = (
    Fault("clock forgotten", _clock_forgotten, RingsPromise.TICKS),
    Fault("agreed rings", _agreed_rings, RingsPromise.SAFE_RINGS),
    Fault("halves not named", _halves_not_named, RingsPromise.CARRIED),
    Fault("out of order", _out_of_order, RingsPromise.IN_ORDER),
    Fault("states what it has", _states_what_it_has, RingsPromise.STATEMENTS),
    Fault("lost on the way up", _lost_on_the_way_up, RingsPromise.SAME_EVENTS),
    Fault("safe is agreed", _safe_is_agreed, RingsPromise.SAFE),
    Fault("left at once", _left_at_once, RingsPromise.SAFE_IN_VIEW),
    Fault("never holds", _never_holds, RingsPromise.QUEUES),
    Fault("ENDs that differ", _ends_that_differ, RingsPromise.PARTS),
    Fault("silence is no reason to wait", _silence_is_no_reason, RingsPromise.PAST),
    Fault("left at once, as all see it", _left_at_once, Promise.SAFE_DELIVERY),
    Fault("all come along", _all_come_along, Promise.TRUTHFUL_SETS),
)


def _run(fault: Fault, seed: int) -> Result | None:
    """Return a run that shows a fault, none if this one does not; an engine that stops itself has not been caught by
    the witness."""
    try:
        result = simulate(options_of(seed, SwarmKind.PLAIN, "gateways"), seed, keep_events=True)
    except (AssertionError, LookupError):
        return None
    is_broken = any(v.promise is fault.broken and v.outcome is Outcome.INVALID for v in result.verdicts)
    return result if is_broken else None


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_the_witness_catches(fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[Result] = []

    def is_caught(seed: int) -> bool:
        result = _run(fault, seed)
        shown.extend([result] if result is not None else [])
        return result is not None

    fault.plant(monkeypatch)
    assert first_catch("rings", fault.name, range(RUNS), is_caught) is not None, f"not caught in {RUNS} runs"
    if isinstance(fault.broken, Promise):
        assert_agreement(shown[0].events)  # the judges of the pipeline catch it in the same way


def test_every_rule_of_the_witness_has_a_planted_fault() -> None:
    assert {fault.broken for fault in FAULTS} >= set(RingsPromise)
