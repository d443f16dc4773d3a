"""The paper's distributions: whose slots are whose, and the book-keeper's window, from which weights come.

Slots are a sequence of members that the weights and the distribution's number fix. Drawn: one after the other, each
member with the probability of its weight, as the paper's generator does; here by a mixing function of (number, slot),
so that no state is kept. Even: smooth weighted round robin.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from itertools import accumulate

from ordercast.order.adaptive.policy import difference
from ordercast.order.adaptive.slots import even_sequence
from ordercast.order.baselines.config import BaselineConfig

MASK = (1 << 64) - 1


def mixed(value: int) -> int:
    """Return 64 bits that look drawn (the finalizer of SplitMix64)."""
    value = (value + 0x9E3779B97F4A7C15) & MASK
    value = ((value ^ value >> 30) * 0xBF58476D1CE4E5B9) & MASK
    value = ((value ^ value >> 27) * 0x94D049BB133111EB) & MASK
    return value ^ value >> 31


class Owners:
    __slots__ = ("_drawn", "_even", "_number")

    def __init__(self, number: int, weights: Sequence[int], sequence: str) -> None:
        self._number = number
        self._drawn = list(accumulate(weights))
        self._even = even_sequence(weights) if sequence == "even" else ()

    def owner(self, slot: int) -> int:
        """Return the member to whom a slot belongs."""
        if self._even:
            return self._even[slot % len(self._even)]
        drawn = mixed(mixed(self._number) ^ slot) % self._drawn[-1]
        return bisect_right(self._drawn, drawn)


class Window:
    """The senders of the last messages, so many for each member. It begins full, as if all had sent alike."""

    __slots__ = ("_config", "_members", "_senders")

    def __init__(self, members: int, config: BaselineConfig) -> None:
        self._config, self._members = config, members
        self._senders = deque(list(range(members)) * config.window, config.window * members)

    def sent(self, member: int) -> None:
        self._senders.append(member)

    def wanted(self, last: Sequence[int]) -> tuple[int, ...] | None:
        """Return the weights of a new distribution; None when they differ too little from the last ones."""
        weights = tuple(self._senders.count(member) + self._config.floor for member in range(self._members))
        return weights if difference(weights, last) > self._config.threshold else None
