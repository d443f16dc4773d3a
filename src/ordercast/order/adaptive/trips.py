"""Round trips between members, and how much they vary. Marks say which mark of another their sender heard last, and how
long ago; whoever is named knows from it how long the way there and back took. (Paper, section 7: in wide areas the
member with the steadiest round trips is the best book-keeper)
"""

from __future__ import annotations

from collections import deque
from math import isqrt

from ordercast.model.ids import MICROSECOND, Instant
from ordercast.order.adaptive.codec import SPREAD_MAX, Echo, Mark

SAMPLES = 32  # round trips with each member that are looked at
ENOUGH = 4  # fewer say nothing
TICKS = 64  # own marks whose times are kept
WORTH = (4, 5)  # the office moves to a member whose spread is below this part of the book-keeper's


class Trips:
    __slots__ = ("_heard", "_me", "_samples", "_sent", "_spreads", "_turn")

    def __init__(self, members: int, me: int) -> None:
        self._me = me
        self._sent: dict[int, Instant] = {}  # own marks
        self._heard: list[tuple[int, Instant] | None] = [None] * members  # the last mark of each
        self._samples: list[deque[int]] = [deque(maxlen=SAMPLES) for _ in range(members)]
        self._spreads = [SPREAD_MAX] * members  # as each says
        self._turn = me

    def said(self, tick: int, now: Instant) -> None:
        """This process has multicast a mark."""
        self._sent[tick] = now
        if len(self._sent) > TICKS:
            del self._sent[min(self._sent)]

    def heard(self, mark: Mark, now: Instant) -> None:
        """A mark came from its originator itself."""
        self._heard[mark.originator] = mark.tick, now
        echo = mark.echo
        if echo is None:
            return
        self._spreads[mark.originator] = echo.spread
        if echo.member == self._me and echo.tick in self._sent:
            self._samples[mark.originator].append(max(0, now - self._sent[echo.tick] - echo.delay))

    def echo(self, now: Instant) -> Echo | None:
        """Return what the next mark says of another's; members take turns."""
        for _ in self._heard:
            self._turn = (self._turn + 1) % len(self._heard)
            heard = self._heard[self._turn]
            if heard is not None:
                return Echo(self._turn, heard[0], now - heard[1], self.spread())
        return None

    def spread(self) -> int:
        """Return the mean deviation of own round trips in microseconds; the greatest number when too few are known."""
        known = [_deviation(trips) for trips in self._samples if len(trips) >= ENOUGH]
        if 2 * len(known) < len(self._samples) - 1 or not known:
            return SPREAD_MAX
        return min(SPREAD_MAX - 1, sum(known) // len(known) // MICROSECOND)

    def steadiest(self, keeper: int) -> int:
        """Return who should be book-keeper: the present one, unless another is known to be much steadier."""
        self._spreads[self._me] = self.spread()
        best = min(range(len(self._spreads)), key=lambda member: (self._spreads[member], member))
        part, whole = WORTH
        is_known = SPREAD_MAX not in self._spreads
        return best if is_known and self._spreads[best] * whole < self._spreads[keeper] * part else keeper


def _deviation(trips: deque[int]) -> int:
    mean = sum(trips) // len(trips)
    return isqrt(sum((trip - mean) ** 2 for trip in trips) // len(trips))
