"""Sessions of a view: which messages of each sender were delivered, and which FIFO units may go now.

Numbers of a session rise by one along its stream. Reliable messages are delivered out of order and have numbers too,
so what was delivered is a set, of which the counter shows the contiguous part.
"""

from __future__ import annotations

from ordercast.model.ids import ProcessId
from ordercast.order.sites.units import AnyUnit

WideSession = tuple[ProcessId, int]  # originator, sender


class Sessions:
    def __init__(self) -> None:
        self._next: dict[WideSession, int] = {}
        self._ahead: dict[WideSession, set[int]] = {}  # delivered beyond the counter
        self._waiting: dict[tuple[WideSession, int], list[AnyUnit]] = {}  # FIFO units, by what they wait for

    def lacks(self, unit: AnyUnit) -> tuple[WideSession, int] | None:
        """Return a message that has to be delivered before this unit; None: there is none."""
        expected: dict[WideSession, int] = {}
        for session, run in unit.sessions():
            following = expected.get(session, self._next.get(session, 1))
            if run.first > following:
                return session, following
            expected[session] = max(following, run.first + run.messages)
        return None

    def wait(self, unit: AnyUnit, lacking: tuple[WideSession, int]) -> None:
        """Keep a unit until that message is delivered."""
        self._waiting.setdefault(lacking, []).append(unit)

    def delivered(self, unit: AnyUnit) -> list[AnyUnit]:
        """Count the messages of a unit; return those units that waited for them."""
        freed: list[AnyUnit] = []
        for session, run in unit.sessions():
            if self._next.get(session, 1) == run.first and not self._waiting and not self._ahead.get(session):
                self._next[session] = run.first + run.messages
                continue
            ahead = self._ahead.setdefault(session, set())
            ahead.update(range(run.first, run.first + run.messages))
            following = self._next.get(session, 1)
            while following in ahead:
                ahead.discard(following)
                freed += self._waiting.pop((session, following), ())
                following += 1
            self._next[session] = following
        return freed
