"""The thesis' generator: Heuristics I, II and III, and its random trees. (3.3, 4.4, Appendix I)

The root is the process in most groups. It takes in all groups that it is in; whoever shares one of these with it, an
*intersecter*, comes below. The groups that are left and meet an intersecter fall into *partitions* that do not meet one
another: each hangs below the root by one process, which is the root of what is left. They differ in which one.

With many groups that meet everywhere one partition is left at each step, and the tree is a chain: see `shallow`.
Recursion goes over a stack of its own, for such a chain is as deep as there are processes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator
from dataclasses import dataclass

from ordercast.model.ids import ProcessId
from ordercast.model.rng import Rng
from ordercast.order.tree.builders.base import Slices
from ordercast.order.tree.given import Given
from ordercast.order.tree.graph import Memberships


@dataclass(frozen=True, slots=True)
class Partition:
    """Groups that are left below a subroot and hang together, and who is in them."""

    subroot: ProcessId
    groups: frozenset[str]
    sites: frozenset[ProcessId]
    intersecters: frozenset[ProcessId]  # sites that share a group with the subroot; never empty


class Growth:
    """A forest under construction."""

    def __init__(self, groups: Memberships, choose: Choice, choose_root: RootChoice) -> None:
        self._members = groups
        self._choose = choose
        self._choose_root = choose_root
        self._left: dict[ProcessId, set[str]] = {}  # process -> its groups that have no entry yet
        for group in sorted(groups):
            for member in groups[group]:
                self._left.setdefault(member, set()).add(group)
        self._parents: dict[ProcessId, ProcessId | None] = {}

    def frequency(self, process: ProcessId) -> int:
        """Return in how many groups without an entry a process is."""
        return len(self._left[process])

    def forest(self) -> Slices:
        while candidates := [process for process, groups in self._left.items() if groups]:
            yield from self._grow(self._choose_root(self, candidates))
        return self._parents

    def _grow(self, root: ProcessId) -> Generator[None]:
        todo: list[tuple[ProcessId, ProcessId | None]] = [(root, None)]
        while todo:
            yield
            subroot, parent = todo.pop()
            self._parents[subroot] = parent
            intersecters = self._enter_groups(subroot)
            for partition in self._partitions(subroot, intersecters):
                todo.append((self._choose(self, partition), subroot))
                intersecters -= partition.sites
            for leaf in intersecters:
                self._parents[leaf] = subroot

    def _enter_groups(self, subroot: ProcessId) -> set[ProcessId]:
        """Make a process the entry of all its groups that have none, and return whom it shares them with."""
        intersecters: set[ProcessId] = set()
        for group in tuple(self._left[subroot]):
            members = self._members[group]
            intersecters |= members
            for member in members:
                self._left[member].discard(group)
        intersecters.discard(subroot)
        return intersecters

    def _partitions(self, subroot: ProcessId, intersecters: Collection[ProcessId]) -> list[Partition]:
        found: list[Partition] = []
        seen: set[ProcessId] = set()
        for start in sorted(intersecters):
            if start in seen or not self._left[start]:
                continue
            groups, sites = self._reached_from(start)
            seen |= sites
            found.append(Partition(subroot, groups, sites, sites.intersection(intersecters)))
        return found

    def _reached_from(self, start: ProcessId) -> tuple[frozenset[str], frozenset[ProcessId]]:
        groups: set[str] = set()
        sites = {start}
        todo = [start]
        while todo:
            for group in self._left[todo.pop()] - groups:
                groups.add(group)
                todo.extend(self._members[group] - sites)
                sites |= self._members[group]
        return frozenset(groups), frozenset(sites)


Choice = Callable[[Growth, Partition], ProcessId]  # the child that a partition hangs by
RootChoice = Callable[[Growth, list[ProcessId]], ProcessId]


def _frequent(growth: Growth, candidates: Collection[ProcessId]) -> ProcessId:
    return min(candidates, key=lambda process: (-growth.frequency(process), process))


def heuristic_1(groups: Memberships, given: Given) -> Slices:
    """Hang each partition by the intersecter that is in most of its groups."""
    return Growth(groups, lambda growth, partition: _frequent(growth, partition.intersecters), _frequent).forest()


def heuristic_2(groups: Memberships, given: Given) -> Slices:
    """Choose as Heuristic I, and of several the nearest."""

    def choose(growth: Growth, partition: Partition) -> ProcessId:
        return min(
            partition.intersecters,
            key=lambda site: (-growth.frequency(site), given.distance(partition.subroot, site), site),
        )

    return Growth(groups, choose, _frequent).forest()


def heuristic_3(groups: Memberships, given: Given) -> Slices:
    """Hang each partition by the nearest of all who are in it; of several by an intersecter in most of its groups."""

    def choose(growth: Growth, partition: Partition) -> ProcessId:
        return min(partition.sites, key=lambda site: _nearness(growth, partition, site, given))

    return Growth(groups, choose, _frequent).forest()


def _nearness(growth: Growth, partition: Partition, site: ProcessId, given: Given) -> tuple[int, bool, int, ProcessId]:
    distance = given.distance(partition.subroot, site)
    return distance, site not in partition.intersecters, -growth.frequency(site), site


def random_tree(groups: Memberships, given: Given) -> Slices:
    """Choose roots and children at random; without randomness the lowest."""

    def choose(growth: Growth, partition: Partition) -> ProcessId:
        return _any(sorted(partition.sites), given.rng)

    def choose_root(growth: Growth, candidates: list[ProcessId]) -> ProcessId:
        return _any(sorted(candidates), given.rng)

    return Growth(groups, choose, choose_root).forest()


def _any(sites: list[ProcessId], rng: Rng | None) -> ProcessId:
    return sites[0 if rng is None else rng.randrange(0, len(sites))]
