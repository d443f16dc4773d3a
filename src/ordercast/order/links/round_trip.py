"""What one end of a link knows of the path: the round trip, and how much packets overtake each other."""

from __future__ import annotations

from dataclasses import dataclass

from ordercast.model.ids import MICROSECOND, SECOND, Duration, Instant
from ordercast.order.links.codec import STAMP_MASK, stamp_of

BELIEVABLE = 60 * SECOND  # a longer round trip is damage, or a clock that jumped
JUMP_MAX = 4  # a packet that took more round trips than this counts as so many: it may be a straggler
FORGETTING = 128  # packets, about, after which a path that became longer is known to be so


@dataclass(slots=True)
class RoundTrip:
    """Estimates from echoes. Packets carry when they were sent, and echo what came last with the time since."""

    smooth: int  # nanoseconds, weighted; before anything is known a guess
    least: int = 0  # of late; 0: nothing is known yet
    reordering: int = 0  # by how much packets come late that were not lost
    _last: int = 0  # `sent` of the packet that came last
    _last_at: int = 0

    def hear(self, sent: int, echo: int, now: Instant) -> int:
        """Take the stamps of a packet; return the round trip that it shows, 0 if none."""
        self._last, self._last_at = sent, now
        if not echo:
            return 0
        measured = ((stamp_of(now) - echo) & STAMP_MASK) * MICROSECOND
        if not 0 < measured < BELIEVABLE:
            return 0
        if not self.least:
            self.smooth = self.least = measured
        self.smooth += (min(measured, JUMP_MAX * self.smooth) - self.smooth) // 8
        self.least = min(self.least + (self.smooth - self.least) // FORGETTING, measured)
        return measured

    def echo(self, now: Instant) -> int:
        """Return what the next packet echoes."""
        if not self._last:
            return 0
        return (self._last + (now - self._last_at) // MICROSECOND) & STAMP_MASK or 1

    def was_late(self, by: Duration) -> None:
        """A packet that was taken for lost had only been overtaken."""
        self.reordering = max(by, self.reordering - self.reordering // 16)

    def was_lost(self) -> None:
        """A packet that was taken for lost was lost."""
        self.reordering -= self.reordering // 16
