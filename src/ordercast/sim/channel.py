"""The sending end of a link with a rate: packets leave one after the other, and wait in a queue of bounded length."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from ordercast.model.ids import SECOND


@dataclass(slots=True)
class Channel:
    rate: int  # bits per second
    queue: int | None = None  # bytes that wait or are being sent; None: no bound
    lost: int = 0  # packets that found no room
    _free_at: int = 0  # when the last bit of all that waits will have left
    _size: int = 0  # bytes that wait or are being sent
    _waiting: deque[tuple[int, int]] = field(default_factory=deque)  # departure and size of each packet

    def departure(self, size: int, now: int) -> int | None:
        """When the last bit of a packet will have left; None when the queue has no room for it. Packets leave in the
        order in which they are offered: one that is offered for an earlier moment than another before it waits."""
        while self._waiting and self._waiting[0][0] <= now:
            self._size -= self._waiting.popleft()[1]
        if self.queue is not None and self._size + size > self.queue:
            self.lost += 1
            return None
        begins = max(now, self._free_at)
        self._free_at = begins - (-size * 8 * SECOND // self.rate)  # rounded up: never faster than the rate
        self._size += size
        self._waiting.append((self._free_at, size))
        return self._free_at
