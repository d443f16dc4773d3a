"""Where planted faults were caught last, by kind and name: a search tries that seed first, and is over at once.

What a search promises does not rest on the file: a fault that is not caught there any more is sought in all its runs.
`ORDERCAST_REWRITE=1 pytest tests/simulation -k planted`, in one process, writes the file anew: of the catches that it
finds in a minute for each fault, the quickest.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

FILE = Path(__file__).parent / "catches.txt"
SEARCH_S = 60.0
REWRITE = os.environ.get("ORDERCAST_REWRITE") == "1"

Catches = dict[tuple[str, str], int]  # seeds, by kind of swarm and name of the fault


def first_catch(kind: str, name: str, seeds: Iterable[int], is_caught: Callable[[int], bool]) -> int | None:
    """Return a seed at which the fault is caught, none if there is none among these."""
    recorded = _recorded().get((kind, name))
    ordered = sorted(seeds, key=lambda seed: seed != recorded)
    if not REWRITE:
        return next(filter(is_caught, ordered), None)
    found = _quickest(ordered, is_caught)
    if found is not None:
        _write({**_read(), (kind, name): found})
    return found


def _quickest(seeds: Iterable[int], is_caught: Callable[[int], bool]) -> int | None:
    until = time.monotonic() + SEARCH_S
    took: dict[int, float] = {}
    for seed in seeds:
        began = time.process_time()
        if is_caught(seed):
            took[seed] = time.process_time() - began
        if took and time.monotonic() > until:
            break
    return min(took, key=took.__getitem__, default=None)


def caught(kind: str) -> list[int]:
    """Return the seeds of all catches of one kind."""
    return sorted({seed for (each, _), seed in _recorded().items() if each == kind})


@cache
def _recorded() -> Catches:
    return _read()


def _read() -> Catches:
    lines = FILE.read_text(encoding="utf-8").splitlines() if FILE.exists() else []
    parts = (line.split(maxsplit=2) for line in lines)
    return {(kind, name): int(seed) for kind, seed, name in parts}


def _write(catches: Catches) -> None:
    lines = (f"{kind} {seed} {name}\n" for (kind, name), seed in sorted(catches.items()))
    FILE.write_text("".join(lines), encoding="utf-8")
