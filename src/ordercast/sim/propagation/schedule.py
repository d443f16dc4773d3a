"""Events in the order of their times, and links that delay messages."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from heapq import heappop, heappush
from random import Random

DELAY_MAX = 1_000  # of a link, in units of time


class Schedule:
    """What happens when. Events of one time happen in the order in which they were asked for."""

    def __init__(self, rng: Random) -> None:
        self.now = 0
        self._rng = rng
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._count = 0
        self._last: dict[tuple[Hashable, Hashable], int] = {}

    def at(self, time: int, act: Callable[[], None]) -> None:
        self._count += 1
        heappush(self._events, (time, self._count, act))

    def send(self, one: Hashable, other: Hashable, arrive: Callable[[], None], *, in_order: bool = True) -> None:
        """Let something arrive after a random delay, `in_order` behind whatever went the same way before."""
        time = self.now + self._rng.randint(1, DELAY_MAX)
        if in_order:
            time = self._last[one, other] = max(time, self._last.get((one, other), 0))
        self.at(time, arrive)

    def run(self) -> None:
        while self._events:
            self.now, _, act = heappop(self._events)
            act()
