"""Hostile runs of all swarms, few on every change: valid, and the runs that they were. The others of the same kinds are
among the long tests; the long hunt is `ordercast swarm`, with `--groups`, `--replicated` or `--networks`."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from .digests import SWARMS, recorded, run

AT_ONCE = 5
FEW = {"plain": 10}  # seeds of a swarm that are run on every change; of the others five
BLOCKS = [
    pytest.param(kind, seed, marks=() if seed < swarm.seeds[0] + FEW.get(kind, 5) else pytest.mark.long)
    for kind, swarm in SWARMS.items()
    for seed in swarm.seeds[::AT_ONCE]
]


@pytest.mark.parametrize(("kind", "first"), BLOCKS)
def test_hostile_runs_are_valid_and_what_they_were(kind: str, first: int) -> None:
    for seed in range(first, first + AT_ONCE):
        result = run(kind, seed)
        assert result.is_valid, f"ordercast sim --hostile{SWARMS[kind].words} --seed {seed}: {result.verdict.sentence}"
        assert result.digest == recorded()[kind, seed], f"seed {seed} is another run than it was"
        views = result.counts["regular views"] + result.counts["transitional views"]
        assert views >= 4 or kind != "plain", "a run is as hostile as promised"


_DIGESTS = "from tests.simulation.digests import run; print(*(run(kind, seed).digest for kind, seed in {}))"


def test_the_same_seed_gives_the_same_history_under_another_hash_seed() -> None:
    chosen = [(kind, swarm.seeds[3]) for kind, swarm in SWARMS.items()]
    done = subprocess.run(
        [sys.executable, "-c", _DIGESTS.format(chosen)],
        env={**os.environ, "PYTHONHASHSEED": "4242", "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
        timeout=240,
    )
    assert done.stdout.split() == [recorded()[each] for each in chosen]
