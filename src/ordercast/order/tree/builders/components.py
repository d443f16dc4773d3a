"""Which groups hang together: sets of groups that share no process with any other set."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator, Iterable

from ordercast.model.ids import ProcessId
from ordercast.order.tree.given import SLICE
from ordercast.order.tree.graph import Memberships


class Union:
    """Sets of processes that are joined two by two."""

    __slots__ = ("_above", "_sizes")

    def __init__(self, processes: Iterable[ProcessId] = ()) -> None:
        self._above: dict[ProcessId, ProcessId] = {process: process for process in processes}
        self._sizes: dict[ProcessId, int] = {}

    def find(self, process: ProcessId) -> ProcessId:
        """Return who stands for the set of a process."""
        above = self._above
        found = above.setdefault(process, process)
        while above[found] != found:
            above[found] = above[above[found]]
            found = above[found]
        above[process] = found
        return found

    def size(self, process: ProcessId) -> int:
        return self._sizes.get(self.find(process), 1)

    def join(self, one: ProcessId, other: ProcessId) -> None:
        first, second = self.find(one), self.find(other)
        if first == second:
            return
        if self.size(first) < self.size(second):
            first, second = second, first
        self._above[second] = first
        self._sizes[first] = self.size(first) + self.size(second)


def components(groups: Memberships) -> Generator[None, None, list[list[str]]]:
    """Return the groups of each part, in the order of their first names, sorted."""
    union = Union()
    names = sorted(groups)
    for place, name in enumerate(names):
        first, *others = groups[name]
        for other in others:
            union.join(first, other)
        if place % SLICE == SLICE - 1:
            yield
    found: dict[ProcessId, list[str]] = defaultdict(list)
    for place, name in enumerate(names):
        found[union.find(next(iter(groups[name])))].append(name)
        if place % (4 * SLICE) == 0:
            yield
    return list(found.values())
