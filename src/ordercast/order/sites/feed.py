"""What waits to be put on the own ring, in lists, each with the stamp that the ring's clock has to hear before."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from ordercast.model.inputs import Submissions
from ordercast.order.layered import InnerRing
from ordercast.order.outbox import OVERHEAD


def _cost(entries: Sequence[bytes]) -> int:
    return sum(map(len, entries)) + OVERHEAD * len(entries)


class RingFeed:
    def __init__(self, inner: InnerRing) -> None:
        self._inner = inner
        self._waiting: deque[tuple[int, Sequence[bytes]]] = deque()

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, entries: Sequence[bytes], stamp: int = 0) -> None:
        if entries:
            self._waiting.append((stamp, entries))

    def has_room(self) -> bool:
        """Whether the ring takes the next entry; if not, it will tell when it does."""
        size = _cost(self._waiting[0][1][:1])
        if self._inner.room() >= size:
            return True
        self._inner.want_room(size)
        return False

    def batch(self) -> tuple[int, Submissions]:
        """Take off what the ring has room for; return it, behind the stamp that its clock has to hear first."""
        batch: list[bytes] = []
        room, stamp = self._inner.room(), 0
        while self._waiting and room > 0:
            heard, entries = self._waiting.popleft()
            size = _cost(entries)
            if size <= room:
                stamp = max(stamp, heard)
                batch += entries
                room -= size
                continue
            fits = _fitting(entries, room)
            if fits:
                stamp = max(stamp, heard)
                batch += entries[:fits]
            self._waiting.appendleft((heard, entries[fits:]))
            break
        return stamp, Submissions(batch)


def _fitting(entries: Sequence[bytes], room: int) -> int:
    """Return how many of these, from the first on, fit."""
    for index, entry in enumerate(entries):
        room -= len(entry) + OVERHEAD
        if room < 0:
            return index
    return len(entries)
