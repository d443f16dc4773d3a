"""Frames that came too early: of views and attempts that have not begun here. What a link has acknowledged must not be
thrown away while it may still be of use; what is surely over need not be kept."""

from __future__ import annotations

from collections import deque

from ordercast.model.ids import ConfigurationId
from ordercast.order.sites.frames import SpreadFrame, UnitFrame, UpdateFrame
from ordercast.order.sites.views import digest_of

PAST_MAX = 256  # views that are known to be over
EARLY_MAX = 4096

OfView = tuple[UnitFrame | UpdateFrame, bytes]
OfAttempt = tuple[SpreadFrame, bytes]
EarlyFrame = tuple[UnitFrame | UpdateFrame | SpreadFrame, bytes]


class EarlyFrames:
    def __init__(self) -> None:
        self._frames: deque[EarlyFrame] = deque(maxlen=EARLY_MAX)
        self._past: deque[bytes] = deque(maxlen=PAST_MAX)

    def keep(self, frame: UnitFrame | UpdateFrame | SpreadFrame, data: bytes) -> None:
        if isinstance(frame, SpreadFrame) or frame.view not in self._past:
            self._frames.append((frame, data))

    def clear(self) -> None:
        self._frames.clear()

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
        self._frames = deque(rest, EARLY_MAX)
        return found

    def of_attempts(self) -> list[OfAttempt]:
        """Take those of all attempts."""
        found = [(frame, data) for frame, data in self._frames if isinstance(frame, SpreadFrame)]
        self._frames = deque((one for one in self._frames if not isinstance(one[0], SpreadFrame)), EARLY_MAX)
        return found
