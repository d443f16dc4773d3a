"""Live nodes under both kernels, in turns: what the compiled one (`packaging/fast`) is worth.

Each row is measured under the pure kernel, then under the compiled one, as often as asked; medians and their ratio are
told. Order hashes are compared, as in every live row.

    python -m bench.kernels [--seconds S] [--rounds N] [--sizes 100,1350,8192,65536] [--trace full] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from statistics import median
from typing import Any

from rig.hosts import Hosts, why_not

from bench.live import SIZES, Case, Outcome, interpreter, measure
from ordercast.model.errors import UsageError
from ordercast.model.kernel import COMPILED, PURE, VARIABLE, chosen


def measured(hosts: Hosts, case: Case, kernel: str, seconds: float) -> Outcome:
    """Run a case whose nodes have this kernel."""
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = kernel
    try:
        return measure(hosts, case, seconds, sys.executable)
    finally:
        if before is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = before


def row(hosts: Hosts, case: Case, rounds: int, seconds: float) -> dict[str, Any]:
    found: dict[str, list[Outcome]] = {PURE: [], COMPILED: []}
    for _ in range(rounds):
        for kernel, outcomes in found.items():
            outcomes.append(measured(hosts, case, kernel, seconds))
    told: dict[str, Any] = {"case": case.name}
    for kernel, outcomes in found.items():
        told[kernel] = {
            "per_s": median(outcome.per_s for outcome in outcomes),
            "cpu_us": median(outcome.cpu_us for outcome in outcomes),
            "same_order": all(outcome.same_order for outcome in outcomes),
        }
    told["per_s"] = told[COMPILED]["per_s"] / told[PURE]["per_s"]
    told["cpu"] = told[PURE]["cpu_us"] / told[COMPILED]["cpu_us"]
    return told


def line(told: dict[str, Any]) -> str:
    pure, compiled = told[PURE], told[COMPILED]
    words = f"{told['case']:34} pure {pure['per_s']:9,.0f} msg/s {pure['cpu_us']:7.2f} us"
    words += f"   compiled {compiled['per_s']:9,.0f} msg/s {compiled['cpu_us']:7.2f} us"
    words += f"   {told['per_s']:.2f} times the messages, {told['cpu']:.2f} times for the same CPU"
    return words + ("" if pure["same_order"] and compiled["same_order"] else "  ORDER DIFFERS")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3.0, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=3, help="measurements of each row under each kernel")
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="bytes of a message")
    parser.add_argument("--trace", default="off", help="level of the trace")
    parser.add_argument("--json", type=Path, help="write the results here too")
    arguments = parser.parse_args()
    try:
        chosen(COMPILED)
    except UsageError as error:
        sys.exit(str(error))
    if problem := why_not():
        sys.exit(f"the benchmark needs hosts of its own: {problem}")
    print(interpreter(sys.executable))
    rows = []
    with Hosts(4) as hosts:
        for size in map(int, str(arguments.sizes).split(",")):
            rows.append(row(hosts, Case(size, trace=arguments.trace), arguments.rounds, arguments.seconds))
            print(line(rows[-1]), flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
