"""The Lamport clock of a process: whatever a ring numbers lies above all that the process has met.

A ring that stands alone has a clock of its own, in memory: nothing is decided by it. The rings of one process in a
network of rings share one, and it survives the process: nothing is numbered above a bound in stable storage, and the
next life begins at that bound. What others have numbered above it is heard, and waits for its place in the order here
until the bound is above it: views are numbered by their places, and those of the next life must lie above. The bound is
written so far ahead that in normal life nobody waits for the disk. A disk that refuses or hangs must not end a ring:
after `storage_patience_ns` the process goes on without it and says so, as it does with ring seqs
(`membership.step.StoredSeq`), and its restart counts as one that lost its storage. (Paper, sections 5.1 and 5.2)
"""

from __future__ import annotations

from ordercast.model.effects import Effect, Persist
from ordercast.model.inputs import Stored
from ordercast.order.membership.bounds import CLOCK_MAX
from ordercast.wire.codec import NUMBER_MAX

CLOCK_KEY = "clock"  # of the process, not of one of its rings
CLOCK_RESERVE = 1 << 20  # ticks that one write covers (`timestamp_interval`)


class Clock:
    __slots__ = ("bound", "tick")

    def __init__(self) -> None:
        self.tick = 0  # the highest that was met or used
        self.bound = NUMBER_MAX  # ticks up to here may be used

    def hear(self, tick: int) -> None:
        """Take over a tick that somebody else has used; what cannot be true is cut."""
        if tick > self.tick:
            self.tick = min(tick, CLOCK_MAX)

    def covers(self, tick: int) -> bool:
        """Whether this tick may be used now."""
        return tick <= self.bound

    def writes(self) -> list[Effect]:
        """Return what has to be written now."""
        return []

    def go_without(self) -> bool:
        return False  # it has no bound


class StoredClock(Clock):
    """A clock that goes on where the former life of its node ended."""

    __slots__ = ("_stored", "_written", "is_without")

    def __init__(self) -> None:
        super().__init__()
        self.bound = self._stored = 0
        self._written: int | None = None  # the one write that is outstanding
        self.is_without = False  # it was not waited for any longer

    def start(self, stored: Stored) -> bool:
        """Begin a life, before any ring does. False: what was stored cannot be true, and is not used."""
        bound = int.from_bytes(stored.get(CLOCK_KEY, b""), "big")
        if bound > CLOCK_MAX:
            return False
        self.tick = self.bound = self._stored = bound
        return True

    def writes(self) -> list[Effect]:
        """Return the write of a higher bound, when half of what the last one covers is used."""
        if self._written is not None or self.tick <= self._stored - CLOCK_RESERVE // 2:
            return []
        self._written = max(self.tick, self._stored) + CLOCK_RESERVE
        return [Persist(CLOCK_KEY, self._written.to_bytes(8, "big"))]

    def persisted(self) -> bool:
        """The outstanding write is on stable storage: whatever waited for it goes on. Tell whether the process had gone
        on without it and does so no more; it still does if it has met ticks above what is stored now."""
        assert self._written is not None, "a bound is confirmed that was written"
        was_without = self.is_without
        self._stored, self._written = self._written, None
        self.is_without = was_without and self.tick > self._stored
        self.bound = NUMBER_MAX if self.is_without else self._stored
        return was_without and not self.is_without

    def go_without(self) -> bool:
        """Use ticks whose bound is not stored, until it is. Tell whether that is news."""
        is_news, self.is_without, self.bound = not self.is_without, True, NUMBER_MAX
        return is_news
