"""Trees that follow the network instead of the groups: minimum spanning and shortest path trees. (Thesis, 4.4)

One tree spans all processes of the network, members of groups or not; its root is the process in most groups. Both have
short ways and many extra processes. Where no network is given everybody is next to everybody, and both are a star.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from heapq import heappop, heappush

from ordercast.model.ids import ProcessId
from ordercast.model.rng import Rng
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
    """Return a builder that takes in the process that costs least, again and again."""

    def spanned(groups: Memberships, given: Given) -> Parents:
        if not groups:
            return {}
        terrain, root = given.terrain or Even(everybody(groups)), most_frequent(groups)
        parents: dict[ProcessId, ProcessId | None] = {}
        edge = _Frontier(given.rng)
        edge.add(0, False, root, None)
        while edge:
            paid, process, parent = edge.taken()
            if process in parents:
                continue
            parents[process] = parent
            for other, link in sorted(terrain.neighbours(process).items()):
                if other not in parents:
                    edge.add(cost(paid, link), process != root, other, process)
        return parents

    return spanned


class _Frontier:
    """Processes next to a tree. The cheapest is taken; of several first a neighbour of the root, which has as many
    children as it can, then any."""

    def __init__(self, rng: Rng | None) -> None:
        self._rng = rng
        self._costs: list[tuple[int, bool]] = []
        self._of_cost: dict[tuple[int, bool], list[tuple[ProcessId, ProcessId | None]]] = {}

    def __bool__(self) -> bool:
        return bool(self._costs)

    def add(self, cost: int, is_far: bool, process: ProcessId, parent: ProcessId | None) -> None:
        if (cost, is_far) not in self._of_cost:
            self._of_cost[cost, is_far] = []
            heappush(self._costs, (cost, is_far))
        self._of_cost[cost, is_far].append((process, parent))

    def taken(self) -> tuple[int, ProcessId, ProcessId | None]:
        key = self._costs[0]
        equals = self._of_cost[key]
        place = len(equals) - 1 if self._rng is None else self._rng.randrange(0, len(equals))
        equals[place], equals[-1] = equals[-1], equals[place]
        process, parent = equals.pop()
        if not equals:
            del self._of_cost[heappop(self._costs)]
        return key[0], process, parent


minimum_spanning = at_once(_spanned(lambda paid, link: link))
shortest_paths = at_once(_spanned(lambda paid, link: paid + link))
