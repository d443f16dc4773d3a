"""What waits to be put on the own ring, each with the stamp that the ring's clock has to hear before."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from ordercast.model.inputs import Submissions
from ordercast.order.layered import InnerRing
from ordercast.order.outbox import OVERHEAD


class RingFeed:
    def __init__(self, inner: InnerRing) -> None:
        self._inner = inner
        self._waiting: deque[tuple[int, bytes]] = deque()

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, entries: Iterable[tuple[int, bytes]]) -> None:
        self._waiting += entries

    def has_room(self) -> bool:
        """Whether the ring takes the next entry; if not, it will tell when it does."""
        size = len(self._waiting[0][1]) + OVERHEAD
        if self._inner.room() >= size:
            return True
        self._inner.want_room(size)
        return False

    def batch(self) -> tuple[int, Submissions]:
        """Take off what the ring has room for; return it, behind the stamp that its clock has to hear first."""
        batch: list[bytes] = []
        room, stamp = self._inner.room(), 0
        while self._waiting and (room := room - len(self._waiting[0][1]) - OVERHEAD) >= 0:
            heard, data = self._waiting.popleft()
            stamp = max(stamp, heard)
            batch.append(data)
        return stamp, Submissions(batch)
