"""Without loss, faults and processing time: two hops at most for agreed delivery, one for the busiest sender, three for
safe delivery and four where acknowledgements are gathered. The witness counts them (`sim/adaptive_hops.py`).

`python -m tests.simulation.adaptive.test_hops` runs all of the grid: 2 to 16 members, one to all of them sending.
"""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

from ordercast.model.ids import MICROSECOND, MILLISECOND
from ordercast.model.promises import AnyPromise, SlotPromise
from ordercast.model.service import Service
from ordercast.order.adaptive import flow
from ordercast.sim.options import SIM_ADAPTIVE, SimOptions
from ordercast.sim.run import Result, simulate
from ordercast.sim.topology import Rate

from .planted import ACKNOWLEDGED_IN_TURN, NOBODY_ASKS, SILENT, SLOTS_BY_PLACE, PlantedFault

HOP = 100 * MICROSECOND


def counted(rates: tuple[Rate, ...], members: int, service: Service, seed: int = 1, hop: int = HOP) -> Result:
    """Return a run in which nothing but the way takes time."""
    options = SimOptions(
        nodes=members,
        engine="adaptive",
        adaptive=replace(SIM_ADAPTIVE, mark_ns=1),
        messages=0,
        rates=rates,
        services=(service,),
        delay_min_ns=hop,
        delay_max_ns=hop,
        packet_ns=0,
        token_ns=0,
        fault_time_ns=450 * MILLISECOND,
        settle_ns=100 * MILLISECOND,
    )
    return simulate(options, seed, verbose=False)


def sending(*rates: float, is_poisson: bool = True) -> tuple[Rate, ...]:
    return tuple(Rate(node, rate, is_poisson) for node, rate in enumerate(rates) if rate)


def broken(result: Result) -> set[AnyPromise | None]:
    return {verdict.promise for verdict in result.verdicts if verdict.outcome.value == "INVALID"}


@pytest.mark.parametrize("rates", [(0, 0, 200), (40, 0, 200, 0), (60, 60, 60, 60), (10, 20, 200, 5, 5, 5)], ids=str)
@pytest.mark.parametrize("service", [Service.AGREED, Service.SAFE], ids=lambda service: service.name)
def test_deliveries_take_as_many_hops_as_they_may(rates: tuple[float, ...], service: Service) -> None:
    result = counted(sending(*rates), len(rates), service)
    assert result.settled and result.is_valid, result.verdict.sentence


def test_a_long_way_costs_no_more_hops_than_a_short_one() -> None:
    """Nobody takes it for busy hosts, on which a message waits for its sender's last one to be ordered."""
    rates = sending(60, 60, 60, 60)
    assert counted(rates, 4, Service.AGREED, hop=2 * MILLISECOND).is_valid
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flow, "CROWDED", 0)
        assert SlotPromise.HOPS in broken(counted(rates, 4, Service.AGREED, hop=2 * MILLISECOND))


@pytest.mark.parametrize(
    ("fault", "service"),
    [(SILENT, Service.AGREED), (ACKNOWLEDGED_IN_TURN, Service.SAFE), (SLOTS_BY_PLACE, Service.AGREED)],
    ids=lambda one: getattr(one, "name", ""),
)
def test_a_fault_that_costs_hops_is_caught(fault: PlantedFault, service: Service) -> None:
    with pytest.MonkeyPatch.context() as patch:
        fault.plant(patch)
        assert SlotPromise.HOPS in broken(counted(sending(60, 10, 200, 100), 4, service))


def lossy() -> Result:
    rates = tuple(Rate(node, 50) for node in range(4))
    options = SimOptions(nodes=4, engine="adaptive", messages=0, rates=rates, services=(Service.AGREED,), loss=0.05)
    options = replace(options, fault_time_ns=400 * MILLISECOND, settle_ns=200 * MILLISECOND)
    return simulate(options, 1, verbose=False)


def test_whoever_waits_asks() -> None:
    assert lossy().is_valid
    with pytest.MonkeyPatch.context() as patch:
        NOBODY_ASKS.plant(patch)
        assert SlotPromise.STUCK in broken(lossy())


if __name__ == "__main__":
    for size in map(int, sys.argv[1:] or (2, 3, 4, 5, 6, 8, 12, 16)):
        for senders in sorted({1, 2, size // 2, size} - {0}):
            for is_poisson in (False, True):
                for asked in (Service.AGREED, Service.SAFE):
                    load = tuple(Rate(size - 1 - place, 200 / (1 + place), is_poisson) for place in range(senders))
                    found = counted(load, size, asked)
                    told = f"{size} members, {senders} send, {'at random' if is_poisson else 'evenly'}, {asked.name}"
                    sys.stdout.write(f"{told}: {found.verdict.outcome.value} {found.verdict.sentence}\n")
