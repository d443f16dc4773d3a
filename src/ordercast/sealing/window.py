"""Which packets of a life have come already, on one lane of one network: the highest counter, and a bit for each of the
4,096 below it. It is asked before a packet is opened, and moved only by what was opened.
"""

from __future__ import annotations

from typing import Final

WIDTH: Final = 4096
_ALL: Final = (1 << WIDTH) - 1


class Window:
    __slots__ = ("_seen", "highest")

    def __init__(self, highest: int = 0) -> None:
        """`highest`: nothing up to here counts any more."""
        self.highest = highest
        self._seen = _ALL  # bit i: highest - i came

    def is_new(self, counter: int) -> bool:
        behind = self.highest - counter
        return behind < 0 or (behind < WIDTH and not self._seen >> behind & 1)

    def take(self, first: int, count: int = 1) -> None:
        """So many with numbers in a row were opened."""
        if count == 1 and first == self.highest + 1:  # mostly
            self._seen = (self._seen << 1 | 1) & _ALL
            self.highest = first
            return
        last = first + count - 1
        ahead = last - self.highest
        if ahead > 0:
            # What lies between and did not come is still new; nothing was ever seen above the highest.
            self._seen = self._seen << ahead & _ALL if ahead < WIDTH else 0
            self.highest = last
        behind = self.highest - last
        if behind < WIDTH:
            self._seen |= ((1 << min(count, WIDTH)) - 1) << behind & _ALL
