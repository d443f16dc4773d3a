"""Digests of some hostile runs, as last taken: a change that should change nothing changes none of them.

Taken anew with `python -m tests.simulation.digests`, or with some kinds named behind it for these alone, in a commit
that says why the runs differ.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

from ordercast.sim.options import SimOptions
from ordercast.sim.run import Result, simulate
from ordercast.sim.swarm import SwarmKind, hostile_group_options, hostile_options, hostile_replica_options, options_of

FILE = Path(__file__).parent / "digests.txt"


class Swarm(NamedTuple):
    seeds: range  # whose digests are taken
    options_of: Callable[[int], SimOptions]
    words: str  # of the command line, beside `--hostile` and the seed


SWARMS = {
    "plain": Swarm(range(100, 180), hostile_options, ""),
    "networks": Swarm(range(1000, 1020), partial(options_of, kind=SwarmKind.NETWORKS), " --networks"),
    "groups": Swarm(range(100, 140), hostile_group_options, " --groups"),
    "replicated": Swarm(range(20), hostile_replica_options, " --replicated"),
    "gateways": Swarm(range(100, 105), partial(options_of, engine="gateways"), " --engine gateways"),
    "gateways-groups": Swarm(
        range(100, 105),
        partial(options_of, kind=SwarmKind.GROUPS, engine="gateways"),
        " --engine gateways --groups",
    ),
}


def run(kind: str, seed: int) -> Result:
    return simulate(SWARMS[kind].options_of(seed), seed)


@cache
def recorded() -> dict[tuple[str, int], str]:
    """Return the digests by kind of swarm and seed."""
    lines = (line.split() for line in FILE.read_text(encoding="utf-8").splitlines())
    return {(kind, int(seed)): digest for kind, seed, digest in lines}


def main(kinds: list[str]) -> None:
    """Take the digests of these kinds anew, or of all; the others stay."""
    taken = {
        (kind, seed): recorded()[kind, seed] if kinds and kind not in kinds else run(kind, seed).digest
        for kind, swarm in SWARMS.items()
        for seed in swarm.seeds
    }
    lines = (f"{kind} {seed} {digest}\n" for (kind, seed), digest in taken.items())
    FILE.write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
