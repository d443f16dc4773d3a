"""Sequences of message numbers: the longest of several, and how far another agrees with it. When agreed delivery holds,
the longest sequence of a configuration is its delivery order, and all others are prefixes of it.

Numbers are shared objects, so comparing two equal lists costs next to nothing: that is what keeps the checkers fast.
"""

from __future__ import annotations

from collections.abc import Iterable

from ordercast.checker.history import History
from ordercast.checker.life import Life, Stay
from ordercast.model.ids import ConfigurationId


def stays_of_views(history: History) -> dict[ConfigurationId, list[tuple[Life, Stay]]]:
    """Return for each configuration who stayed in it and what it did there."""
    result: dict[ConfigurationId, list[tuple[Life, Stay]]] = {}
    for life in history.lives():
        for stay in life.stays[1:]:
            result.setdefault(stay.id, []).append((life, stay))
    return result


def longest(sequences: Iterable[list[int]]) -> list[int]:
    """The first of the longest."""
    return max(sequences, key=len, default=[])


def common_length(first: list[int], second: list[int]) -> int:
    """How many elements both begin with."""
    length = min(len(first), len(second))
    if first[:length] == second[:length]:
        return length
    return next(index for index in range(length) if first[index] != second[index])
