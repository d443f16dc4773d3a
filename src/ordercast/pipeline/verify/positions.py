"""Positions as single numbers that compare as the positions do: cheap to sort, and good within one call only.

A position has 207 bits, a number of numpy has 63. An engine uses few of the origins and few of the numbers, however far
apart they are: origins are numbered in their order, and so are numbers where they are too large as they stand.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ordercast.model.ids import NO_CONFIGURATION, SLOT_MAX, Position
from ordercast.pipeline.verify.rows import Ints, Rows, Unsound
from ordercast.trace.columns import signed

POSITION = ("origin_seq", "origin_rep", "number", "slot")
LOWEST = Position(NO_CONFIGURATION, 0, 0)
SLOT_BITS, KEY_BITS = 16, 63


def keys_of(rows: Rows, others: Sequence[Position] = ()) -> tuple[Ints, Ints]:
    """Return the key of each row's position, and of each of the others. `Unsound` when one is no position, or when
    there are too many."""
    flat = [(*map(signed, other.origin), signed(other.number), other.slot) for other in others]
    both = [[rows[name] for name in POSITION], list(np.array(flat, np.int64).reshape(-1, 4).T)]
    numbers, slots = [each[2] for each in both], [each[3] for each in both]
    if min(map(_low, numbers)) < 0 or min(map(_low, slots)) < 0 or max(map(_high, slots)) > SLOT_MAX:
        raise Unsound("a number that is no position")
    origins = _ranked([(each[0], each[1]) for each in both])
    bits = KEY_BITS - SLOT_BITS - max(map(_high, origins)).bit_length()
    if max(map(_high, numbers)) >> bits:
        ranks = np.unique(np.concatenate(numbers), return_inverse=True)[1].reshape(-1)
        numbers = [ranks[: len(rows)], ranks[len(rows) :]]
    if max(map(_high, numbers)) >> bits:
        raise Unsound("too many positions for the fast judge")
    ours, theirs = (
        origin << (bits + SLOT_BITS) | number << SLOT_BITS | slot
        for origin, number, slot in zip(origins, numbers, slots, strict=True)
    )
    return ours, theirs


def _low(column: Ints) -> int:
    return int(column.min(initial=0))


def _high(column: Ints) -> int:
    return int(column.max(initial=0))


def _ranked(origins: Sequence[tuple[Ints, Ints]]) -> list[Ints]:
    """Return the rank of each origin among all of them. Neighbours are often equal, so that there are few to sort."""
    starts, pairs = [], []
    for seq, representative in origins:
        is_new = (np.diff(seq) != 0) | (np.diff(representative) != 0)
        starts.append(np.concatenate([[0], np.flatnonzero(is_new) + 1]) if len(seq) else np.zeros(0, np.int64))
        pairs.append(np.stack([seq[starts[-1]], representative[starts[-1]]], axis=1))
    joined = np.concatenate(pairs).view(np.uint64)  # signed in the trace, compared as they are
    ranks = np.unique(joined, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)
    split = np.split(ranks, [len(starts[0])])
    return [
        np.repeat(rank, np.diff(np.append(start, len(seq))))
        for rank, start, (seq, _) in zip(split, starts, origins, strict=True)
    ]
