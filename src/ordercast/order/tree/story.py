"""What a process can tell of the forest's changes: why each came, and how long this process was between two trees."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from ordercast.model.ids import Instant, ProcessId

CHANGES_KEPT = 16
PAUSES_KEPT = 256


class ForestStep(NamedTuple):
    """A change of the forest, as it was ordered."""

    number: int  # of the opening
    closed: int  # trees that ended with it
    born: int  # trees that began with it
    gained: tuple[tuple[ProcessId, str], ...] = ()  # who has come to want what
    lost: tuple[tuple[ProcessId, str], ...] = ()
    messages: int = 0  # that went everywhere, or to groups of several trees
    is_cut: bool = False  # all trees ended at once: one did not close, or a link had failed


class ForestStory:
    """The last changes, and the pauses of this process: the time from the end of its tree here to the next one."""

    def __init__(self) -> None:
        self.steps: deque[ForestStep] = deque(maxlen=CHANGES_KEPT)  # of this configuration
        self.pauses: deque[int] = deque(maxlen=PAUSES_KEPT)
        self.pause_count = 0
        self.longest_pause_ns = 0
        self._paused_at: Instant | None = None

    def begin(self) -> None:
        """A configuration begins: openings are numbered anew."""
        self.steps.clear()

    def look(self, is_between: bool, now: Instant) -> None:
        """Take note of whether this process is between two trees now."""
        if is_between:
            self._paused_at = now if self._paused_at is None else self._paused_at
        elif self._paused_at is not None:
            pause = now - self._paused_at
            self._paused_at = None
            self.pause_count += 1
            self.pauses.append(pause)
            self.longest_pause_ns = max(self.longest_pause_ns, pause)

    def paused_for(self, now: Instant) -> int | None:
        """Return how long this process has been between two trees; None if it is not."""
        return None if self._paused_at is None else now - self._paused_at


def step_of(
    number: int,
    closed: int,
    born: int,
    wishes: Iterable[tuple[ProcessId, tuple[str, ...], tuple[str, ...]]],
    messages: int,
) -> ForestStep:
    """`wishes`: who has come to want what, and no longer wants what."""
    gained: list[tuple[ProcessId, str]] = []
    lost: list[tuple[ProcessId, str]] = []
    for process, more, fewer in wishes:
        gained += ((process, name) for name in more)
        lost += ((process, name) for name in fewer)
    return ForestStep(number, closed, born, tuple(gained), tuple(lost), messages)
