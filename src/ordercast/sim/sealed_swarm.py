"""Hostile runs with sealed packets: every seed draws attacks, changes of keys, and strangers beside its faults. All
else in a run is that of a hostile run of the same engine, on one network or on several.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

from ordercast.sim.options import SimOptions
from ordercast.sim.sealed.adversary import Attack
from ordercast.sim.sealed.keeper import PREFIX, ROWS
from ordercast.sim.sealed.options import SealedRun

CLEAR_EVERY = 6  # one run in six goes from clear to sealed, or back, and is not attacked


def with_seals(options: SimOptions, seed: int) -> SimOptions:
    rng = Random(f"sealed swarm {seed}")
    is_clear = seed % CLEAR_EVERY == CLEAR_EVERY - 1
    plan = SealedRun(
        adversary=0.0 if is_clear else rng.choice((0.01, 0.03, 0.1)),
        rotations=rng.randrange(1, 4) if is_clear else rng.randrange(4),
        is_clear_first=is_clear and rng.random() < 0.7,
        is_clear_last=is_clear and rng.random() < 0.5,
        strangers=0 if is_clear else rng.choice((0, 0, 1, 3)),
        crowded=rng.choice((0.0, 0.0, 0.2)),
    )
    return replace(options, sealed=plan, poison=0.0, aim=None, is_one_whole=False)


def expected_sealed_rows(states: Callable[[], list[str]] = list) -> list[str]:
    """Everything that a swarm of sealed runs must have met at least once."""
    rows = [*ROWS, *(attack.value for attack in Attack), *(f"key changed in {state}" for state in states())]
    return [f"{PREFIX}{row}" for row in rows]
