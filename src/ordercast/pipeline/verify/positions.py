"""Positions as single numbers that compare as the positions do: cheap to sort, and good within one call only.

A position has 207 bits, a number of numpy has 63. An engine uses few of the origins and few of the numbers, however far
apart they are: origins are numbered in their order, and so are numbers where they are too large as they stand.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ordercast.model.ids import SLOT_MAX, Position
from ordercast.pipeline.verify.rows import Ints, Rows, Unsound
from ordercast.trace.columns import signed

POSITION = ("origin_seq", "origin_rep", "number", "slot")
SLOT_BITS, KEY_BITS = 16, 63


def keys_of(rows: Rows, others: Sequence[Position] = ()) -> tuple[Ints, Ints]:
    """Return the key of each row's position, and of each of the others. `Unsound` when one is no position, or when
    there are too many."""
    seq, rep, number, slot = (rows[name] for name in POSITION)
    if others:
        more = np.array([(*map(signed, other.origin), signed(other.number), other.slot) for other in others], np.int64)
        seq, rep, number, slot = (
            np.concatenate([known, column]) for known, column in zip((seq, rep, number, slot), more.T, strict=True)
        )
    if not len(number):
        return number, number
    if number.min() < 0 or slot.min() < 0 or slot.max() > SLOT_MAX:
        raise Unsound("a number that is no position")
    origin = _ranks(seq, rep)
    bits = KEY_BITS - SLOT_BITS - int(origin.max()).bit_length()
    if int(number.max()) >> bits:
        number = np.unique(number, return_inverse=True)[1].reshape(-1)
    if int(number.max()) >> bits:
        raise Unsound("too many positions for the fast judge")
    keys = origin << (bits + SLOT_BITS) | number << SLOT_BITS | slot
    return keys[: len(rows)], keys[len(rows) :]


def _ranks(seq: Ints, rep: Ints) -> Ints:
    """Return the rank of each origin among all of them. Neighbours are often equal, so that there are few to sort."""
    edges = np.flatnonzero((np.diff(seq) != 0) | (np.diff(rep) != 0)) + 1
    starts = np.concatenate([[0], edges])
    pairs = np.stack([seq[starts], rep[starts]], axis=1).view(np.uint64)  # signed in the trace, compared as they are
    ranks = np.unique(pairs, axis=0, return_inverse=True)[1].reshape(-1)
    return np.repeat(ranks.astype(np.int64), np.diff(np.append(starts, len(seq))))
