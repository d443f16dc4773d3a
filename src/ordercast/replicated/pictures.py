"""The pictures of the state that are kept here for others, and for whom: each is served until nobody needs it."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from ordercast.replicated.effects import Point
from ordercast.replicated.quorum import Life


@dataclass(slots=True)
class Pictures:
    readers: dict[Point, set[Life]] = field(default_factory=dict)

    @property
    def points(self) -> tuple[Point, ...]:
        return tuple(sorted(self.readers))

    def keep(self, point: Point, lives: Iterable[Life]) -> None:
        self.readers[point] = set(lives)

    def retain(self, wanted: Collection[Point]) -> list[Point]:
        """Those that are not kept any more."""
        released = [point for point in self.points if point not in wanted]
        for point in released:
            del self.readers[point]
        return released

    def loaded(self, life: Life) -> list[Point]:
        """It needs none any more. Those that are not kept any more."""
        for lives in self.readers.values():
            lives.discard(life)
        return self.retain([point for point, lives in self.readers.items() if lives])
