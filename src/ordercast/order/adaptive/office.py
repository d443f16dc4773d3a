"""The book-keeper's work: when a distribution is announced, which one, and who announces the next. (Paper, 6.1)"""

from __future__ import annotations

from dataclasses import dataclass

from ordercast.model.ids import Instant
from ordercast.order.adaptive.config import AdaptiveConfig
from ordercast.order.adaptive.merge import Merge
from ordercast.order.adaptive.policy import Policy
from ordercast.order.adaptive.slots import Distribution, base_after
from ordercast.order.adaptive.trips import Trips


@dataclass(slots=True)
class Office:
    config: AdaptiveConfig
    policy: Policy
    trips: Trips | None  # policy "steady": by them the office moves

    @staticmethod
    def is_mine(merge: Merge) -> bool:
        """Whether this process announces the next distribution."""
        return merge.me == merge.line.newest.keeper

    def due(self, merge: Merge, own_waiting: int, now: Instant) -> Distribution | None:
        """Return what this process, which has so many packets waiting, should announce now. Only when everybody has
        moved to the last distribution."""
        newest, place = merge.line.newest, merge.next_place()
        if not self.is_mine(merge) or merge.aru < newest.base - 1:
            return None
        waiting = [stream.mark.waiting if stream.mark is not None else 0 for stream in merge.streams]
        waiting[merge.me] = own_waiting
        weights = self.policy.wanted(merge.ring.members, waiting, newest.weights, now)
        keeper = newest.keeper if self.trips is None else self.trips.steadiest(newest.keeper)
        if weights is None and keeper != newest.keeper and self.policy.may_announce(now):
            weights = newest.weights
        if weights is None or place > merge.limit:
            return None
        base = base_after(place, newest.base, self.config.reach)
        return Distribution(newest.number + 1, base, self.config.block, self.config.ahead, weights, keeper)
