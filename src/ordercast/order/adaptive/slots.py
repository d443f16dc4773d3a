"""Who owns which place of the order. Pure arithmetic on integers.

A distribution begins at its base. Slot j covers `block` places from `base + j * block` on and belongs to
`owners[j % period]`; a place belongs to the newest distribution whose base is not above it. The owners are an even
sequence: smooth weighted round robin, never floats. (Paper, the slots of a distribution; deviations, D1 and D2)
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

RANK_MAX = 8  # turns of others for which places are given up ahead
ALIKE = 5, 4  # whose weight is at least the second of these parts of another's in the first sends about as much
MISSED = 4  # who has let pass so many times the turns of others that it was to wait for has stopped sending
NO_END = 1 << 63
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

    __slots__ = (
        "_peers",
        "_slots",
        "ahead",
        "base",
        "block",
        "keeper",
        "number",
        "owners",
        "period",
        "ranks",
        "rests",
        "turns",
        "weights",
    )

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
        self._peers = _peers(weights)
        members = range(len(weights))
        # How many packets of others are likely to come between two of a member: none if it sends more than anybody.
        self.turns = tuple(0 if self._peers == (one,) else self.period // self.weights[one] - 1 for one in members)
        self.rests = tuple(self._rest_of(one) for one in members)
        slots: list[list[int]] = [[] for _ in weights]
        for slot, owner in enumerate(self.owners):
            slots[owner].append(slot)
        self._slots = tuple(map(tuple, slots))

    def _rest_of(self, member: int) -> int:
        """Return how many places this member gives up behind its own packet, if it rests: so that those have lower ones
        who are likely to send before it does again."""
        return min(self.turns[member] * self._step(member), RANK_MAX * self.ahead)

    def _step(self, member: int) -> int:
        """Return how many places it gives up for each turn of others. Among members that take turns each packet moves
        the order on by such a step, and all others with it."""
        return self.ahead // 2 if member in self._peers else self.ahead

    def waits_for_turn(self, member: int, heard: int) -> bool:
        """Whether it sends as much as others, and has not ceased to; it has heard so many packets of others since its
        own last. Such members take turns."""
        turns = self.turns[member]
        return turns > 0 and member in self._peers and heard <= MISSED * (turns + MISSED)

    def beyond_now(self, member: int, heard: int) -> int:
        """Return how many places this member gives up ahead. Among those who take turns, whoever's turn is near gives
        up few, and has the lowest place when it sends. Whoever sends less than others stays far ahead of them."""
        turns = self.turns[member]
        if not self.waits_for_turn(member, heard):
            return min(turns, RANK_MAX) * self.ahead
        return min(max(1, 2 * (turns - heard)) * self.ahead // 4, RANK_MAX * self.ahead)

    def owner(self, place: Place) -> int:
        return self.owners[(place - self.base) // self.block % self.period]

    def slot_end(self, place: Place) -> Place:
        """Return the last place of the slot."""
        return place + self.block - 1 - (place - self.base) % self.block

    def next_owned(self, member: int, place: Place) -> Place:
        """Return the lowest place from here on that this distribution gives to the member."""
        if place < self.base:
            place = self.base
        at = (place - self.base) // self.block
        slot = at % self.period
        if self.owners[slot] == member:
            return place
        cycle, mine = at // self.period, self._slots[member]
        index = bisect_right(mine, slot)
        if index == len(mine):
            cycle, index = cycle + 1, 0
        return self.base + (cycle * self.period + mine[index]) * self.block

    def check_invariants(self) -> None:
        assert min(self.weights) >= 1, "everybody has a slot"
        assert 0 <= self.keeper < len(self.weights), "the book-keeper is a member"
        assert self.period == sum(self.weights), "the period is the sum of the weights"


def _peers(weights: Sequence[int]) -> tuple[int, ...]:
    """Return those who send about as much as the busiest member: it alone, if nobody else does."""
    most, (whole, part) = max(weights), ALIKE
    return tuple(member for member, weight in enumerate(weights) if weight * whole >= most * part)


class Line:
    """The distributions of one configuration that are known, and no longer needed ones forgotten."""

    __slots__ = ("_all", "ends", "newest")

    def __init__(self, first: Distribution) -> None:
        self._all = [first]
        self.newest = first
        self.ends: Place = NO_END  # where the oldest ends

    def add(self, distribution: Distribution) -> None:
        assert distribution.number == self.newest.number + 1 and distribution.base > self.newest.base
        self._all.append(distribution)
        self.newest = distribution
        self.ends = self._all[1].base

    def forget(self, place: Place) -> None:
        """Nobody asks for places below this any more."""
        while self.ends <= place:
            del self._all[0]
            self.ends = self._all[1].base if len(self._all) > 1 else NO_END

    def at(self, place: Place) -> Distribution:
        """Return the distribution that this place belongs to."""
        if place >= self.newest.base:
            return self.newest
        for distribution in reversed(self._all):
            if distribution.base <= place:
                return distribution
        return self._all[0]

    def next_owned(self, member: int, place: Place) -> Place:
        """Return the lowest place from here on that is this member's. Steps over distributions, never over slots."""
        if place >= self.newest.base:
            return self.newest.next_owned(member, place)
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
