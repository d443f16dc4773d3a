"""`ordercast campaign` beside `ordercast swarm`: inputs of engines per second, on the same cores and the same seeds.

The two take turns, so that whatever else the machine does burdens both alike: a stretch of seeds by the processes of a
swarm, the same stretch by Spark's executors, and so on until each has worked for so long. Session, workers and
processes are started and warmed before, and live on between the turns. Digests of all runs are compared on the way.

    python -m bench.campaign [--seconds 300] [--turn 60] [--processes 2] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from multiprocessing.pool import Pool
from pathlib import Path

import pyarrow as pa

from ordercast.pipeline.campaign import SESSION_OPTIONS
from ordercast.pipeline.campaign.plan import Cell
from ordercast.pipeline.campaign.results import Results
from ordercast.pipeline.campaign.spread import spread
from ordercast.pipeline.spark_session import open_session
from ordercast.sim.swarm import outline

WARM_UP = 16  # seeds
CELL = Cell("all", "", {}, "", "plain", {}, (), None)


@dataclass
class Side:
    runs: int = 0
    inputs: int = 0
    seconds: float = 0.0
    rates: list[float] = field(default_factory=list)  # of each turn

    def add(self, runs: int, inputs: int, seconds: float) -> None:
        self.runs += runs
        self.inputs += inputs
        self.seconds += seconds
        self.rates.append(inputs / seconds)

    @property
    def rate(self) -> float:
        return self.inputs / max(self.seconds, 1e-9)


@dataclass
class Compared:
    swarm: Side = field(default_factory=Side)
    campaign: Side = field(default_factory=Side)
    processes: int = 1
    load_average: tuple[float, float, float] = (0.0, 0.0, 0.0)

    @property
    def ratio(self) -> float:
        return self.campaign.rate / max(self.swarm.rate, 1e-9)


def by_swarm(pool: Pool, seeds: range, processes: int) -> tuple[dict[int, str], int, float]:
    """Digests, inputs and seconds, with the pool and the chunks that `sim.swarm.swarm` uses."""
    began = time.perf_counter()
    chunk = max(1, min(16, len(seeds) // (4 * processes)))
    outlines = list(pool.imap(outline, seeds, chunksize=chunk))
    seconds = time.perf_counter() - began
    digests = {one.seed: one.digest for one in outlines}
    return digests, sum(one.inputs for one in outlines), seconds


def turns(first: int, per_turn: int) -> Iterator[range]:
    while True:
        yield range(first, first + per_turn)
        first += per_turn


def compare(seconds: float, turn_s: float, processes: int) -> Compared:
    compared = Compared(processes=processes)
    with (
        tempfile.TemporaryDirectory() as folder,
        multiprocessing.get_context("spawn").Pool(processes) as pool,
        open_session("bench", f"local[{processes}]", SESSION_OPTIONS) as spark,
    ):
        results = Results(Path(folder))

        def by_campaign(seeds: range) -> tuple[dict[int, str], int, float]:
            tables: list[pa.Table] = []

            def keep(table: pa.Table) -> None:
                results.append(table)
                tables.append(table)

            began = time.perf_counter()
            spread(spark, [CELL], [(0, seed) for seed in seeds], keep)
            took = time.perf_counter() - began
            rows = pa.concat_tables(tables)
            digests = dict(zip(rows["seed"].to_pylist(), rows["digest"].to_pylist(), strict=True))
            return digests, sum(rows["inputs"].to_pylist()), took

        by_swarm(pool, range(WARM_UP), processes)
        by_campaign(range(WARM_UP))
        _, _, took = by_campaign(range(WARM_UP, 2 * WARM_UP))
        per_turn = max(WARM_UP, round(WARM_UP * turn_s / took))
        for seeds in turns(2 * WARM_UP, per_turn):
            expected, inputs, took = by_swarm(pool, seeds, processes)
            compared.swarm.add(len(seeds), inputs, took)
            found, inputs, took = by_campaign(seeds)
            compared.campaign.add(len(seeds), inputs, took)
            if found != expected:
                raise SystemExit(f"the digests of seeds {seeds} differ: a run depends on where it is run")
            print(
                f"seeds {seeds[0]}..{seeds[-1]}: swarm {compared.swarm.rates[-1]:,.0f}, "
                f"campaign {compared.campaign.rates[-1]:,.0f} inputs/s",
                flush=True,
            )
            if min(compared.swarm.seconds, compared.campaign.seconds) >= seconds:
                break
    compared.load_average = os.getloadavg()
    return compared


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=300, help="how long each of the two works")
    parser.add_argument("--turn", type=float, default=60, help="seconds of a turn, roughly")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    compared = compare(arguments.seconds, arguments.turn, arguments.processes)
    for name, side in (("swarm", compared.swarm), ("campaign", compared.campaign)):
        print(
            f"{name:9} {side.runs:,} runs, {side.inputs:,} inputs in {side.seconds:,.1f} s: {side.rate:,.0f} inputs/s"
        )
    load = " ".join(f"{value:.1f}" for value in compared.load_average)
    print(f"campaign / swarm {compared.ratio:.3f} on {compared.processes} cores, load average at the end {load}")
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(asdict(compared) | {"ratio": compared.ratio}, indent=2) + "\n")


if __name__ == "__main__":
    main()
