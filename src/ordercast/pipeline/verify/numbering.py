"""Whether the rows of a run are all there, each once: the numbers of rows and of events have no gap and no double.

`idx` numbers the rows of each process, `n` the events of the run; rows of one batch share their `n`. A run in one piece
is checked exactly (`check_whole`). The pieces of a run too large for that give marks that are compared along each
process, and a fingerprint of all numbers that must be that of 0, 1, 2 … (`expected_sum`).
"""

from __future__ import annotations

import numpy as np

from ordercast.pipeline.verify.rows import Flags, Ints, Rows, Unsound

_UINT = np.uint64
_CHUNK = 1 << 22
NUMBER_RANGE = 1 << 24  # numbers whose fingerprint one task computes


def check_whole(rows: Rows) -> int:
    """All rows of a run, sorted as they were written. Returns the number of events."""
    process, idx, n = rows["process"], rows["idx"], rows["n"]
    if not len(rows):
        raise Unsound("the trace is empty")
    is_same = np.diff(process) == 0
    if (np.diff(process) < 0).any() or (np.diff(idx)[is_same] != 1).any():
        raise Unsound("rows of a process are missing or not in order")
    if idx[0] != 0 or (idx[1:][~is_same] != 0).any():
        raise Unsound("the first rows of a process are missing")
    begins = event_begins(rows)
    numbers = n[begins]
    count = len(numbers)
    if numbers.min() != 0 or numbers.max() != count - 1:
        raise Unsound("events are missing or numbered twice")
    seen = np.zeros(count, np.bool_)
    seen[numbers] = True
    if not seen.all():
        raise Unsound("events are missing or numbered twice")
    return count


def event_begins(rows: Rows) -> Flags:
    """Which rows begin an event; `Unsound` when the rows of a batch are not alike or numbers fall."""
    process, n, kind = rows["process"], rows["n"], rows["kind"]
    is_same = np.diff(process) == 0
    step = np.diff(n)
    if (step[is_same] < 0).any():
        raise Unsound("events of a process are not numbered in its order")
    is_more = is_same & (step == 0)
    if (np.diff(kind)[is_more] != 0).any() or (kind[1:][is_more] > 2).any():
        raise Unsound("two events have one number")
    begins = np.ones(len(rows), np.bool_)
    begins[1:] = ~is_more
    return begins


def scrambled(numbers: Ints) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    """Each number as 64 bits that look random (splitmix64)."""
    with np.errstate(over="ignore"):
        x = numbers.astype(_UINT) + _UINT(0x9E3779B97F4A7C15)
        x = (x ^ (x >> _UINT(30))) * _UINT(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> _UINT(27))) * _UINT(0x94D049BB133111EB)
        mixed: np.ndarray[tuple[int], np.dtype[np.uint64]] = x ^ (x >> _UINT(31))
        return mixed


def fingerprint(numbers: Ints) -> int:
    """The same for the same numbers in any order; another, almost surely, for others. Sums modulo 2⁶⁴ of parts add."""
    return int(scrambled(numbers).sum(dtype=_UINT))


def expected_sum(begin: int, end: int) -> int:
    """The fingerprint of begin, begin + 1, … end - 1."""
    total = 0
    for first in range(begin, end, _CHUNK):
        total += fingerprint(np.arange(first, min(first + _CHUNK, end), dtype=np.int64))
    return total % (1 << 64)


def expected_in(bounds: tuple[int, int]) -> int:
    """The same, of a pair."""
    return expected_sum(*bounds)
