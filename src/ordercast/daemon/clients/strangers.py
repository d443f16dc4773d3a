"""Strangers: connections that have not said who they are, or that were told to go and have not gone.

They are bounded, and the bound keeps nobody out: whoever comes takes the place of the oldest stranger of that user, or
that host, which has the most. So the silent connections of one push out each other, and a client that greets at once is
served however many there are. Pure: times are arguments.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)
StrangerPlace = Hashable  # a user of this machine, or a host


class Strangers(Generic[T]):
    def __init__(self, count_max: int, greeting_s: float, crowded_greeting_s: float) -> None:
        self._count_max = count_max
        self._greeting_s = greeting_s  # in which a stranger must have said who it is
        self._crowded_greeting_s = crowded_greeting_s  # the same, when there are many
        self._since: dict[T, tuple[StrangerPlace, float]] = {}  # the oldest first
        self._places: dict[StrangerPlace, dict[T, None]] = {}  # the oldest first

    def __len__(self) -> int:
        return len(self._since)

    def come(self, who: T, place: StrangerPlace, now: float) -> T | None:
        """Somebody new, and who has to go for it, if somebody has."""
        self.gone(who)
        self._since[who] = place, now
        self._places.setdefault(place, {})[who] = None
        if len(self._since) <= self._count_max:
            return None
        most = max(self._places.values(), key=len)
        oldest = next(iter(most))
        self.gone(oldest)
        return oldest

    def gone(self, who: T) -> None:
        """It is known now, or its connection has ended."""
        if who in self._since:
            place, _ = self._since.pop(who)
            there = self._places[place]
            del there[who]
            if not there:
                del self._places[place]

    def forgive(self, seconds: float) -> None:
        """In which this process did not run, and could hear nobody."""
        self._since = {who: (place, since + seconds) for who, (place, since) in self._since.items()}

    @property
    def are_many(self) -> bool:
        return len(self._since) > self._count_max // 2

    @property
    def patience_s(self) -> float:
        return self._crowded_greeting_s if self.are_many else self._greeting_s

    def overdue(self, now: float) -> list[T]:
        """Yield who has been a stranger for too long."""
        found = []
        patience_s = self.patience_s
        for who, (_, since) in self._since.items():
            if now - since <= patience_s:
                break
            found.append(who)
        return found
