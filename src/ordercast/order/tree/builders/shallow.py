"""Our own builder: clusters of processes that share groups, a hub in each, a root above the hubs.

Heuristic I makes a chain of processes where many groups meet. Any forest is right in which each group has a common
ancestor, so this one is flat: two edges from the root to anybody, and three with many hubs. A group within a cluster
enters at the hub; only groups that cross clusters, or have the root in them, pass the root. Parts that share no group
are trees of their own.

Three steps for each part. Agglomerate: pairs that share most (rate of a group, divided among its pairs) come together
first, as long as their cluster is small enough. Move: single processes change the cluster while fewer groups cross.
Choose: the root is the process in most crossing groups, and leaves its cluster; a hub is the one in most groups of its
cluster; more hubs than `fan_max` are clustered once more, by the groups that cross.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Generator, Mapping
from heapq import heapify, heappop
from itertools import combinations, pairwise

from ordercast.model.ids import ProcessId
from ordercast.order.tree.builders.base import Builder, Slices
from ordercast.order.tree.builders.components import Union, components
from ordercast.order.tree.given import SLICE, Given
from ordercast.order.tree.graph import Memberships

CLUSTER_MAX = 8  # processes, the hub among them
FAN_MAX = 24  # hubs below one process
PASSES_MAX = 4  # over all processes, moving them
PAIRED_MAX = 16  # members of a group all of whose pairs count; of larger ones neighbours alone

GroupRates = Mapping[str, float]
Clusters = dict[ProcessId, int]  # process -> its cluster


def shallow(cluster_max: int = CLUSTER_MAX, fan_max: int = FAN_MAX) -> Builder:
    """Return a builder whose clusters have at most so many processes."""

    def built(groups: Memberships, given: Given) -> Slices:
        parents: dict[ProcessId, ProcessId | None] = {}
        rates = {group: given.rate(group) for group in groups}
        for names in (yield from components(groups)):
            part = {name: groups[name] for name in names}
            yield from _grow(part, rates, cluster_max, fan_max, parents)
        return parents

    return built


def _grow(
    groups: Memberships, rates: GroupRates, size_max: int, fan_max: int, parents: dict[ProcessId, ProcessId | None]
) -> Generator[None]:
    """Put the processes of groups that hang together into one tree, level by level from below."""
    processes: Collection[ProcessId] = sorted(set().union(*groups.values()))
    root: ProcessId | None = None
    while len(processes) > size_max:
        clusters = yield from _clustered(processes, groups, rates, size_max)
        crossing = yield from _crossing(groups, clusters)
        if root is None:
            root = _busiest(processes, crossing or groups, rates)
            del clusters[root]
        yield
        hubs = yield from _hubs(clusters, groups, rates)
        parents.update((process, hubs[cluster]) for process, cluster in clusters.items())
        yield
        groups = {name: _raised(members, clusters, hubs) for name, members in crossing.items()}
        if len(hubs) == len(clusters):
            break
        processes, size_max = sorted(hubs.values()), fan_max
    if root is None:
        root = _busiest(processes, groups, rates)
    parents.update((process, root) for process in processes)
    parents[root] = None


def _crossing(groups: Memberships, clusters: Clusters) -> Generator[None, None, dict[str, frozenset[ProcessId]]]:
    """Return the groups that are in several clusters."""
    found: dict[str, frozenset[ProcessId]] = {}
    for place, (name, members) in enumerate(groups.items()):
        if _is_crossing(members, clusters):
            found[name] = members
        if place % (4 * SLICE) == 0:
            yield
    return found


def _raised(members: Collection[ProcessId], clusters: Clusters, hubs: Mapping[int, ProcessId]) -> frozenset[ProcessId]:
    """Return the hubs of the clusters that a group is in."""
    return frozenset(hubs[clusters[member]] for member in members if member in clusters)


def _clustered(
    processes: Collection[ProcessId], groups: Memberships, rates: GroupRates, size_max: int
) -> Generator[None, None, Clusters]:
    pairs = yield from _weighed_pairs(groups, rates)
    union = Union(processes)
    while pairs:
        _, one, other = heappop(pairs)
        if union.size(one) + union.size(other) <= size_max:
            union.join(one, other)
        if len(pairs) % SLICE == 0:
            yield
    numbers: dict[ProcessId, int] = {}
    clusters = {process: numbers.setdefault(union.find(process), len(numbers)) for process in processes}
    yield from _moved(clusters, groups, rates, size_max)
    return clusters


def _weighed_pairs(
    groups: Memberships, rates: GroupRates
) -> Generator[None, None, list[tuple[float, ProcessId, ProcessId]]]:
    """Return pairs of processes as a heap: those first that have most in common."""
    weights: dict[tuple[ProcessId, ProcessId], float] = defaultdict(float)
    for place, (name, members) in enumerate(groups.items()):
        ordered = sorted(members)
        for pair in combinations(ordered, 2) if len(ordered) <= PAIRED_MAX else pairwise(ordered):
            weights[pair] -= rates[name] / (len(ordered) - 1)
        if place % SLICE == 0:
            yield
    pairs = [(weight, *pair) for pair, weight in weights.items()]
    yield
    heapify(pairs)
    return pairs


def _moved(clusters: Clusters, groups: Memberships, rates: GroupRates, size_max: int) -> Generator[None]:
    """Move single processes to other clusters while fewer groups cross."""
    sizes: dict[int, int] = defaultdict(int)
    for cluster in clusters.values():
        sizes[cluster] += 1
    groups_of: dict[ProcessId, list[str]] = defaultdict(list)
    for place, (name, members) in enumerate(groups.items()):
        for member in members if len(members) <= PAIRED_MAX else ():
            groups_of[member].append(name)
        if place % SLICE == SLICE - 1:
            yield
    for _ in range(PASSES_MAX):
        has_moved, looked_at = False, 0
        for process, mine in sorted(clusters.items()):
            better = _better_cluster(process, mine, groups_of[process], clusters, groups, rates)
            if better is not None and sizes[better] < size_max:
                clusters[process], has_moved = better, True
                sizes[mine], sizes[better] = sizes[mine] - 1, sizes[better] + 1
            looked_at += 1 + len(groups_of[process])
            if looked_at >= SLICE:
                looked_at = 0
                yield
        if not has_moved:
            return


def _better_cluster(
    process: ProcessId, mine: int, names: Collection[str], clusters: Clusters, groups: Memberships, rates: GroupRates
) -> int | None:
    """Return the cluster that would keep most groups of a process whole, if that is more than its own keeps."""
    kept: dict[int, float] = defaultdict(float)
    for name in names:
        others = {clusters[member] for member in groups[name] if member != process}
        if len(others) == 1:
            kept[others.pop()] += rates[name]
    best = min(kept, key=lambda cluster: (-kept[cluster], cluster), default=mine)
    return best if kept.get(best, 0.0) > kept.get(mine, 0.0) else None


def _is_crossing(members: Collection[ProcessId], clusters: Clusters) -> bool:
    return len({clusters[member] for member in members}) > 1


def _busiest(processes: Collection[ProcessId], groups: Memberships, rates: GroupRates) -> ProcessId:
    """Return who has most messages of these groups."""
    busy: dict[ProcessId, float] = dict.fromkeys(processes, 0.0)
    for name, members in groups.items():
        for member in members:
            busy[member] += rates[name]
    return min(busy, key=lambda process: (-busy[process], process))


def _hubs(clusters: Clusters, groups: Memberships, rates: GroupRates) -> Generator[None, None, dict[int, ProcessId]]:
    """Return the hub of each cluster: who is in most groups that do not cross, and of these in most of all."""
    busy: dict[ProcessId, tuple[float, float]] = dict.fromkeys(clusters, (0.0, 0.0))
    for place, (name, members) in enumerate(groups.items()):
        rate, mine = rates[name], [member for member in members if member in clusters]
        is_crossing = len(mine) < len(members) or _is_crossing(mine, clusters)
        for member in mine:
            inside, across = busy[member]
            busy[member] = (inside, across + rate) if is_crossing else (inside + rate, across)
        if place % SLICE == 0:
            yield
    hubs: dict[int, ProcessId] = {}
    for process in sorted(clusters, key=lambda one: (-busy[one][0], -busy[one][1], one)):
        hubs.setdefault(clusters[process], process)
    return hubs
