"""What every builder of graphs is given, and the network below them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from ordercast.model.ids import ProcessId
from ordercast.model.rng import Rng
from ordercast.order.tree.graph import Memberships, Parents


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

    def rate(self, group: str) -> float:
        return self.rates.get(group, 1.0)

    def distance(self, one: ProcessId, other: ProcessId) -> int:
        return 1 if self.terrain is None else self.terrain.distance(one, other)


class Builder(Protocol):
    """A way to put processes into a forest, such that each group has a common ancestor."""

    def __call__(self, groups: Memberships, given: Given, /) -> Parents: ...


def most_frequent(groups: Memberships) -> ProcessId:
    """Return the process that is in the most groups; of several the lowest."""
    counts: dict[ProcessId, int] = {}
    for members in groups.values():
        for member in members:
            counts[member] = counts.get(member, 0) + 1
    return min(counts, key=lambda process: (-counts[process], process))


def everybody(groups: Memberships) -> set[ProcessId]:
    return {member for members in groups.values() for member in members}
