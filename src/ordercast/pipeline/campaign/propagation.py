"""The experiments of the propagation graphs' thesis, chapter 4: groups drawn at random, graphs built, costs counted.

Sites, groups and their size are given; members are drawn evenly. Each draw is measured with all builders that a point
compares, so that they differ in nothing else. A point is drawn anew until its 95 % intervals are as narrow as the
thesis' (10 % of the mean; for extra processes 0.5, or 5 % of more than ten), at most `RUNS_MAX` times. (4.1 to 4.4)
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isqrt, sqrt
from random import Random
from statistics import fmean, stdev

from ordercast.model.ids import ProcessId
from ordercast.order.tree.builders import build
from ordercast.order.tree.builders.base import most_frequent
from ordercast.order.tree.given import Given
from ordercast.order.tree.graph import Memberships
from ordercast.order.tree.survey import survey

RUNS_MIN, RUNS_MAX = 12, 300
RELATIVE, ABSOLUTE = 0.10, 0.5  # half widths of intervals: of the mean; of extra processes
TINY = 0.05  # means below need no relative interval
TWO_PHASE = "two-phase"
DEPTH, EXTRA, LOAD, PATH = "depth", "extra", "load", "path"
COPIES, BUSIEST, AVERAGE = "copies", "busiest", "average"


@dataclass(frozen=True, slots=True)
class Point:
    """What is drawn, and which builders are compared."""

    sites: int
    groups: int
    size: int
    builders: tuple[str, ...] = ("heuristic-1",)
    has_grid: bool = False  # sites are on a square grid, and ways on it are measured
    is_exponential: bool = False  # sizes have this mean, and are at least 2
    racks: int = 0  # sites of one: members of a group are in one rack, but for a few


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean with half the width of its 95 % interval."""

    mean: float
    half: float

    @property
    def low(self) -> float:
        return self.mean - self.half

    @property
    def high(self) -> float:
        return self.mean + self.half


@dataclass(slots=True)
class Tally:
    """What a point has come to."""

    point: Point
    runs: int = 0
    values: dict[tuple[str, str], list[float]] = field(default_factory=lambda: defaultdict(list))

    def estimate(self, builder: str, measure: str) -> Estimate:
        values = self.values[builder, measure]
        return Estimate(fmean(values), 1.96 * stdev(values) / sqrt(len(values)))

    @property
    def is_sure(self) -> bool:
        """Tell whether all intervals are as narrow as the thesis'."""
        if self.runs < RUNS_MIN:
            return False
        for builder, measure in self.values:
            found = self.estimate(builder, measure)
            limit = max(ABSOLUTE, RELATIVE * found.mean / 2) if measure == EXTRA else RELATIVE * found.mean
            if found.half > limit and found.mean > TINY:
                return False
        return True


class Grid:
    """A square of sites, each linked with its neighbours. Which process is where is drawn."""

    def __init__(self, sites: int, rng: Random) -> None:
        self._side = isqrt(sites)
        assert self._side**2 == sites, "a square"
        self._at = [ProcessId(1 + place) for place in range(sites)]
        rng.shuffle(self._at)
        self._places = {process: divmod(place, self._side) for place, process in enumerate(self._at)}

    def processes(self) -> Iterable[ProcessId]:
        return sorted(self._at)

    def neighbours(self, process: ProcessId) -> Mapping[ProcessId, int]:
        row, column = self._places[process]
        near = ((row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1))
        side = self._side
        return {self._at[one * side + other]: 1 for one, other in near if 0 <= one < side and 0 <= other < side}

    def distance(self, one: ProcessId, other: ProcessId) -> int:
        (row, column), (to_row, to_column) = self._places[one], self._places[other]
        return abs(row - to_row) + abs(column - to_column)


def drawn_groups(point: Point, rng: Random) -> Memberships:
    """Draw members of all groups, evenly or by racks."""
    return {f"g{place}": _members(point, _size(point, rng), rng) for place in range(point.groups)}


