"""One order out of several stamped streams: which of them has the lowest content, and how far it may be passed at once.

Each stream is stamped by its own ring, so that its stamps rise. A *stamp* is three numbers, compared in order; the
second one belongs to the stream, so that stamps of two streams are never equal. The *front* of a lane is the stamp up
to which everything of its stream is here: whatever comes later lies above. The lowest content of all lanes is next in
the order once no open lane can still bring anything below it.

Content is kept and passed in runs: packets in a row whose first two numbers are equal. A run lies wholly below or
wholly above any stamp of another lane. Nothing here is done per packet.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Generic, NamedTuple, TypeVar

# Compared in this order: a number that rises, the number of the stream, a number within both.
Stamp = tuple[int, int, int]

NO_STAMP: Stamp = (0, 0, 0)  # below everything
NEVER: Stamp = (1 << 65, 0, 0)  # above everything

T = TypeVar("T")


class StampedRun(NamedTuple, Generic[T]):
    """Content of a stream in a row, with the stamps of its first and its last packet."""

    first: Stamp
    last: Stamp
    content: T


class StampedLane(Generic[T]):
    """One stream as it is merged: what waits, and the front."""

    __slots__ = ("front", "is_open", "runs")

    def __init__(self, front: Stamp) -> None:
        self.front = front
        self.is_open = True  # a closed one will bring nothing more, and holds up nobody
        self.runs: deque[StampedRun[T]] = deque()

    @property
    def bound(self) -> Stamp:
        """The stamp up to which other lanes are free to pass, as far as this one is concerned."""
        if self.runs:
            return self.runs[0].first
        return self.front if self.is_open else NEVER

    def add(self, first: Stamp, last: Stamp, content: T) -> None:
        """Append a run. Its stamps are above all earlier ones of this lane."""
        self.runs.append(StampedRun(first, last, content))
        if last > self.front:
            self.front = last

    def raise_front(self, stamp: Stamp) -> bool:
        """Hear that everything up to this stamp is here; return whether that is news."""
        if stamp <= self.front:
            return False
        self.front = stamp
        return True


def lowest(lanes: Iterable[StampedLane[T]], limit: Stamp = NEVER) -> tuple[StampedLane[T], Stamp] | None:
    """Return the lane whose first run is the lowest of all, and the stamp up to which its runs may pass now: no other
    lane has or can still bring anything below. Return None if the lowest content waits, or lies above the limit."""
    best: StampedLane[T] | None = None
    first = NEVER
    bound = limit
    for lane in lanes:
        stamp = lane.bound
        if lane.runs and stamp < first:
            best, stamp, first = lane, first, stamp
        if stamp < bound:
            bound = stamp
    return (best, bound) if best is not None and first <= bound else None
