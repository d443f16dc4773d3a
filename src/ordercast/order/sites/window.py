"""How many bytes of its own a daemon may have under way that not everybody is known to have.

All daemons share a window. It shrinks while some site reports that what it has to send waits for long: more under way
would only wait there, and everything else behind it. It grows back in small steps when all queues are short. Each
daemon does so by itself, from what its tape says; so memory and delay are bounded without credit from hop to hop, which
over trees of different roots could lock up in a ring of waits.
"""

from __future__ import annotations

from ordercast.model.ids import MILLISECOND, Instant

QUEUE_MAX_NS = 200 * MILLISECOND  # a longer one shrinks the window
STEP_NS = 100 * MILLISECOND  # it changes at most once in this time: a change needs some to show
STEPS = 32  # from nothing to the whole
LEAST = 16  # so many shares of the whole remain


class UnstableWindow:
    def __init__(self, whole: int) -> None:
        self._whole = whole
        self.size = whole
        self._changed_at: Instant | None = None

    def look(self, queue_ns: int, now: Instant) -> None:
        """Hear how long the longest queue is, of all sites."""
        if self.size == self._whole and queue_ns <= QUEUE_MAX_NS:
            return
        if self._changed_at is not None and now - self._changed_at < STEP_NS:
            return
        self._changed_at = now
        if queue_ns > QUEUE_MAX_NS:
            shrunk = max(self.size // 2, self.size * QUEUE_MAX_NS // queue_ns)
            self.size = max(shrunk, self._whole // (LEAST * STEPS), 1)
        else:
            self.size = min(self._whole, self.size + max(1, self._whole // STEPS))

    @property
    def deadline(self) -> Instant | None:
        """When it may grow again; None: it is whole."""
        if self.size == self._whole or self._changed_at is None:
            return None
        return Instant(self._changed_at + STEP_NS)

    def share(self, daemons: int) -> int:
        """Return what one daemon may have under way."""
        return max(1, self.size // daemons)
