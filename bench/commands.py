"""How long commands take to their first line, how much memory they need, and how large the package is.

Every command is run in turns with a Python that does nothing, which is the floor. Commands that ask a daemon ask one
that was started for it. Times are those of a whole process, from its start to its first line; CPU times, to its end,
are what a busy machine leaves nearly as they are. Memory below that of this program itself, 30 MB, is not seen.

    python -m bench.commands [--runs N] [--before REF] [--only COMMAND] [--json FILE]

With --before the same commands of another commit are run in turns with those of this one.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from statistics import median
from typing import Any

from ordercast.cli.commands import NAMES
from ordercast.cli.tables import new_table
from ordercast.cli.terminal import output
from ordercast.model.printable import json_text

ROOT = Path(__file__).parents[1]
PORT = 18_700
STATUS = PORT + 90
VERSION_MAX_S, FIRST_LINE_MAX_S = 0.1, 0.25
FLOOR, HERE, BEFORE = "python alone", "here", "before"
ANSWERS = (
    "engines",
    "config check docs/examples/cluster.toml --name beta",
    f"status :{STATUS}",
    "groups",
    "send news hello",
    "cluster list",
    "archive list --dir build/no-archive",
)
HELP = ("--version", "--help", *(f"{name} --help" for name in NAMES))
EXTRAS = {"cli": ("rich",), "trace": ("pyarrow",), "spark": ("pyspark", "numpy", "pandas")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--before", metavar="REF")
    parser.add_argument("--only", metavar="COMMAND", action="append", help="this one; repeat")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    with trees(asked.before) as sources, tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "ORDERCAST_FOLDER": folder, "PYTHONPYCACHEPREFIX": f"{folder}/pyc"}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        with daemon(environment, sources[HERE]):
            rows = [row_of(words, sources, environment, asked.runs) for words in asked.only or (*HELP, *ANSWERS)]
    sizes = installed_sizes()
    if asked.json:
        asked.json.write_text(json_text({"commands": rows, "sizes": sizes}, indent=2), encoding="utf-8")
    draw(rows, sizes, list(sources))


@contextmanager
def trees(before: str | None) -> Iterator[dict[str, Path]]:
    """Where the code of this commit is, and that of another."""
    if before is None:
        yield {HERE: ROOT / "src"}
        return
    with tempfile.TemporaryDirectory() as folder:
        packed = subprocess.run(["git", "archive", before, "src"], cwd=ROOT, check=True, capture_output=True).stdout
        subprocess.run(["tar", "-x", "-C", folder], input=packed, check=True)
        yield {HERE: ROOT / "src", BEFORE: Path(folder) / "src"}


@contextmanager
def daemon(environment: dict[str, str], source: Path) -> Iterator[None]:
    words = ["-m", "ordercast", "daemon", "--port", str(PORT), "--status-port", str(STATUS), "--until-eof"]
    process = subprocess.Popen(
        [sys.executable, *words],
        env={**environment, "PYTHONPATH": str(source)},
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None and process.stdin is not None
    for line in process.stderr:
        if "view" in line:
            break
    try:
        yield
    finally:
        process.stdin.close()
        process.stderr.close()
        process.wait()


def row_of(words: str, sources: dict[str, Path], environment: dict[str, str], runs: int) -> dict[str, Any]:
    """Run a command in turns, once more than asked for: the first run compiles."""
    times: dict[str, list[float]] = {name: [] for name in (FLOOR, *sources)}
    cpu: dict[str, list[float]] = {name: [] for name in times}
    memory = dict.fromkeys(times, 0)
    for number in range(runs + 1):
        for name in times:
            code = ["-c", "print()"] if name == FLOOR else ["-m", "ordercast", *words.split()]
            source = sources.get(name, sources[HERE])
            took, used, peak = first_line([sys.executable, *code], {**environment, "PYTHONPATH": str(source)})
            if number:
                times[name].append(took)
                cpu[name].append(used)
                memory[name] = max(memory[name], peak)
    return {
        "command": words,
        "seconds": {name: round(median(found), 4) for name, found in times.items()},
        "least_seconds": {name: round(min(found), 4) for name, found in times.items()},
        "cpu_seconds": {name: round(min(found), 4) for name, found in cpu.items()},
        "memory": memory,
    }


def first_line(command: list[str], environment: dict[str, str]) -> tuple[float, float, int]:
    """Seconds to the first line, wherever it is written; CPU time, and the most memory that the process had."""
    began = time.perf_counter()
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert process.stdout is not None
    process.stdout.readline()
    took = time.perf_counter() - began
    process.stdout.read()
    process.stdout.close()
    _, _, usage = os.wait4(process.pid, 0)
    process.returncode = 0
    return took, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def installed_sizes() -> dict[str, int]:
    """Bytes on disk: of Ordercast itself, and of what extras bring, without what those bring in turn."""
    sizes = {"ordercast": sum(file.stat().st_size for file in (ROOT / "src").rglob("*.py"))}
    for extra, packages in EXTRAS.items():
        for package in packages:
            try:
                files = distribution(package).files or ()
            except PackageNotFoundError:
                continue
            paths = [Path(str(file.locate())) for file in files]
            sizes[f"{extra}: {package}"] = sum(path.stat().st_size for path in paths if path.is_file())
    return sizes


def draw(rows: list[dict[str, Any]], sizes: dict[str, int], names: list[str]) -> None:
    console = output()
    heads = [f"{name}, {what}" for name in names for what in ("s", "least", "CPU", "MB")]
    table = new_table("command", FLOOR, *heads, "limit", right=(FLOOR, *heads, "limit"))
    for row in rows:
        limit = VERSION_MAX_S if row["command"] == "--version" else FIRST_LINE_MAX_S
        cells = []
        for name in names:
            cells += [f"{row[what][name]:.3f}" for what in ("seconds", "least_seconds", "cpu_seconds")]
            cells.append(f"{row['memory'][name] / 1e6:.0f}")
        mark = "" if row["least_seconds"][HERE] < limit else " !"
        table.add_row(row["command"], f"{row['seconds'][FLOOR]:.3f}", *cells, f"{limit}{mark}")
    console.print(table)
    sizes_table = new_table("installed", "MB", right=("MB",))
    for what, size in sizes.items():
        sizes_table.add_row(what, f"{size / 1e6:.1f}")
    console.print(sizes_table)


if __name__ == "__main__":
    main()
