"""Runs of engines whose members never change: every seed draws a cluster, a load and delays, and nothing fails."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from ordercast.model.ids import MICROSECOND, MILLISECOND
from ordercast.model.service import Service
from ordercast.order.catalogue import entry_of
from ordercast.sim.options import Delays, SimOptions

SATURATED_EVERY = 20
SATURATED_FIRST = 7


def usual_options(engine: str) -> SimOptions:
    """The defaults, with the services that this engine serves."""
    usual = SimOptions(engine=engine)
    return replace(usual, services=tuple(service for service in usual.services if service in entry_of(engine).services))


def calm_options(engine: str, seed: int) -> SimOptions:
    rng = Random(f"calm swarm {engine} {seed}")
    nodes = rng.choice((1, 2, 3, 4, 5, 6, 7, 8))
    usual = usual_options(engine)
    is_saturated = seed % SATURATED_EVERY == SATURATED_FIRST and Service.AGREED in usual.services
    return replace(
        usual,
        nodes=nodes,
        messages=rng.randrange(100, 300),
        senders=rng.choice((1, 2, 5)),
        size_max=rng.choice((60, 400, 1200)),
        large_messages=rng.choice((0, 0, 2)),
        saturation=60 if is_saturated else 0,
        delay_max_ns=rng.choice((200, 600, 1500)) * MICROSECOND,
        delays=rng.choice((Delays.UNIFORM, Delays.EXPONENTIAL)),
        slow_hosts=((rng.randrange(nodes), rng.choice((5.0, 30.0))),) if rng.random() < 0.3 else (),
        bandwidth=rng.choice((0, 100_000_000)),
        clock_drift=rng.choice((0.0, 0.0001, 0.01)),
        fault_time_ns=rng.choice((100, 400)) * MILLISECOND,
    )
