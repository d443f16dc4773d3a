"""How many bytes of its own a daemon may have under way that not everybody is known to have.

All daemons share a window. It begins small, and grows as long as it is what keeps messages back. It shrinks when some
site reports that what it has to send waits for long: more under way would only wait there, and everything else behind
it. Then it stands until the queue has had the time to drain, and grows in smaller steps when all queues are short. Each
daemon does so by itself, from what its tape says; so memory and delay are bounded without credit from hop to hop, which
over trees of different roots could lock up in a ring of waits.
"""

from __future__ import annotations

from ordercast.model.ids import MILLISECOND, Instant

QUEUE_MAX_NS = 200 * MILLISECOND  # a longer one shrinks the window
STEP_NS = 100 * MILLISECOND  # it changes at most once in this time: a change needs some to show
FIRST = 128  # it begins as the whole divided by this
LEAST = 512  # and is never less than the whole divided by this
STEP = 8  # it grows by this part of itself, twofold before it has ever shrunk
DRAIN_MAX_NS = 2_000 * MILLISECOND  # it stands for no longer

REPORT_MS_MAX = (1 << 16) - 1
NEWS = 0.75, 1.33  # less or more than so many times what was told is news


class QueueReport:
    """What a representative tells of the queues of its links."""

    def __init__(self) -> None:
        self.told_ms = 0  # 0: they are short

    def is_news(self, queue_ns: int) -> bool:
        """Hear how long the longest is now; return whether that is to be told. A window shrinks by what was told as
        long as nothing else is: a queue that is short again is news at once, or links would run dry."""
        queue_ms, told_ms = min(queue_ns // MILLISECOND, REPORT_MS_MAX), self.told_ms
        if queue_ns <= QUEUE_MAX_NS:
            self.told_ms = 0
        elif not told_ms or not NEWS[0] < queue_ms / told_ms < NEWS[1]:
            self.told_ms = queue_ms
        return self.told_ms != told_ms


class UnstableWindow:
    def __init__(self, whole: int) -> None:
        self._whole = whole
        self.size = max(1, whole // FIRST)
        self._look_at = Instant(0)  # it stands until then
        self._has_shrunk = False
        self._is_full = False  # it has kept messages back since it changed

    def look(self, queue_ns: int, now: Instant) -> None:
        """Hear how long the longest queue is, of all sites."""
        if now < self._look_at:
            return
        if queue_ns > QUEUE_MAX_NS:
            self.size = max(self.size * QUEUE_MAX_NS // queue_ns, self._whole // LEAST, 1)
            self._look_at = Instant(now + max(STEP_NS, min(queue_ns - QUEUE_MAX_NS, DRAIN_MAX_NS)))
            self._has_shrunk, self._is_full = True, False
        elif self._is_full:
            grown = max(1, self.size // STEP if self._has_shrunk else self.size)
            self.size = min(self._whole, self.size + grown)
            self._look_at, self._is_full = Instant(now + STEP_NS), False

    def keeps_back(self) -> None:
        """Know that messages wait for nothing but this window."""
        self._is_full = self.size < self._whole

    @property
    def deadline(self) -> Instant | None:
        """When it may grow; None: nobody waits for that."""
        return self._look_at if self._is_full else None

    def share(self, daemons: int) -> int:
        """Return what one daemon may have under way."""
        return max(1, self.size // daemons)
