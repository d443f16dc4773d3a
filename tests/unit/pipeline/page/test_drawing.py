"""Plots are well-formed, labelled and never empty; a page needs nothing from outside and escapes what it is given."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from ordercast.pipeline.page.html import Block, Code, Fact, Figure, Page, PageTable, Section, Side, Text, html_of
from ordercast.pipeline.page.plot import Mark, Plot, Series, Shape, svg_of
from ordercast.pipeline.page.scales import Axis
from ordercast.pipeline.page.strips import Stretch, Strips, svg_of_strips

HOSTILE = "<script>alert('x')</script> & \"more\""


def _plot(*series: Series, title: str = "Waits") -> Plot:
    return Plot(title, Axis("time, s"), Axis("wait, ms", low=0), series, [Mark(1.5, "view"), Mark(2, "limit", True)])


def _classes(svg: str, kind: str) -> list[ElementTree.Element]:
    return [one for one in ElementTree.fromstring(svg).iter() if kind in one.get("class", "").split()]


@pytest.mark.parametrize("shape", [shape for shape in Shape if shape not in (Shape.BAND, Shape.BARS)])
def test_a_plot_is_well_formed_and_names_its_axes_with_units(shape: Shape) -> None:
    svg = svg_of(_plot(Series("a", [(1, 2), (2, 3)], shape), Series("b", [(1, 1), (2, 1)], shape, 1)))
    labels = [one.text for one in _classes(svg, "label")]
    assert labels == ["time, s", "wait, ms"]
    assert [one.text for one in _classes(svg, "legend")] == ["a", "b"]
    assert _classes(svg, "tick")


def test_bands_and_bars_are_drawn() -> None:
    assert len(_classes(svg_of(_plot(Series("", [(1, 2, 3), (2, 2, 4)], Shape.BAND))), "band")) == 1
    assert len(_classes(svg_of(_plot(Series("", [(0, 1, 3), (1, 2, 4)], Shape.BARS))), "bar")) == 2


def test_a_gap_breaks_the_line() -> None:
    svg = svg_of(_plot(Series("", [(1, 2), (2, 3), None, (3, 4), (4, 5)])))
    assert len(_classes(svg, "line")) == 2


@pytest.mark.parametrize("series", [[], [Series("a", [])], [Series("a", [None])]])
def test_an_empty_plot_is_refused(series: list[Series]) -> None:
    with pytest.raises(ValueError, match="no data"):
        svg_of(_plot(*series))


def test_strips_are_drawn_and_empty_ones_refused() -> None:
    rows = [("n0", [Stretch(0, 1, 0, "3 members", "n0, n1"), Stretch(1, 2, None)]), ("n1", [])]
    svg = svg_of_strips(Strips("Views", Axis("time, s"), rows, [Mark(1, "crash")]))
    assert len(_classes(svg, "stretch")) == 1
    assert len(_classes(svg, "unsettled")) == 1
    assert [one.text for one in _classes(svg, "label")] == ["time, s"]
    with pytest.raises(ValueError, match="no data"):
        svg_of_strips(Strips("Views", Axis("time, s"), [("n0", [])]))


def test_a_page_needs_nothing_from_outside_and_escapes_everything() -> None:
    figure = Figure(_plot(Series(HOSTILE, [(1, 2)], Shape.DOTS, notes=[HOSTILE]), title=HOSTILE), HOSTILE)
    blocks: list[Block] = [
        Text(HOSTILE),
        Code([HOSTILE]),
        Side([figure]),
        PageTable((HOSTILE,), [[HOSTILE]], caption=HOSTILE),
    ]
    text = html_of(Page(HOSTILE, HOSTILE, [Fact(HOSTILE, HOSTILE, HOSTILE)], [Section(HOSTILE, blocks, HOSTILE)]))
    assert "<script" not in text
    assert "https:" not in text and "http:" not in text and " src=" not in text and "@import" not in text
    assert "default-src 'none'" in text
    assert all(link.startswith("#") for link in re.findall(r'href="([^"]*)"', text))
    for name in re.findall(r'href="#([^"]*)"', text):
        assert f'id="{name}"' in text


def test_drawings_stay_readable_on_narrow_pages() -> None:
    strips = Strips("views", Axis("s"), [("n1", [Stretch(0, 1, 0)])])
    for drawing, least in ((svg_of(_plot(Series("a", [(1, 2)]))), 570), (svg_of_strips(strips), 795)):
        assert f"min-width:{least}px" in drawing.split(">")[0]
