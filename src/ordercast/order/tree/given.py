"""What a graph is built and judged by besides its groups; and work in slices.

Planning is done by generators that stop after a bounded number of operations, so that a daemon with thousands of groups
goes on with other things between. What they have found they return at their end.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from ordercast.model.ids import ProcessId
from ordercast.model.rng import Rng

SLICE = 400  # groups that are looked at without a stop

Result = TypeVar("Result")


def last_of(slices: Generator[None, None, Result]) -> Result:
    """Return what a generator returns at its end."""
    while True:
        try:
            next(slices)
        except StopIteration as end:
            result: Result = end.value
            return result


class Terrain(Protocol):
    """The network under a forest: what it costs to get from one process to another."""

    def processes(self) -> Iterable[ProcessId]:
        """Return all of them, members of groups or not."""
        ...

    def neighbours(self, process: ProcessId) -> Mapping[ProcessId, int]:
        """Return what each link of a process costs."""
        ...

    def distance(self, one: ProcessId, other: ProcessId) -> int:
        """Return what the cheapest way costs."""
        ...


@dataclass(frozen=True, slots=True)
class Given:
    """What a builder may look at besides the groups. Nothing of it is needed by any of them."""

    terrain: Terrain | None = None  # none: everybody is equally near to everybody
    rng: Rng | None = None  # for the random builder, and for choices among equals of spanning trees
    rates: Mapping[str, float] = field(default_factory=dict)  # messages of a group; 1 where nothing is said
    forbidden: frozenset[tuple[ProcessId, ProcessId]] = frozenset()  # edges that have failed, lower process first

    def rate(self, group: str) -> float:
        return self.rates.get(group, 1.0)

    def distance(self, one: ProcessId, other: ProcessId) -> int:
        return 1 if self.terrain is None else self.terrain.distance(one, other)
