"""How long a message takes in an idle network of rings in a line, against 2 T on each ring of its way and of the way
back of the farthest ring's front. Simulated, so every machine measures the same."""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean

import pytest

from ordercast.model.ids import MILLISECOND, node_of
from ordercast.model.service import Service
from ordercast.order.gateways.drawing import line
from ordercast.sim.options import SimOptions
from ordercast.sim.run import simulate
from ordercast.sim.topology import Attachments, Rate
from ordercast.trace.records import DeliveredBatch, Event, MessageId, Submitted

MEMBERS = 4  # of each ring
HOP_NS = 200_000
START_NS = 150 * MILLISECOND
TOLERANCE = 0.15


def _line(rings: int) -> Attachments:
    """Return the rings of each process: a lone one of the first ring, then gateways, then the others."""
    gateways = [(ring, ring + 1) for ring in range(rings - 1)]
    lone = [(ring,) for ring in range(rings) for _ in range(MEMBERS - (ring > 0) - (ring < rings - 1))]
    return (lone[0], *gateways, *lone[1:])


@pytest.mark.parametrize(("rings", "service"), [(1, Service.AGREED), (2, Service.AGREED), (2, Service.SAFE)])
def test_latency_is_that_of_the_ways(rings: int, service: Service) -> None:
    attachments = _line(rings)
    options = SimOptions(
        nodes=len(attachments),
        engine="gateways",
        attachments=attachments,
        messages=0,
        rates=(Rate(0, 60, is_poisson=True),),
        ring=replace(SimOptions().ring, rest_ns=1, linger_ns=1),  # tokens never rest
        services=(service,),
        delay_min_ns=HOP_NS,
        delay_max_ns=HOP_NS,
        fault_time_ns=450 * MILLISECOND,
    )
    submitted: dict[MessageId, int] = {}
    waits: list[int] = []

    def observe(event: Event) -> None:
        if isinstance(event, Submitted) and event.at > START_NS:
            submitted.update((message.message, event.at) for message in event.messages)
        elif isinstance(event, DeliveredBatch) and attachments[node_of(event.process)] == (0,):
            waits.extend(event.at - submitted[one.message] for one in event.messages if one.message in submitted)

    assert simulate(options, 1, observer=observe, verbose=False).is_valid
    rotation = MEMBERS * (HOP_NS + options.token_ns)
    expected = line(rings).latency_rotations(0, 0) * rotation
    assert len(waits) > 30 and fmean(waits) == pytest.approx(expected, rel=TOLERANCE)
