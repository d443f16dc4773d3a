"""Whatever is forged, no engine raises: a process that ends takes its clients with it."""

from __future__ import annotations

import pytest

from ordercast.sim.swarm import options_of

from .forger import simulate_forged

# What each seed once raised.
SEEDS = [
    ("gateways", 2, "a ring that ended in the past of the order, since a clock had leapt"),
    ("sites", 21, "an entry whose stamp did not rise above those before it"),
    ("tree", 2, "an opening for another directory"),
]


@pytest.mark.parametrize(("engine", "seed", "raised"), SEEDS)
def test_forged_packets_end_no_process(engine: str, seed: int, raised: str) -> None:
    _, count = simulate_forged(options_of(seed, engine=engine), seed)
    assert count
