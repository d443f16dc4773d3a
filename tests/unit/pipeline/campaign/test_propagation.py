"""The study of propagation graphs: values within 10 % of our first run, intervals, plots, claims."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from ordercast.pipeline.campaign.propagation import (
    ABSOLUTE,
    AVERAGE,
    BUSIEST,
    COPIES,
    DEPTH,
    EXTRA,
    LOAD,
    ON_GRID,
    PATH,
    RELATIVE,
    TWO_PHASE,
    Point,
    Tally,
    by_point,
    measured,
    points,
)
from ordercast.pipeline.campaign.propagation_claims import claims
from ordercast.pipeline.campaign.propagation_page import SECTIONS, plots, propagation_page
from ordercast.pipeline.campaign.propagation_tables import delay_rows, method_rows
from ordercast.pipeline.page.html import html_of
from ordercast.pipeline.page.picture import svg_file_of

KNOWN = {  # sites, groups: d, ε, load; of groups of five by Heuristic I
    (20, 10): (2.3, 1.1, 31),
    (60, 20): (3.9, 2.7, 38),
    (60, 40): (6.5, 5.3, 87),
    (200, 40): (5.0, 3.9, 41),
}


@pytest.mark.parametrize(("sites", "groups"), KNOWN)
def test_depth_extra_processes_and_load_are_as_known(sites: int, groups: int) -> None:
    tally = Tally(Point(sites, groups, 5, ("heuristic-1",)))
    found = measured(tally.point)
    for measure, value in zip((DEPTH, EXTRA, LOAD), KNOWN[sites, groups], strict=True):
        one = found.estimate("heuristic-1", measure)
        assert abs(one.mean - value) <= RELATIVE * value + one.half, measure


def test_ways_on_a_grid_are_as_known() -> None:
    found = measured(Point(100, 20, 5, ON_GRID, has_grid=True), runs_max=25)
    for builder, cost in zip(ON_GRID, (21.9, 20.0, 14.1, 12.1, 10.1), strict=True):
        one = found.estimate(builder, PATH)
        assert abs(one.mean - cost) <= RELATIVE * cost + one.half, builder


def test_a_point_is_drawn_until_it_is_sure() -> None:
    found = measured(Point(100, 20, 5, ("heuristic-1",)))
    assert found.is_sure
    assert found.estimate("heuristic-1", EXTRA).half <= ABSOLUTE
    assert measured(found.point, runs_max=3).runs == 3


def _tally(point: Point) -> Tally:
    """Return some values, for the looks of it."""
    tally = Tally(point, 2)
    for place, builder in enumerate(point.builders):
        for measure in (LOAD,) if builder == TWO_PHASE else (DEPTH, EXTRA, LOAD, PATH, COPIES, BUSIEST, AVERAGE):
            tally.values[builder, measure] = [place + point.groups / point.sites, place + 1.0]
    return tally


def test_all_plots_are_drawn_and_all_claims_judged() -> None:
    tallies = by_point([_tally(point) for point in points()])
    drawn = plots(tallies)
    assert set(drawn) == {name for names in SECTIONS.values() for name in names}
    assert len([name for name in drawn if name.startswith("4.")]) == 14
    for plot in drawn.values():
        ElementTree.fromstring(svg_file_of(plot))
    assert {claim.holds for claim in claims(tallies)} <= {"yes", "no", "in part"}
    page = html_of(propagation_page(tallies, "ordercast graph study"))
    assert "Graph 4.14" in page and "When members have a message" in page


def test_tables_say_what_was_counted() -> None:
    rows = {(row[0], row[1]): row[2:] for row in delay_rows()}
    assert rows["point to point", "two-phase"][:4] == ["15.0", "3n = 15", "41.0", "41"]
    copies, formula, *_ = rows["point to point", "heuristic-1"]
    assert formula == f"n + ε = {copies}"
    kept = {row[0]: row[1:5] for row in method_rows()}
    assert kept["propagation"] == kept["two-phase"] == ["60"] * 4
    assert kept["sequence numbers"][:2] == ["60", "0"]
