"""Who owns which place of the order. Pure arithmetic on integers.

A distribution begins at its base. Slot j covers `block` places from `base + j * block` on and belongs to
`owners[j % period]`; a place belongs to the newest distribution whose base is not above it. The owners are an even
sequence: smooth weighted round robin, never floats. (Paper, the slots of a distribution; deviations, D1 and D2)
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

RANK_MAX = 8  # ranks above count as this one
Place = int


def even_sequence(weights: Sequence[int]) -> tuple[int, ...]:
    """Return the owners of one period: at each step every member gains its weight, and whoever has most pays all."""
    period, credits = sum(weights), [0] * len(weights)
    owners = []
    for _ in range(period):
        best = 0
        for member, weight in enumerate(weights):
            credits[member] += weight
            if credits[member] > credits[best]:
                best = member
        credits[best] -= period
        owners.append(best)
    return tuple(owners)


class Distribution:
    """How places from `base` on are shared out, until the next distribution takes over."""

    __slots__ = ("_slots", "ahead", "base", "block", "keeper", "number", "owners", "period", "ranks", "weights")

    def __init__(
        self, number: int, base: Place, block: int, ahead: int, weights: Sequence[int], keeper: int = 0
    ) -> None:
        self.number = number
        self.base = base
        self.block = block  # places of a slot
        self.ahead = ahead  # places that a member of rank 1 gives up beyond what it must
        self.weights = tuple(weights)  # in ring order
        self.keeper = keeper  # who announces the next one
        self.owners = even_sequence(weights)
        self.period = len(self.owners)
        order = sorted(range(len(weights)), key=lambda member: (-weights[member], member))
        self.ranks = tuple(order.index(member) for member in range(len(weights)))
        slots: list[list[int]] = [[] for _ in weights]
        for slot, owner in enumerate(self.owners):
            slots[owner].append(slot)
        self._slots = tuple(map(tuple, slots))

    def beyond(self, member: int) -> int:
        """Return how many places this member gives up ahead, when it gives up any."""
        return min(self.ranks[member], RANK_MAX) * self.ahead

    def owner(self, place: Place) -> int:
        return self.owners[(place - self.base) // self.block % self.period]

    def slot_end(self, place: Place) -> Place:
        """Return the last place of the slot."""
        return place + self.block - 1 - (place - self.base) % self.block

    def next_owned(self, member: int, place: Place) -> Place:
        """Return the lowest place from here on that this distribution gives to the member."""
        place = max(place, self.base)
        cycle, slot = divmod((place - self.base) // self.block, self.period)
        if self.owners[slot] == member:
            return place
        mine = self._slots[member]
        index = bisect_right(mine, slot)
        if index == len(mine):
            cycle, index = cycle + 1, 0
        return self.base + (cycle * self.period + mine[index]) * self.block

    def check_invariants(self) -> None:
        assert min(self.weights) >= 1, "everybody has a slot"
        assert 0 <= self.keeper < len(self.weights), "the book-keeper is a member"
        assert self.period == sum(self.weights), "the period is the sum of the weights"


class Line:
    """The distributions of one configuration that are known, and no longer needed ones forgotten."""

    __slots__ = ("_all",)

    def __init__(self, first: Distribution) -> None:
        self._all = [first]

    @property
    def newest(self) -> Distribution:
        return self._all[-1]

    def add(self, distribution: Distribution) -> None:
        assert distribution.number == self.newest.number + 1 and distribution.base > self.newest.base
        self._all.append(distribution)

    def is_outdated(self, place: Place) -> bool:
        """Whether the oldest distribution ends below this place."""
        return len(self._all) > 1 and self._all[1].base <= place

    def forget(self, place: Place) -> None:
        """Nobody asks for places below this any more."""
        while self.is_outdated(place):
            del self._all[0]

    def at(self, place: Place) -> Distribution:
        """Return the distribution that this place belongs to."""
        for distribution in reversed(self._all):
            if distribution.base <= place:
                return distribution
        return self._all[0]

    def next_owned(self, member: int, place: Place) -> Place:
        """Return the lowest place from here on that is this member's. Steps over distributions, never over slots."""
        newest = self._all[-1]
        if place >= newest.base:
            return newest.next_owned(member, place)
        for index, distribution in enumerate(self._all):
            following = self._all[index + 1].base if index + 1 < len(self._all) else None
            if following is not None and following <= place:
                continue
            owned = distribution.next_owned(member, place)
            if following is None or owned < following:
                return owned
            place = following
        raise AssertionError("the newest distribution has no end")


def first_distribution(members: int, block: int, ahead: int) -> Distribution:
    """Return the one with which every configuration begins: all alike, ranks in ring order."""
    return Distribution(0, 1, block, ahead, (1,) * members)


def base_after(announced: Place, base: Place, reach: int) -> Place:
    """Return the base of a distribution that is announced at a place while `base` is that of the newest: nobody who has
    not heard of it may use a place there."""
    return max(announced, base) + reach + 1
