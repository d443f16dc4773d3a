"""What the thesis' chapter 4 says of its curves, and what was found. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ordercast.pipeline.campaign.propagation import (
    BEYOND,
    COUNTS,
    DEPTH,
    EXTRA,
    LOAD,
    ON_GRID,
    OVER_SITES,
    PATH,
    SIDES,
    SITES,
    SIZE,
    TWO_PHASE,
    Point,
    Tally,
)

Tallies = Mapping[Point, Tally]
YES, NO, PARTLY = "yes", "no", "in part"


@dataclass(frozen=True, slots=True)
class PropagationClaim:
    said: str
    found: str
    holds: str


def _sites_point(sites: int, count: int) -> Point:
    return Point(sites, count, SIZE, OVER_SITES)


def _line(tallies: Tallies, builder: str, measure: str, count: int) -> list[float]:
    return [tallies[_sites_point(sites, count)].estimate(builder, measure).mean for sites in SITES]


def _grid_line(tallies: Tallies, builder: str, measure: str, count: int) -> list[float]:
    found = (tallies[Point(side**2, count, SIZE, ON_GRID, has_grid=True)] for side in SIDES)
    return [tally.estimate(builder, measure).mean for tally in found]


def claims(tallies: Tallies) -> list[PropagationClaim]:
    return [
        _small_depth(tallies),
        _hump(tallies, DEPTH, "d rises from the left, and falls where groups hardly meet"),
        _hump(tallies, EXTRA, "ε is low in general, and its curves have the same shape"),
        _loads(tallies),
        _random(tallies),
        _exponential(tallies),
        _second(tallies),
        _third(tallies),
        _rising(tallies),
        _shortest(tallies),
        _more_extra(tallies),
        _beyond(tallies),
    ]


def _holds(is_so: Sequence[bool]) -> str:
    return YES if all(is_so) else NO if not any(is_so) else PARTLY


def _small_depth(tallies: Tallies) -> PropagationClaim:
    small = [value <= 2 for count in COUNTS for value in _line(tallies, "heuristic-1", DEPTH, count)]
    most = {count: max(_line(tallies, "heuristic-1", DEPTH, count)) for count in COUNTS}
    words = ", ".join(f"{value:.1f} with {count} groups" for count, value in most.items())
    return PropagationClaim(
        "d is small: at most 2, or close, for small groups",
        f"{sum(small)} of {len(small)} points; at most {words}",
        _holds(small),
    )


def _falls(line: Sequence[float]) -> bool:
    """Tell whether no value is above the one before, but for noise, and the last is below the first."""
    return line[-1] < line[0] and all(later < 1.1 * earlier + 0.05 for earlier, later in pairwise(line))


def _hump(tallies: Tallies, measure: str, said: str) -> PropagationClaim:
    tops, is_hump = [], []
    for count in COUNTS:
        line = _line(tallies, "heuristic-1", measure, count)
        top = line.index(max(line))
        tops.append(f"{line[top]:.1f} at {SITES[top]} sites ({count} groups)")
        is_hump.append(_falls(line[top:]))
    return PropagationClaim(said, f"most {', '.join(tops)}; falling from there on", _holds(is_hump))


def _loads(tallies: Tallies) -> PropagationClaim:
    rows = [
        tuple(
            tallies[_sites_point(sites, count)].estimate(builder, LOAD).mean
            for builder in ("centre", "heuristic-1", TWO_PHASE)
        )
        for count in COUNTS
        for sites in SITES
    ]
    first, last = rows[len(SITES)], rows[2 * len(SITES) - 1]
    return PropagationClaim(
        "the load of the busiest site is high in the centre, low with two phases (receivers), between with graphs",
        f"centre > graph > two-phase in {sum(a > b > c for a, b, c in rows)} of {len(rows)} points; 20 groups: "
        f"{', '.join(f'{load:.0f}' for load in first)} on {SITES[0]} sites, "
        f"{', '.join(f'{load:.0f}' for load in last)} on {SITES[-1]:,}",
        _holds([a > b > c for a, b, c in rows]),
    )


def _random(tallies: Tallies) -> PropagationClaim:
    pairs = [
        pair
        for count in (20, 40)
        for pair in zip(*(_line(tallies, builder, DEPTH, count) for builder in ("heuristic-1", "random")), strict=True)
    ]
    ratio = max(other / one for one, other in pairs)
    return PropagationClaim(
        "Heuristic I is below random trees",
        f"in {sum(one < other for one, other in pairs)} of {len(pairs)} points; random trees up to {ratio:.1f} times "
        "as deep",
        _holds([one < other for one, other in pairs]),
    )


def _exponential(tallies: Tallies) -> PropagationClaim:
    pairs = [
        (
            tally.estimate("heuristic-1", DEPTH).mean,
            tallies[_sites_point(point.sites, point.groups)].estimate("heuristic-1", DEPTH).mean,
        )
        for point, tally in tallies.items()
        if point.is_exponential
    ]
    words = ", ".join(f"{one:.1f} for {other:.1f}" for one, other in pairs)
    return PropagationClaim(
        "sizes of exponential distribution give generally lower d", words, _holds([one < other for one, other in pairs])
    )


def _pairs(tallies: Tallies, one: str, other: str, measure: str = PATH) -> list[tuple[float, float]]:
    return [
        pair
        for count in (20, 40)
        for pair in zip(*(_grid_line(tallies, builder, measure, count) for builder in (one, other)), strict=True)
    ]


def _second(tallies: Tallies) -> PropagationClaim:
    pairs = _pairs(tallies, "heuristic-2", "heuristic-1")
    ratio = min(one / other for one, other in pairs)
    return PropagationClaim(
        "on a network Heuristic II has slightly shorter ways than I",
        f"{sum(one < other for one, other in pairs)} of {len(pairs)} points; {1 - ratio:.0%} shorter at most",
        _holds([one <= 1.02 * other for one, other in pairs]),
    )


def _third(tallies: Tallies) -> PropagationClaim:
    pairs = _pairs(tallies, "heuristic-3", "heuristic-2")
    best, worst = min(one / other for one, other in pairs), max(one / other for one, other in pairs)
    return PropagationClaim(
        "Heuristic III has shorter ways than II",
        f"{sum(one < other for one, other in pairs)} of {len(pairs)} points: from {best:.0%} to {worst:.0%} of II's",
        _holds([one < other for one, other in pairs]),
    )


def _rising(tallies: Tallies) -> PropagationClaim:
    lines = [_grid_line(tallies, "mst", PATH, count) for count in (20, 40)]
    is_rising = [one < other for line in lines for one, other in pairwise(line)]
    words = ", ".join(f"{line[0]:.0f} to {line[-1]:.0f} links" for line in lines)
    return PropagationClaim(
        "ways of the minimum spanning tree are good with few sites, and keep rising", words, _holds(is_rising)
    )


def _shortest(tallies: Tallies) -> PropagationClaim:
    best = [
        spt <= 1.1 * min(others)
        for spt, *others in (
            rows
            for count in (20, 40)
            for rows in zip(
                *(_grid_line(tallies, builder, PATH, count) for builder in ("spt", "mst", "heuristic-3")), strict=True
            )
        )
    ]
    return PropagationClaim(
        "the shortest path tree has the shortest ways, or nearly",
        f"within 10 % of the best in {sum(best)} of {len(best)} points",
        _holds(best),
    )


def _more_extra(tallies: Tallies) -> PropagationClaim:
    spanning, heuristics = (_grid_line(tallies, builder, EXTRA, 20) for builder in ("spt", "heuristic-3"))
    return PropagationClaim(
        "spanning trees have many more extra processes than heuristics",
        f"20 groups: {spanning[0]:.1f} to {spanning[-1]:.0f} (shortest paths), at most {max(heuristics):.1f} "
        "(Heuristic III)",
        _holds([one > other for one, other in zip(spanning, heuristics, strict=True)]),
    )


def _beyond(tallies: Tallies) -> PropagationClaim:
    def depth(builder: str, racks: int) -> float:
        return tallies[Point(64, 300, 4, BEYOND, racks=racks)].estimate(builder, DEPTH).mean

    return PropagationClaim(
        "(not said) with hundreds of groups, too, graphs are short",
        f"300 groups on 64 hosts: Heuristic I d = {depth('heuristic-1', 0):.0f} (members anywhere), "
        f"{depth('heuristic-1', 8):.0f} (racks); ours {depth('shallow', 0):.1f} and {depth('shallow', 8):.1f}",
        NO if depth("heuristic-1", 8) > 5 else YES,
    )
