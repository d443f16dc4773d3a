"""What the event loop cannot raise anywhere: it goes to the daemon's log, one sentence where the cause is known.

Without this asyncio writes tracebacks to stderr, between the lines of the log.
"""

from __future__ import annotations

import asyncio
import errno
import logging
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import Any

REPEAT_S = 60.0  # what goes on and on is said this often
EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class LoopErrors:
    """The exception handler of a daemon's event loop."""

    now: Callable[[], float] = monotonic
    _said_at: float | None = None
    _more: int = 0

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if isinstance(error, OSError) and error.errno in EXHAUSTED:
            self._say_exhausted(error)
        else:
            _log.error("%s", context.get("message", "an error in the event loop"), exc_info=error)

    def _say_exhausted(self, error: OSError) -> None:
        """A connection waits until there is room; the loop tries again every second."""
        now = self.now()
        if self._said_at is not None and now - self._said_at < REPEAT_S:
            self._more += 1
            return
        again = f" ({self._more} times more since the last of these lines)" if self._more else ""
        why = error.strerror or error
        _log.warning("a connection waits, for the system refuses it: %s; raise the limit of open files%s", why, again)
        self._said_at, self._more = now, 0
