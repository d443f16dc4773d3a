"""The node list of a process in a network of rings: whatever one of its rings learns all of them are told.

A list is taken in on a ring as if the ring stood alone. A gateway has the same list on all its rings, so a newer one
goes from ring to ring. The driver is told once, with all nodes that some ring has to reach beside those of the list.
"""

from __future__ import annotations

from ordercast.model.effects import Effect, Enlisted
from ordercast.model.roster import Entry, Roster


class NodeLists:
    """The newest list that a ring of this process has taken, and what the driver knows of it."""

    __slots__ = ("_newest", "_told", "_tolerated")

    def __init__(self) -> None:
        self._newest: Roster | None = None
        self._tolerated: dict[int, tuple[Entry, ...]] = {}  # nodes beside those of the list, by domain
        self._told: Enlisted | None = None

    def hear(self, domain: int, taken: Enlisted) -> None:
        """Hear what a ring has taken."""
        self._tolerated[domain] = taken.tolerated
        if self._newest is None or taken.roster.version > self._newest.version:
            self._newest = taken.roster

    def newer_than(self, roster: Roster | None) -> Roster | None:
        """Return the list that a ring with this one has yet to be told."""
        if self._newest is None or (roster is not None and roster.version >= self._newest.version):
            return None
        return self._newest

    def told(self) -> list[Effect]:
        """Return what the driver has to be told now."""
        if self._newest is None:
            return []
        tolerated = {entry.node: entry for entries in self._tolerated.values() for entry in entries}
        now = Enlisted(self._newest, tuple(tolerated[node] for node in sorted(tolerated)))
        if now == self._told:
            return []
        self._told = now
        return [now]
