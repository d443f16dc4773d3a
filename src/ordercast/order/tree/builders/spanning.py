"""Trees that follow the network instead of the groups: minimum spanning and shortest path trees. (Thesis, 4.4)

One tree spans all processes of the network, members of groups or not; its root is the process in most groups. Both have
short ways and many extra processes. Where no network is given everybody is next to everybody, and both are a star.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from heapq import heappop, heappush

from ordercast.model.ids import ProcessId
from ordercast.order.tree.builders.base import at_once, everybody, most_frequent
from ordercast.order.tree.given import Given
from ordercast.order.tree.graph import Memberships, Parents


class Even:
    """A network in which everybody is next to everybody."""

    def __init__(self, processes: Iterable[ProcessId]) -> None:
        self._processes = tuple(sorted(processes))

    def processes(self) -> Iterable[ProcessId]:
        return self._processes

    def neighbours(self, process: ProcessId) -> Mapping[ProcessId, int]:
        return {other: 1 for other in self._processes if other != process}

    def distance(self, one: ProcessId, other: ProcessId) -> int:
        return int(one != other)


Cost = Callable[[int, int], int]  # of a process: from what its parent's way costs, and the link to it


def _spanned(cost: Cost) -> Callable[[Memberships, Given], Parents]:
    """Return a builder that takes in the process that costs least, again and again; of several any, and first of all
    neighbours of the root, which gets as many children as it can."""

    def spanned(groups: Memberships, given: Given) -> Parents:
        if not groups:
            return {}
        terrain = given.terrain or Even(everybody(groups))
        root = most_frequent(groups)
        parents: dict[ProcessId, ProcessId | None] = {}
        todo: list[tuple[int, bool, float, ProcessId, ProcessId | None]] = [(0, False, 0.0, root, None)]
        while todo:
            paid, _, _, process, parent = heappop(todo)
            if process in parents:
                continue
            parents[process] = parent
            for other, link in sorted(terrain.neighbours(process).items()):
                if other not in parents:
                    chance = given.rng.random() if given.rng else 0.0
                    heappush(todo, (cost(paid, link), process != root, chance, other, process))
        return parents

    return spanned


minimum_spanning = at_once(_spanned(lambda paid, link: link))
shortest_paths = at_once(_spanned(lambda paid, link: paid + link))
