"""Two checkouts in turns: any benchmark that writes JSON, here and at another commit, with the ratio of each figure.

Machines differ from minute to minute, so the two run one after the other, several times, and medians are compared. The
other commit runs its own copy of the benchmark, if it has one, and this one's over its source otherwise. Figures are
named by their place in the JSON; only those that both have are shown.

    python -m bench.against COMMIT [--pairs 3] [--only PATTERN] -- bench.lone --rounds 100 --json
    python -m bench.against COMMIT -- bench.live --quick --json {json}

`{json}` stands for a file, for benchmarks that write one; the others print theirs.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

HERE = Path(__file__).parents[1]
FILE = "{json}"


@contextmanager
def checkout(commit: str) -> Iterator[Path]:
    """A folder with the files of a commit, for as long as it is needed."""
    with TemporaryDirectory(prefix="ordercast-against-") as folder:
        place = Path(folder) / "checkout"
        _git("worktree", "add", "--quiet", "--detach", str(place), commit)
        try:
            yield place
        finally:
            _git("worktree", "remove", "--force", str(place))


def _git(*arguments: str) -> None:
    done = subprocess.run(["git", "-C", str(HERE), *arguments], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"git {arguments[0]}: {done.stderr.strip()}")


def run(source: Path, command: Sequence[str], folder: Path) -> dict[str, float]:
    """Return the figures of one run of a benchmark over the source of a checkout."""
    module, *arguments = command
    has_own = (source / Path(*module.split("."))).with_suffix(".py").exists()
    root, file = source if has_own else HERE, folder / "figures.json"
    arguments = [argument.replace(FILE, str(file)) for argument in arguments]
    environment = {**os.environ, "PYTHONPATH": f"{source / 'src'}:{root}", "PYTHONPYCACHEPREFIX": str(folder / "bytes")}
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments], cwd=root, env=environment, capture_output=True, text=True
    )
    if done.returncode:
        sys.exit(f"{module} at {source} ended with {done.returncode}:\n{done.stderr.strip()[-2000:]}")
    try:
        text = file.read_text() if FILE in " ".join(command) else done.stdout
        return dict(figures_of(json.loads(text)))
    except (OSError, ValueError):
        sys.exit(f"{module} wrote no JSON: give it --json, or --json {FILE} if it writes a file")


def figures_of(found: Any, name: str = "") -> Iterator[tuple[str, float]]:
    """Return all numbers, each with its place; rows of a list by what they say of themselves, or by number where
    others say the same."""
    if isinstance(found, dict):
        for key, value in found.items():
            yield from figures_of(value, f"{name} {key}".strip())
    elif isinstance(found, list):
        labels = list(map(_label, found))
        for index, (label, value) in enumerate(zip(labels, found, strict=True)):
            yield from figures_of(value, f"{name} {label if label and labels.count(label) == 1 else index}".strip())
    elif isinstance(found, int | float) and not isinstance(found, bool):
        yield name, float(found)


def _label(value: Any) -> str:
    """Return what a row says of itself, in words."""
    return ", ".join(word for word in value.values() if isinstance(word, str)) if isinstance(value, dict) else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commit")
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--only", default="", help="a regular expression for the names of figures")
    parser.add_argument("--json", action="store_true", help="medians and ratios, for machines")
    parser.add_argument("command", nargs="+", metavar="MODULE ARGUMENT", help="behind --")
    arguments = parser.parse_args()
    there: dict[str, list[float]] = defaultdict(list)
    here: dict[str, list[float]] = defaultdict(list)
    with checkout(arguments.commit) as other, TemporaryDirectory() as folder:
        for pair in range(arguments.pairs):
            order = ((other, there), (HERE, here))
            for source, figures in order if pair % 2 == 0 else reversed(order):
                work = Path(folder) / ("here" if source == HERE else "there")
                work.mkdir(exist_ok=True)
                for name, value in run(source, arguments.command, work).items():
                    figures[name].append(value)
                print(f"\rpair {pair + 1} of {arguments.pairs} ", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    names = [name for name in here if name in there and re.search(arguments.only, name)]
    rows = [(name, median(there[name]), median(here[name])) for name in names]
    if arguments.json:
        print(json.dumps([{"name": name, "there": before, "here": now} for name, before, now in rows]))
        return
    width = max(map(len, names), default=4)
    print(f"{'figure':{width}} {arguments.commit[:8]:>12} {'here':>12} {'here/there':>10}")
    for name, before, now in rows:
        print(f"{name:{width}} {before:12.4g} {now:12.4g} {now / before if before else float('nan'):10.2f}")


if __name__ == "__main__":
    main()
