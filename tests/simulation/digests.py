"""Digests of some hostile runs, as last taken: a change that should change nothing changes none of them.

Taken anew with `python -m tests.simulation.digests`, in a commit that says why the runs differ.
"""

from __future__ import annotations

from pathlib import Path

from ordercast.sim.run import simulate
from ordercast.sim.swarm import SwarmKind, hostile_options, options_of

FILE = Path(__file__).parent / "digests.txt"
PLAIN = range(100, 180)
NETWORKS = range(1000, 1020)


def recorded() -> dict[tuple[str, int], str]:
    """Return the digests by kind of swarm and seed."""
    lines = (line.split() for line in FILE.read_text(encoding="utf-8").splitlines())
    return {(kind, int(seed)): digest for kind, seed, digest in lines}


def main() -> None:
    lines = [f"plain {seed} {simulate(hostile_options(seed), seed).digest}\n" for seed in PLAIN]
    lines += [f"networks {seed} {simulate(options_of(seed, SwarmKind.NETWORKS), seed).digest}\n" for seed in NETWORKS]
    FILE.write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
