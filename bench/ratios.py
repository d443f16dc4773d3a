"""What a seal, a full trace and the compiled kernel cost or gain: rows of `bench/live.py` in turns, and their ratios.

    python -m bench.ratios [--only seal|trace|kernel] [--rounds 3] [--seconds 2] [--json FILE]

Machines differ from minute to minute, so all cases take turns, round by round, and a ratio is the median of what the
rounds say. `kernel` compares compiled with pure; all else is shown for the kernels there are. Needs root, for hosts of
their own.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import NamedTuple

from rig.hosts import Hosts, why_not

from bench.live import LOW_RATE, Case, Outcome, line, measure
from ordercast.model import kernel

KERNELS = ("pure", "compiled") if kernel.NAME == "compiled" else ("pure",)
SIZES = (1350, 100)


def _rate(this: Outcome, other: Outcome) -> float:
    return this.per_s / other.per_s


def _cpu(this: Outcome, other: Outcome) -> float:
    return this.cpu_us / other.cpu_us


def _longer(this: Outcome, other: Outcome) -> float:
    return this.p50_us - other.p50_us


class Ratio(NamedTuple):
    kind: str
    words: str
    this: Case
    other: Case
    of: Callable[[Outcome, Outcome], float]


def ratios() -> list[Ratio]:
    """Return what is compared with what."""
    found = []
    for size in SIZES:
        for name in KERNELS:
            base = Case(size, kernel=name)
            sealed, full = replace(base, sealed=True), replace(base, trace="full")
            found.append(Ratio("seal", f"{size} B, {name}: rate, sealed to clear", sealed, base, _rate))
            found.append(Ratio("trace", f"{size} B, {name}: CPU, trace full to off", full, base, _cpu))
        if len(KERNELS) > 1:
            compiled, pure = (Case(size, kernel=name) for name in ("compiled", "pure"))
            found.append(Ratio("kernel", f"{size} B: rate, compiled to pure", compiled, pure, _rate))
    for name in KERNELS:
        lone = Case(100, 1, delivery="messages", rate=LOW_RATE, kernel=name)
        words = f"100 B, {name}: µs by which the median of a lone message is longer, sealed"
        found.append(Ratio("seal", words, replace(lone, sealed=True), lone, _longer))
    return found


def measured(wanted: Sequence[Ratio], rounds: int, seconds: float) -> dict[str, float]:
    """Run all cases in turns, and return the median of each ratio."""
    cases = list(dict.fromkeys(case for ratio in wanted for case in (ratio.other, ratio.this)))
    seen: dict[str, list[float]] = {ratio.words: [] for ratio in wanted}
    with Hosts(4) as hosts:
        for number in range(1, rounds + 1):
            print(f"round {number} of {rounds}", flush=True)
            outcomes = {}
            for case in cases:
                outcomes[case] = measure(hosts, case, seconds, sys.executable)
                print(line(outcomes[case]), flush=True)
            for ratio in wanted:
                seen[ratio.words].append(ratio.of(outcomes[ratio.this], outcomes[ratio.other]))
    return {words: median(values) for words, values in seen.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=("seal", "trace", "kernel"), help="one kind of ratio, not all")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each row")
    parser.add_argument("--json", type=Path, help="write the ratios here too")
    arguments = parser.parse_args()
    if problem := why_not():
        sys.exit(f"the benchmark needs hosts of its own: {problem}")
    wanted = [ratio for ratio in ratios() if arguments.only in (None, ratio.kind)]
    if not wanted:
        sys.exit("there is no compiled kernel here to compare with: pip install packaging/fast")
    found = measured(wanted, arguments.rounds, arguments.seconds)
    for words, value in found.items():
        print(f"{words}: {value:.2f}" if abs(value) < 10 else f"{words}: {value:.0f}")
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
