"""Where planted faults were caught last, by kind and name: a search tries that seed first, and is over at once.

What a search promises does not rest on the file: a fault that is not caught there any more is sought in all its runs.
`ORDERCAST_REWRITE=1 pytest tests/simulation -k planted`, in one process, searches from the seeds of short runs and the
first ones on, and writes the file anew.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path

FILE = Path(__file__).parent / "catches.txt"
SHORT = {"groups": (11, 6, 2, 9, 3, 5, 1), "replicated": (3, 10, 1, 11, 0, 5, 4)}  # seeds, by kind of swarm
REWRITE = os.environ.get("ORDERCAST_REWRITE") == "1"

Catches = dict[tuple[str, str], int]  # seeds, by kind of swarm and name of the fault


def first_catch(kind: str, name: str, seeds: Iterable[int], is_caught: Callable[[int], bool]) -> int | None:
    """Return a seed at which the fault is caught, none if there is none among these."""
    first = SHORT.get(kind, ()) if REWRITE else [_recorded().get((kind, name))]
    found = next((seed for seed in _sorted(seeds, first) if is_caught(seed)), None)
    if REWRITE and found is not None:
        _write({**_read(), (kind, name): found})
    return found


def _sorted(seeds: Iterable[int], first: Sequence[int | None]) -> list[int]:
    return sorted(seeds, key=lambda seed: first.index(seed) if seed in first else len(first))


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
