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

SHORT_MS = 100  # a queue that was long is told to be short again below this
REPORT_MS_MAX = (1 << 16) - 1
NEWS = 0.5, 1.5  # less or more than so many times what was told is news


class QueueReport:
    """What a representative tells of the queues of its links."""

    def __init__(self) -> None:
        self.told_ms = 0  # 0: they are short

    def is_news(self, queue_ns: int) -> bool:
        """Hear how long the longest is now; return whether that is to be told."""
        queue_ms, told_ms = min(queue_ns // MILLISECOND, REPORT_MS_MAX), self.told_ms
        if queue_ns > QUEUE_MAX_NS:
            if told_ms and NEWS[0] < queue_ms / told_ms < NEWS[1]:
                return False
            self.told_ms = queue_ms
        elif told_ms and queue_ms < SHORT_MS:
            self.told_ms = 0
        return self.told_ms != told_ms


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