def _size(point: Point, rng: Random) -> int:
    if point.is_exponential:
        return min(point.sites, max(2, round(rng.expovariate(1 / point.size))))
    return rng.randint(point.size - 1, point.size + 1) if point.racks else point.size


def _members(point: Point, size: int, rng: Random) -> frozenset[ProcessId]:
    if not point.racks:
        return frozenset(ProcessId(1 + site) for site in rng.sample(range(point.sites), size))
    rack = rng.randrange(point.sites // point.racks) * point.racks
    members: set[ProcessId] = set()
    while len(members) < size:
        place = rng.randrange(point.sites) if rng.random() < 0.05 else rack + rng.randrange(point.racks)
        members.add(ProcessId(1 + place))
    return frozenset(members)


def measured(point: Point, *, runs_max: int = RUNS_MAX) -> Tally:
    """Draw a point until it is sure."""
    tally = Tally(point)
    while tally.runs < runs_max and not tally.is_sure:
        _draw(tally, Random(f"{point} {tally.runs}"))
        tally.runs += 1
    return tally


def _draw(tally: Tally, rng: Random) -> None:
    point = tally.point
    groups = drawn_groups(point, rng)
    given = Given(Grid(point.sites, rng) if point.has_grid else None, rng)
    for builder in point.builders:
        if builder == TWO_PHASE:
            tally.values[builder, LOAD].append(_two_phase_load(groups))
            continue
        found = survey(build(builder, groups, given), given)
        values = (found.depth, found.extra, found.load_max, found.copies, found.busiest, found.average)
        for measure, value in zip((DEPTH, EXTRA, LOAD, COPIES, BUSIEST, AVERAGE), values, strict=True):
            tally.values[builder, measure].append(value)
        if point.has_grid:
            tally.values[builder, PATH].append(found.path_cost)


def _two_phase_load(groups: Memberships) -> float:
    """Return the load of the busiest receiver: three messages for each of its groups. (Thesis, 4.1.2)"""
    busiest = most_frequent(groups)
    return 3.0 * sum(busiest in members for members in groups.values())


SIZE = 5
COUNTS = (10, 20, 40)
SITES = (20, 30, 40, 60, 80, 100, 150, 200, 300, 400, 600, 1_000)
SIZES = (5, 10, 15, 20, 30, 40)
SIDES = (4, 5, 7, 10, 14, 20, 25, 32)
MANY = (10, 20, 40, 80, 150, 300, 600, 1_000)
OVER_SITES = ("heuristic-1", "random", "centre", TWO_PHASE)
OVER_SIZES = ("heuristic-1", "centre", TWO_PHASE)
ON_GRID = ("heuristic-1", "heuristic-2", "heuristic-3", "mst", "spt")
BEYOND = ("heuristic-1", "shallow", "centre")
LARGE = (  # of which a table is made
    Point(64, 300, 4, BEYOND, racks=8),
    Point(64, 300, 4, BEYOND),
    Point(256, 1_000, 4, BEYOND),
    Point(1_000, 2_000, 4, ("shallow", "centre"), racks=8),
)


def points() -> list[Point]:
    """Return all points of the plots."""
    found = [Point(sites, count, SIZE, OVER_SITES) for count in COUNTS for sites in SITES]
    found += [Point(200, count, size, OVER_SIZES) for count in COUNTS for size in SIZES]
    found += [Point(side**2, count, SIZE, ON_GRID, has_grid=True) for count in COUNTS[1:] for side in SIDES]
    found += [Point(64, count, 4, BEYOND, racks=racks) for racks in (0, 8) for count in MANY]
    exponential = [Point(sites, count, SIZE, is_exponential=True) for count in COUNTS[1:] for sites in (20, 100, 200)]
    return found + [point for point in LARGE if point not in found] + exponential


def by_point(tallies: Sequence[Tally]) -> dict[Point, Tally]:
    return {tally.point: tally for tally in tallies}
