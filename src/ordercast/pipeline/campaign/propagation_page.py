"""The page of the propagation study: Graphs 4.1 to 4.14 of the thesis, beyond them, and its tables. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ordercast.pipeline.campaign.propagation import (
    AVERAGE,
    BEYOND,
    BUSIEST,
    COPIES,
    COUNTS,
    DEPTH,
    EXTRA,
    LARGE,
    LOAD,
    MANY,
    ON_GRID,
    OVER_SITES,
    OVER_SIZES,
    PATH,
    SIDES,
    SITES,
    SIZE,
    SIZES,
    TWO_PHASE,
    Point,
    Tally,
)
from ordercast.pipeline.campaign.propagation_claims import PropagationClaim, claims
from ordercast.pipeline.campaign.propagation_tables import arrivals, delay_rows, method_rows
from ordercast.pipeline.page.html import Fact, Figure, Page, PageTable, Section, Text
from ordercast.pipeline.page.plot import Plot, Series, Shape
from ordercast.pipeline.page.scales import Axis

Tallies = Mapping[Point, Tally]
WORDS = {
    "heuristic-1": "Heuristic I",
    "heuristic-2": "Heuristic II",
    "heuristic-3": "Heuristic III",
    "random": "random tree",
    "mst": "minimum spanning tree",
    "spt": "shortest path tree",
    "centre": "centralised",
    "shallow": "shallow (ours)",
    TWO_PHASE: "two-phase (receivers)",
}
COLOURS = {"heuristic-1": 0, "heuristic-2": 1, "heuristic-3": 2, "mst": 3, "spt": 4, "random": 5, "shallow": 2}
COLOURS |= {"centre": 1, TWO_PHASE: 6}
Y_OF = {DEPTH: "d, edges to the furthest member", EXTRA: "ε, extra processes", LOAD: "load of the busiest site"}


@dataclass(frozen=True, slots=True)
class Curve:
    """One line of a plot: a measure of a builder over points."""

    name: str
    builder: str
    measure: str
    points: Sequence[tuple[float, Point]]


def _series(curves: Sequence[Curve], tallies: Tallies) -> list[Series]:
    """Return lines, and bands of their 95 % intervals."""
    found: list[Series] = []
    is_by_builder = len({curve.builder for curve in curves}) > 1
    for place, curve in enumerate(curves):
        colour = COLOURS[curve.builder] if is_by_builder else place
        known = [
            (x, tallies[point].estimate(curve.builder, curve.measure)) for x, point in curve.points if point in tallies
        ]
        found.append(Series("", [(x, one.low, one.high) for x, one in known], Shape.BAND, colour))
        found.append(Series(curve.name, [(x, one.mean) for x, one in known], Shape.LINE_AND_DOTS, colour))
    return found


def _over_sites(builder: str, measure: str, count: int, name: str) -> Curve:
    return Curve(name, builder, measure, [(sites, Point(sites, count, SIZE, OVER_SITES)) for sites in SITES])


def _over_sizes(builder: str, measure: str, count: int, name: str) -> Curve:
    return Curve(name, builder, measure, [(size, Point(200, count, size, OVER_SIZES)) for size in SIZES])


def _on_grid(builder: str, measure: str, count: int) -> Curve:
    points = [(side**2, Point(side**2, count, SIZE, ON_GRID, has_grid=True)) for side in SIDES]
    return Curve(WORDS[builder], builder, measure, points)


def _beyond(builder: str, measure: str, racks: int) -> Curve:
    return Curve(
        WORDS[builder], builder, measure, [(count, Point(64, count, 4, BEYOND, racks=racks)) for count in MANY]
    )


def _plot(title: str, x: Axis, y: str, curves: Sequence[Curve], tallies: Tallies) -> Plot:
    return Plot(title, x, Axis(y, low=0), _series(curves, tallies))


def _sites_axis() -> Axis:
    return Axis("sites", is_whole=True, is_log=True)


def _by_count(make: Callable[[str, str, int, str], Curve], measure: str) -> list[Curve]:
    return [make("heuristic-1", measure, count, f"{count} groups") for count in COUNTS]


def _loads(make: Callable[[str, str, int, str], Curve], builders: Sequence[str]) -> list[Curve]:
    return [make(builder, LOAD, 20, WORDS[builder]) for builder in builders]


def plots(tallies: Tallies) -> dict[str, Plot]:
    """Return all plots by the names of their files."""
    sites, sizes = _sites_axis(), Axis("group size", is_whole=True)
    found = {
        "4.1": _plot("Graph 4.1: depth, groups of 5", sites, Y_OF[DEPTH], _by_count(_over_sites, DEPTH), tallies),
        "4.2": _plot("Graph 4.2: depth, 200 sites", sizes, Y_OF[DEPTH], _by_count(_over_sizes, DEPTH), tallies),
        "4.3": _plot("Graph 4.3: extra processes", sites, Y_OF[EXTRA], _by_count(_over_sites, EXTRA), tallies),
        "4.4": _plot(
            "Graph 4.4: load, 20 groups of 5",
            sites,
            Y_OF[LOAD],
            _loads(_over_sites, ("heuristic-1", TWO_PHASE, "centre")),
            tallies,
        ),
        "4.5": _plot(
            "Graph 4.5: load, 20 groups, 200 sites", sizes, Y_OF[LOAD], _loads(_over_sizes, OVER_SIZES), tallies
        ),
    }
    for name, count in (("4.6", 20), ("4.7", 40)):
        curves = [_over_sites(builder, DEPTH, count, WORDS[builder]) for builder in ("heuristic-1", "random")]
        found[name] = _plot(f"Graph {name}: random trees, {count} groups", sites, Y_OF[DEPTH], curves, tallies)
    return found | _grid_plots(tallies) | _beyond_plots(tallies)


GRID_PLOTS = {
    "4.8": ("heuristic-1", "heuristic-2", "mst"),
    "4.10": ("heuristic-2", "heuristic-3", "mst"),
    "4.12": ("heuristic-3", "mst", "spt"),
}


def _grid_plots(tallies: Tallies) -> dict[str, Plot]:
    found = {}
    for first, builders in GRID_PLOTS.items():
        for name, count in ((first, 20), (f"4.{int(first[2:]) + 1}", 40)):
            curves = [_on_grid(builder, PATH, count) for builder in builders]
            title = f"Graph {name}: ways on a grid, {count} groups of 5"
            found[name] = _plot(title, _sites_axis(), "links to the furthest member", curves, tallies)
    curves = [_on_grid(builder, EXTRA, 20) for builder in ON_GRID]
    title = "Graph 4.14: extra processes on a grid, 20 groups of 5"
    return found | {"4.14": _plot(title, _sites_axis(), Y_OF[EXTRA], curves, tallies)}


def _beyond_plots(tallies: Tallies) -> dict[str, Plot]:
    found = {}
    for name, racks, words in (
        ("uniform", 0, "members anywhere"),
        ("racks", 8, "members in racks of 8, 5 % elsewhere"),
    ):
        x = Axis("groups of 3 to 5 on 64 hosts" if racks else "groups of 4 on 64 hosts", is_whole=True, is_log=True)
        depths, loads = ([_beyond(builder, measure, racks) for builder in BEYOND] for measure in (DEPTH, BUSIEST))
        found[f"depth-{name}"] = _plot(f"Depth, {words}", x, Y_OF[DEPTH], depths, tallies)
        y = "copies at the busiest host, for each message"
        found[f"busiest-{name}"] = _plot(f"Load, {words}", x, y, loads, tallies)
    return found


def delay_plot() -> Plot:
    """Draw when members have a message: the whole distribution, of which the thesis has the worst of each group."""
    series = []
    for method, times in arrivals().items():
        shares = {time: 100 * (place + 1) / len(times) for place, time in enumerate(times)}  # the last of each time
        points = [(0, 0), *shares.items()]
        series.append(Series(WORDS[method].split(" (")[0], points, Shape.STEP, COLOURS[method]))
    x, y = Axis("time since the source began", low=0), Axis("members that have it, %", low=0, high=100)
    return Plot("When members have a message", x, y, series)


def large_rows(tallies: Tallies) -> list[list[str]]:
    """Return what graphs cost where there are many groups."""
    rows = []
    for point in LARGE:
        where = f"{point.sites:,}, {point.groups:,} {'racks' if point.racks else 'anywhere'}"
        for builder in point.builders:
            found = [tallies[point].estimate(builder, measure).mean for measure in (DEPTH, COPIES, BUSIEST, AVERAGE)]
            rows.append(
                [
                    where,
                    WORDS[builder],
                    *(f"{value:.{digits}f}" for value, digits in zip(found, (1, 1, 2, 3), strict=True)),
                ]
            )
    return rows


SECTIONS = {
    "Depth and extra processes": ("4.1", "4.2", "4.3"),
    "Load": ("4.4", "4.5"),
    "Against random trees": ("4.6", "4.7"),
    "On a network": ("4.8", "4.9", "4.10", "4.11", "4.12", "4.13", "4.14"),
    "Beyond the thesis: up to 1,000 groups": ("depth-uniform", "busiest-uniform", "depth-racks", "busiest-racks"),
}
DELAY_COLUMNS = ("network", "method", "N, messages", "N, formula", "D, mean", "D, bound", "deepest first")
METHOD_COLUMNS = ("method", "single source", "multiple source", "multiple group", "acyclic", "the thesis")
LARGE_COLUMNS = ("hosts, groups", "graph", "d", "N, copies of a message", "busiest host", "average host")
CLAIM_COLUMNS = ("the thesis", "found", "holds")


def claim_rows(tallies: Tallies) -> list[list[str]]:
    found: list[PropagationClaim] = claims(tallies)
    return [[claim.said, claim.found, claim.holds] for claim in found]


def propagation_page(tallies: Tallies, command: str) -> Page:
    drawn = plots(tallies)
    said = PageTable(CLAIM_COLUMNS, claim_rows(tallies), wide=("the thesis", "found"), left=("holds",))
    sections = [
        Section("What the thesis says, and what holds", [said]),
        *(Section(title, [Figure(drawn[name]) for name in names]) for title, names in SECTIONS.items()),
        *_table_sections(tallies),
    ]
    runs = sum(tally.runs for tally in tallies.values())
    facts = [
        Fact(f"{len(tallies)}", "points"),
        Fact(f"{runs:,}", "draws of groups", "each measured with every builder of its plot"),
        Fact("95 %", "intervals", "drawn as bands"),
    ]
    title, text = "Propagation graphs: what they cost", "Graphs 4.1 to 4.14 and Tables 2.1, 4.1, 4.2 of the thesis."
    return Page(title, text, facts, sections, f"Made by {command}.")


def _table_sections(tallies: Tallies) -> list[Section]:
    large = PageTable(LARGE_COLUMNS, large_rows(tallies), left=("hosts, groups", "graph"))
    delays = PageTable(DELAY_COLUMNS, delay_rows(), left=("network", "method"))
    caption = "Runs of 60 that keep the property."
    methods = PageTable(METHOD_COLUMNS, method_rows(), left=("method",), caption=caption)
    return [
        Section("Where groups are many", [large, Text("Copies that a host receives and sends, for each message.")]),
        Section(
            "Tables 4.1 and 4.2: messages and delays, each message walked",
            [
                delays,
                Figure(delay_plot(), "All members of all groups, not only the last of each."),
                Text("P = 1 to send a copy, L = 10 on the way, T = 1 for a broadcast. 20 groups of 5, 60 sites."),
            ],
        ),
        Section("Table 2.1: what each method orders", [methods]),
    ]
