"""Without loss, faults and processing time: two hops at most for agreed delivery, one for the busiest sender, three for
safe delivery and four where acknowledgements are gathered."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ordercast.model.ids import MICROSECOND, MILLISECOND
from ordercast.model.service import Service
from ordercast.sim.options import SIM_ADAPTIVE, SimOptions
from ordercast.sim.run import simulate
from ordercast.sim.topology import Rate
from ordercast.trace.records import DeliveredBatch, Submitted

HOP = 100 * MICROSECOND
WARM = 300 * MILLISECOND  # until then the view is formed, and the order follows the senders


def hops(members: int, rates: tuple[Rate, ...], service: Service, seed: int = 1) -> dict[int, list[float]]:
    """Return the hops from submission to each delivery, by the sender's node."""
    options = SimOptions(
        nodes=members,
        engine="adaptive",
        adaptive=replace(SIM_ADAPTIVE, mark_ns=1),
        messages=0,
        rates=rates,
        services=(service,),
        delay_min_ns=HOP,
        delay_max_ns=HOP,
        packet_ns=0,
        token_ns=0,
        fault_time_ns=500 * MILLISECOND,
    )
    result = simulate(options, seed, keep_events=True, verbose=False)
    assert result.settled and result.is_valid, result.verdict.sentence
    submitted = {
        one.message: event.at for event in result.events if isinstance(event, Submitted) for one in event.messages
    }
    found: dict[int, list[float]] = {}
    for event in result.events:
        if isinstance(event, DeliveredBatch) and event.at > WARM:
            for one in event.messages:
                assert one.message is not None
                if submitted[one.message] > WARM:
                    taken = (event.at - submitted[one.message]) / HOP
                    found.setdefault(one.message.process >> 48, []).append(taken)
    return found


def sending(*rates: float, is_poisson: bool = False) -> tuple[Rate, ...]:
    return tuple(Rate(node, rate, is_poisson) for node, rate in enumerate(rates) if rate)


@pytest.mark.parametrize("rates", [(0, 0, 200, 0), (40, 0, 200, 0), (60, 60, 60, 60), (10, 20, 200, 5, 5, 5)], ids=str)
def test_agreed_delivery_takes_two_hops_at_most_and_the_busiest_one(rates: tuple[float, ...]) -> None:
    found = hops(len(rates), sending(*rates, is_poisson=True), Service.AGREED)
    assert max(map(max, found.values())) <= 2.01
    busiest = rates.index(max(rates))
    if rates.count(max(rates)) == 1:
        assert sum(taken > 1.01 for taken in found[busiest]) <= len(found[busiest]) * 0.05


@pytest.mark.parametrize(("members", "limit"), [(4, 3), (6, 4)])
def test_safe_delivery_takes_three_hops_and_four_where_acknowledgements_are_gathered(members: int, limit: int) -> None:
    for rates in ((0,) * (members - 1) + (100,), (30,) * members):
        found = hops(members, sending(*rates), Service.SAFE)
        assert max(map(max, found.values())) <= limit + 0.01
