"""Frames that came too early: of views and attempts that have not begun here. What a link has acknowledged must not be
thrown away while it may still be of use; what is surely over need not be kept. Senders are bounded by the window, so
whoever sends many times as much is not sound, and its link fails: then routes, or a view, bring what was lost with it.
"""

from __future__ import annotations

from collections import deque

from ordercast.model.ids import ConfigurationId
from ordercast.order.sites.frames import Contradiction, SpreadFrame, UnitFrame, UpdateFrame
from ordercast.order.sites.views import digest_of

PAST_MAX = 256  # views that are known to be over
WINDOWS = 4  # of bytes: heads come beside messages, and control beside units
EARLY_LEAST = 1 << 20

OfView = tuple[UnitFrame | UpdateFrame, bytes]
OfAttempt = tuple[SpreadFrame, bytes]
EarlyFrame = tuple[UnitFrame | UpdateFrame | SpreadFrame, bytes]


class EarlyFrames:
    def __init__(self, window: int) -> None:
        self._size_max = max(WINDOWS * window, EARLY_LEAST)
        self._size = 0
        self._frames: list[EarlyFrame] = []
        self._past: deque[bytes] = deque(maxlen=PAST_MAX)

    def keep(self, frame: UnitFrame | UpdateFrame | SpreadFrame, data: bytes) -> None:
        """Keep a frame for later; a Contradiction: no sound process sends so much before a view begins."""
        if not isinstance(frame, SpreadFrame) and frame.view in self._past:
            return
        if self._size + len(data) > self._size_max:
            raise Contradiction("more for a view that has not begun than any window allows")
        self._frames.append((frame, data))
        self._size += len(data)

    def clear(self) -> None:
        self._keep([])

    def _keep(self, frames: list[EarlyFrame]) -> None:
        self._frames, self._size = frames, sum(len(data) for _, data in frames)

    def of_view(self, ended: ConfigurationId, begun: bytes) -> list[OfView]:
        """Take those of a view that begins; another one has ended."""
        self._past.append(digest_of(ended))
        found: list[OfView] = []
        rest: list[EarlyFrame] = []
        for frame, data in self._frames:
            if isinstance(frame, SpreadFrame):
                rest.append((frame, data))
            elif frame.view == begun:
                found.append((frame, data))
        self._keep(rest)
        return found

    def of_attempts(self) -> list[OfAttempt]:
        """Take those of all attempts."""
        found = [(frame, data) for frame, data in self._frames if isinstance(frame, SpreadFrame)]
        self._keep([one for one in self._frames if not isinstance(one[0], SpreadFrame)])
        return found
