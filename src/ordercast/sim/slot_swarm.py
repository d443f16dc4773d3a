"""What a swarm draws of the adaptive engine: slots so small, and a reach so short, that both are met."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from ordercast.model.ids import MICROSECOND, MILLISECOND
from ordercast.order.adaptive.config import least_reach
from ordercast.sim.options import SIM_ADAPTIVE, SimOptions

POLICIES = {5: "steady", 9: "window", 13: "steady"}  # of some runs in sixteen


def with_slots(options: SimOptions, seed: int) -> SimOptions:
    rng = Random(f"slots {seed}")
    ring = replace(options.ring, members_max=2 * options.nodes)
    adaptive = replace(
        SIM_ADAPTIVE,
        block=rng.choice((1, 2, 8)),
        period=rng.choice((8, 16, 48)),
        mark_ns=rng.choice((5, 50)) * MICROSECOND,
        gather_acks=rng.choice((3, 5, 9)),
        ask_ns=rng.choice((1, 2)) * MILLISECOND,
        gap_ns=rng.choice((5, 20, 60)) * MILLISECOND,
        policy=POLICIES.get(seed % 16, "demand"),
    )
    if options.networks.count > 1:  # packets overtake each other there
        adaptive = replace(adaptive, ask_ns=options.networks.token_hold_ns)
    reach = least_reach(adaptive, ring.members_max)
    return replace(options, ring=ring, adaptive=replace(adaptive, reach=rng.choice((1, 1, 4)) * reach))
