"""Sequences of message numbers: the delivery order of a configuration, and how far another sequence agrees with it.

Numbers are shared objects, so comparing two equal lists costs next to nothing: that is what keeps the checkers fast.
"""

from __future__ import annotations

from collections.abc import Iterable

from ordercast.checker.history import History
from ordercast.checker.life import Stay
from ordercast.model.ids import RingId


def stays_of_views(history: History) -> dict[RingId, list[tuple[int, Stay]]]:
    """Of each configuration, who stayed in it (the index of the life) and what it did there."""
    result: dict[RingId, list[tuple[int, Stay]]] = {}
    for index, life in enumerate(history.lives()):
        for stay in life.stays[1:]:
            result.setdefault(stay.id, []).append((index, stay))
    return result


def regular_sequences(history: History) -> dict[RingId, list[int]]:
    """Of each regular configuration, the longest sequence that a process delivered in it. When agreed delivery holds,
    this is the delivery order for that configuration, and all others are prefixes of it."""
    return {
        view: longest(stay.numbers for _, stay in stays)
        for view, stays in stays_of_views(history).items()
        if stays[0][1].is_regular
    }


def longest(sequences: Iterable[list[int]]) -> list[int]:
    """The first of the longest."""
    return max(sequences, key=len, default=[])


def common_length(first: list[int], second: list[int]) -> int:
    """How many elements both begin with."""
    length = min(len(first), len(second))
    if first[:length] == second[:length]:
        return length
    return next(index for index in range(length) if first[index] != second[index])
