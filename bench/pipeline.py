"""`ordercast verify` against the size of its input, beside `ordercast check` on the same traces: `make bench-pipeline`.

Three shapes: many runs (recorded simulations, repeated), one long run, and the same as a folder of live traces. For
each size: wall time, CPU time, rate, largest memory of all processes together, and growth against the smallest size
(1.00 is linear). Session start is in the wall time. Sizes are rows of the trace: a message submitted or delivered is
one, and so is every other event.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.long_traces import base_runs, live_run, long_run, many_runs, shape_of
from ordercast.cli.daemons import ordercast_command

MANY, ONE, LIVE = "many runs", "one run", "live"
CHECK_ROWS_MAX = 5_500_000  # `check` takes about 25 µs a row, and a gigabyte for a million of one run
POLL_S = 0.25


@dataclass(frozen=True, slots=True)
class Measured:
    shape: str
    command: str
    rows: int
    seconds: float
    cpu_seconds: float
    memory_mib: int
    load: float  # of the machine, when it began
    valid: bool


def main() -> None:
    arguments = _arguments()
    measured: list[Measured] = []
    with tempfile.TemporaryDirectory(prefix="ordercast-bench-") as temporary:
        folder = arguments.folder or Path(temporary)
        for rows in arguments.rows:
            for shape in arguments.shapes:
                traces, count = _traces(folder, shape, rows)
                commands = {"verify": ["verify", str(traces), "--master", arguments.master]}
                if count <= arguments.check_max:
                    commands["check"] = ["check", str(traces)]
                for name, command in commands.items():
                    measured.append(_measure(shape, name, count, command))
                    print(_line(measured[-1], measured), flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(each) for each in measured], indent=2))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=_count, nargs="+", default=[5_000_000, 50_000_000], help="such as 5M 50M 500M")
    parser.add_argument("--shapes", nargs="+", choices=(MANY, ONE, LIVE), default=[MANY, ONE, LIVE])
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--check-max", type=_count, default=CHECK_ROWS_MAX, help="largest size for `ordercast check`")
    parser.add_argument("--folder", type=Path, help="where traces are made, and kept for the next time")
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


def _count(text: str) -> int:
    return int(float(text.upper().removesuffix("M")) * 1_000_000) if text.upper().endswith("M") else int(text)


def _traces(folder: Path, shape: str, rows: int) -> tuple[Path, int]:
    """Makes them unless they are there."""
    place = folder / f"{shape.replace(' ', '-')}-{rows}"
    known = place / "rows"
    if not known.exists():
        began = time.monotonic()
        if shape == MANY:
            count = many_runs(place, base_runs(folder / "bases"), rows)
        elif shape == LIVE:
            count = live_run(place, shape_of(rows))
        else:
            count = long_run(place / "run-1.parquet", shape_of(rows))
        known.write_text(str(count))
        print(f"  {shape}, {count:,} rows written in {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    return place, int(known.read_text())


def _measure(shape: str, name: str, rows: int, command: list[str]) -> Measured:
    load, began = os.getloadavg()[0], time.monotonic()
    memory, cpu = 0, dict[int, float]()
    process = subprocess.Popen(ordercast_command(*command), stdout=subprocess.DEVNULL, start_new_session=True)
    while process.poll() is None:
        memory = max(memory, _look(process.pid, cpu))
        time.sleep(POLL_S)
    seconds = time.monotonic() - began
    return Measured(shape, name, rows, seconds, sum(cpu.values()), memory, load, process.returncode == 0)


def _look(session: int, cpu: dict[int, float]) -> int:
    """MiB of all processes of this session, what they share counted once for each; `cpu` gets the seconds that each of
    them has used. (Workers end without anybody waiting for them, so the system's own sum lacks them.)"""
    total = 0
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if os.getsid(int(entry.name)) == session:
                    total += int((entry / "statm").read_text().split()[1])
                    user, system = (entry / "stat").read_text().rpartition(")")[2].split()[11:13]
                    cpu[int(entry.name)] = (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
            except (OSError, ValueError, IndexError):
                continue
    return total * resource.getpagesize() >> 20


def _line(each: Measured, measured: list[Measured]) -> str:
    first = next(other for other in measured if (other.shape, other.command) == (each.shape, each.command))
    growth = (each.seconds / each.rows) / (first.seconds / first.rows)
    cpu_growth = (each.cpu_seconds / each.rows) / (first.cpu_seconds / first.rows)
    rate = each.rows / each.seconds / 1e6
    return (
        f"{each.shape:9}  {each.command:6}  {each.rows:>11,} rows  {each.seconds:7.1f} s wall"
        f"  {each.cpu_seconds:7.1f} s CPU  {rate:6.2f} M rows/s  {each.memory_mib:6,} MiB"
        f"  growth {growth:.2f} (CPU {cpu_growth:.2f})  load {each.load:.1f}  {'VALID' if each.valid else 'NOT VALID'}"
    )


if __name__ == "__main__":
    main()
