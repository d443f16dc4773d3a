"""When a site owes a promise or an acknowledgement to the others, as its representative sees it.

A promise is owed while a unit that is ordered waits at or above what was promised last; an acknowledgement when all
daemons of the site have a unit that was not acknowledged. Either is said at once, unless something was said less than
δ ago; then when δ is over. Units themselves promise and acknowledge. Rising stamps alone owe nothing: an idle system is
silent. What tells an interest is waited for, as an ordered unit is. Reliable and FIFO units ask for both lazily, for
the sake of memory: nobody can acknowledge a unit before every site has promised to be past it, so without promises a
window full of reliable messages would never be let go.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

from ordercast.model.ids import Instant
from ordercast.order.sites.config import SitesConfig
from ordercast.order.sites.units import Unit

NEVER = Instant((1 << 63) - 1)


class SitePressure(NamedTuple):
    """What makes everybody send less."""

    is_behind: bool  # an application of the site cannot take more
    queue_ms: int  # how long what waits on a link of the site takes to leave, where that is long; 0: it is not


class Owing:
    def __init__(self, config: SitesConfig, line: int, daemons: int = 1) -> None:
        self._config = config
        self._lazy_max = min(config.lazy_bytes, config.window // daemons // 2)  # or one daemon waits with a full window
        self._told_line = line
        self._told_aru = line
        self._told = SitePressure(False, 0)
        self._said_at: Instant | None = None
        self._asking = 0  # the highest stamp of an ordered unit of another site
        self._lazily_asking = 0  # of any other unit of another site
        self._urgent: list[int] = []  # stamps of ordered units that were not acknowledged, a heap
        self._lazy: list[tuple[int, int]] = []  # of others, with their sizes, likewise
        self._lazy_size = 0
        self._lazy_since: Instant | None = None

    def heed(self, unit: Unit, now: Instant, *, is_foreign: bool) -> None:
        """Know of a unit on the tape."""
        if not (unit.is_ordered or unit.is_interest):
            heapq.heappush(self._lazy, (unit.stamp, unit.body.size))
            self._lazy_size += unit.body.size
            if self._lazy_since is None:
                self._lazy_since = now
            if is_foreign:
                self._lazily_asking = max(self._lazily_asking, unit.stamp)
            return
        heapq.heappush(self._urgent, unit.stamp)
        if is_foreign:
            self._asking = max(self._asking, unit.stamp)

    def due(self, line: int, aru: int, pressure: SitePressure, now: Instant) -> Instant:
        """Return when to speak; NEVER: nothing is owed."""
        is_urgent = (self._asking >= self._told_line and line > self._told_line) or pressure != self._told
        is_urgent = is_urgent or (bool(self._urgent) and self._urgent[0] < aru)
        if is_urgent:
            return self._soon(now)
        is_lazy = self._lazily_asking >= self._told_line and line > self._told_line
        is_lazy = is_lazy or (bool(self._lazy) and self._lazy[0][0] < aru)
        if is_lazy and self._lazy_since is not None:
            if self._lazy_size >= self._lazy_max:
                return self._soon(now)
            return max(now, Instant(self._lazy_since + self._config.lazy_ns))
        return NEVER

    def _soon(self, now: Instant) -> Instant:
        return now if self._said_at is None else max(now, Instant(self._said_at + self._config.delta_ns))

    def said(self, line: int, aru: int, pressure: SitePressure | None, now: Instant | None) -> None:
        """Know what was said: in an update, at this moment, or with a unit."""
        self._told_line, self._told_aru = max(self._told_line, line), max(self._told_aru, aru)
        if now is not None:
            self._said_at = now
        if pressure is not None:
            self._told = pressure
        while self._urgent and self._urgent[0] < self._told_aru:
            heapq.heappop(self._urgent)
        while self._lazy and self._lazy[0][0] < self._told_aru:
            self._lazy_size -= heapq.heappop(self._lazy)[1]
        if not self._lazy:
            self._lazy_since = None
        elif now is not None:
            self._lazy_since = now
