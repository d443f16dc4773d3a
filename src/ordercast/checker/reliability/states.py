"""Who was awake, up and reachable when. (Thesis, 6.3)

REACH is read for each copy: one that is sent in the interval while both ends stay awake long enough for it comes in
time. As printed, it says nothing once an end fails soon after the interval, and no protocol has a guarantee then.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from ordercast.checker.reliability.events import Kind, Site, SiteHistory


class States:
    def __init__(self, history: SiteHistory) -> None:
        self._history = history
        self._failures: dict[Site, list[int]] = _times(history, Kind.FAIL)
        self._awakenings = _times(history, Kind.AWAKE)
        self._recoveries = _times(history, Kind.RECOVER)
        self._late: dict[frozenset[Site], list[int]] = defaultdict(list)  # sends whose copies did not come in time
        for event in history.of_kind[Kind.SEND]:
            came = history.gets.get(event.copy)
            is_late = came is None or came > event.time + history.network
            if is_late and self._could_come(event.site, event.to, event.time):
                self._late[frozenset((event.site, event.to))].append(event.time)

    def _could_come(self, one: Site, other: Site, time: int) -> bool:
        span = self._history.network
        return self.awake(one, time, span) and self.awake(other, time, span)

    def awake(self, site: Site, start: int, span: int) -> bool:
        """AWAKE: no failure in the interval, and the site has awoken from the last one before."""
        return self._is_well(site, start, span, self._awakenings)

    def up(self, site: Site, start: int, span: int) -> bool:
        """UP: no failure in the interval, and the site has recovered from the last one before."""
        return self._is_well(site, start, span, self._recoveries)

    def _is_well(self, site: Site, start: int, span: int, ends: dict[Site, list[int]]) -> bool:
        failures = self._failures[site]
        if any(start <= time <= start + span for time in failures):
            return False
        last = max((time for time in failures if time < start), default=None)
        return last is None or any(last < time <= start for time in ends[site])

    def reach(self, one: Site, other: Site, start: int, span: int) -> bool:
        """REACH*: no copy between the two that is sent in the interval is lost or late."""
        return not any(start <= time <= start + span for time in self._late[frozenset((one, other))])

    def is_decided(self, start: int, span: int) -> bool:
        """Tell whether an interval ends before the history does."""
        return start + span <= self._history.end

    def linked(self, site: Site, other: Site, start: int, span: int) -> bool:
        """Tell whether the first is up, the other awake and both within reach for an interval."""
        return self.up(site, start, span) and self.awake(other, start, span) and self.reach(site, other, start, span)

    def first_linked(self, site: Site, other: Site, start: int, span: int) -> int | None:
        """Return the first moment from `start` on at which they are linked for so long; None if there is none."""
        for moment in self._moments(site, other, start):
            if not self.is_decided(moment, span):
                return None
            if self.linked(site, other, moment, span):
                return moment
        return None

    def _moments(self, site: Site, other: Site, start: int) -> Iterator[int]:
        """Return when an interval may begin: at the start, or behind something that stood in the way."""
        late = (time + 1 for time in self._late[frozenset((site, other))])
        found = {start, *self._recoveries[site], *self._awakenings[other], *late}
        yield from sorted(moment for moment in found if moment >= start)


def _times(history: SiteHistory, kind: Kind) -> dict[Site, list[int]]:
    found: dict[Site, list[int]] = defaultdict(list)
    for event in history.of_kind[kind]:
        found[event.site].append(event.time)
    return found
