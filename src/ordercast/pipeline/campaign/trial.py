"""One simulation of a campaign: a cell and a seed in, one row out. It runs in the executors; pure but for a stopwatch.

An exception of the engine is a result like any other: the row says FAILED, with the end of the traceback.
"""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from ordercast import __version__
from ordercast.pipeline.campaign.gauge import Gauge
from ordercast.pipeline.campaign.plan import Cell
from ordercast.sim.run import PACKETS, Result, simulate

VALID, NOT_SETTLED, FAILED = "VALID", "NOT SETTLED", "FAILED"  # and INVALID and UNKNOWN, as the checkers say

SCHEMA = pa.schema(
    [
        ("cell", pa.string()),
        ("cell_key", pa.string()),
        ("grid", pa.string()),
        ("parameters", pa.string()),
        ("schedule", pa.string()),
        ("engine", pa.string()),
        ("seed", pa.int64()),
        ("outcome", pa.string()),
        ("sentence", pa.string()),
        ("digest", pa.string()),
        ("inputs", pa.int64()),
        ("submissions", pa.int64()),
        ("virtual_ns", pa.int64()),
        ("seconds", pa.float64()),
        ("measures", pa.map_(pa.string(), pa.float64())),
        ("counts", pa.map_(pa.string(), pa.int64())),
        ("version", pa.string()),
    ]
)
SPARK_SCHEMA = (
    "cell string, cell_key string, grid string, parameters string, schedule string, engine string, seed bigint, "
    "outcome string, sentence string, digest string, inputs bigint, submissions bigint, virtual_ns bigint, "
    "seconds double, measures map<string,double>, counts map<string,bigint>, version string"
)

Row = dict[str, Any]


def trial(cell: Cell, seed: int) -> Row:
    began = time.perf_counter()
    row: Row = {
        "cell": cell.name,
        "cell_key": cell.key,
        "grid": cell.grid,
        "parameters": json.dumps(dict(cell.axes), sort_keys=True),
        "schedule": cell.schedule,
        "seed": seed,
        "version": __version__,
    }
    try:
        row |= _run(cell, seed)
    except Exception:
        nothing = {"engine": "", "digest": "", "inputs": 0, "submissions": 0, "virtual_ns": 0}
        sentence = traceback.format_exc(limit=-3)
        row |= {**nothing, "outcome": FAILED, "sentence": sentence, "measures": [], "counts": []}
    row["seconds"] = time.perf_counter() - began
    return row


def _run(cell: Cell, seed: int) -> Row:
    options = cell.options(seed)
    gauge = None if cell.measure is None else Gauge(cell.measure, by_sender=bool(options.rates))
    result = simulate(options, seed, observer=None if gauge is None else gauge.observe)
    return {
        "engine": options.engine,
        "outcome": _outcome(result),
        "sentence": "" if result.is_valid else _sentence(result),
        "digest": result.digest,
        "inputs": result.inputs,
        "submissions": options.submissions,
        "virtual_ns": result.virtual_ns,
        "measures": [] if gauge is None else sorted({**gauge.measures(), **_cost(result)}.items()),
        "counts": sorted(result.counts.items()),
    }


def _cost(result: Result) -> dict[str, float]:
    """What a message costs in packets; a multicast is one. Over the whole run."""
    submissions = result.options.submissions
    return {"packets_per_message": result.counts[PACKETS] / submissions} if submissions else {}


def _outcome(result: Result) -> str:
    if result.verdict.outcome.value == VALID and not result.settled:
        return NOT_SETTLED
    return result.verdict.outcome.value


def _sentence(result: Result) -> str:
    if result.settled:
        return result.verdict.sentence
    return f"not settled {result.options.settle_ns / 1e9:.0f} s after the network healed. {result.verdict.sentence}"


def batch_of(rows: Sequence[Row]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(list(rows), schema=SCHEMA)


def run_batches(cells: Mapping[int, Cell], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """In an executor: places of cells and seeds in, one batch per simulation out."""
    for batch in batches:
        for place, seed in zip(batch["cell"].to_pylist(), batch["seed"].to_pylist(), strict=True):
            yield batch_of([trial(cells[place], seed)])
