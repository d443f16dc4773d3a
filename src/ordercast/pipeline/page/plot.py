"""One plot as SVG: axes with labels and units, lines, steps, bands, dots and bars, a legend. Pure.

Colours are classes that the page's style gives a meaning, so that a plot is readable on a light and on a dark screen. A
dot and a bar tell their numbers when the pointer rests on them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from html import escape

from ordercast.pipeline.page.scales import Axis, Scale, number_text, scale_over, tick_text

_LEFT, _RIGHT, _TOP, _BOTTOM = 68, 18, 14, 52
_LEGEND_HEIGHT = 24
_LETTER = 6.6  # width of one, roughly


class Shape(Enum):
    LINE = "line"
    STEP = "step"  # a value holds until the next
    DOTS = "dots"
    LINE_AND_DOTS = "line and dots"
    BAND = "band"  # points are (x, low, high)
    BARS = "bars"  # points are (left, right, height)


Point = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Series:
    name: str  # in the legend; empty: not there
    points: Sequence[Point | None]  # None: a gap
    shape: Shape = Shape.LINE
    colour: int = 0
    is_dashed: bool = False
    notes: Sequence[str] = ()  # one per point, for the pointer

    @property
    def present(self) -> list[Point]:
        return [point for point in self.points if point is not None]


@dataclass(frozen=True, slots=True)
class Mark:
    """A thin line across: upright at an x, or level at a y."""

    at: float
    name: str = ""  # beside it
    is_level: bool = False
    note: str = ""  # for the pointer


@dataclass(frozen=True, slots=True)
class Plot:
    title: str
    x: Axis
    y: Axis
    series: Sequence[Series]
    marks: Sequence[Mark] = field(default_factory=tuple)
    width: int = 760
    height: int = 300

    @property
    def is_empty(self) -> bool:
        return not any(series.present for series in self.series)


def svg_of(plot: Plot) -> str:
    """ValueError when there is nothing to draw: an empty plot tells nothing, a sentence does."""
    if plot.is_empty:
        raise ValueError(f"plot {plot.title!r} has no data")
    named = [series for series in plot.series if series.name]
    legend, rows = _legend(named, plot.width) if len(named) > 1 else ("", 0)
    top = _TOP + rows * _LEGEND_HEIGHT
    height = plot.height + rows * _LEGEND_HEIGHT
    x = scale_over(plot.x, _xs(plot), _LEFT, plot.width - _RIGHT, 8)
    y = scale_over(plot.y, _ys(plot), height - _BOTTOM, top, 5)
    parts = [legend, _grid(plot, x, y), *(_mark(mark, x, y) for mark in plot.marks)]
    parts += [_drawn(series, x, y) for series in sorted(plot.series, key=lambda one: one.shape is not Shape.BAND)]
    parts += [_mark_name(mark, x, y) for mark in plot.marks]  # last: nothing is drawn over words
    return sheet(plot.width, height, plot.title, parts)


def sheet(width: int, height: float, title: str, parts: Iterable[str]) -> str:
    """Return a drawing of these parts. It is never shown at less than three quarters of its size, where its words would
    be too small to read: a narrow page scrolls it."""
    return (
        f'<svg viewBox="0 0 {width} {height}" style="min-width:{width * 3 // 4}px" role="img" '
        f'aria-label="{escape(title)}"><title>{escape(title)}</title>{"".join(parts)}</svg>'
    )


def _xs(plot: Plot) -> list[float]:
    found = [value for series in plot.series for point in series.present for value in _across(series, point)]
    return found + [mark.at for mark in plot.marks if not mark.is_level]


def _ys(plot: Plot) -> list[float]:
    found = [value for series in plot.series for point in series.present for value in _upright(series, point)]
    return found + [mark.at for mark in plot.marks if mark.is_level]


def _across(series: Series, point: Point) -> Point:
    return point[:2] if series.shape is Shape.BARS else point[:1]


def _upright(series: Series, point: Point) -> Point:
    return (0.0, point[2]) if series.shape is Shape.BARS else point[1:]


# Around the data


def _legend(named: Sequence[Series], width: int) -> tuple[str, int]:
    """As many rows as it needs, and how many these are."""
    left, row, parts = float(_LEFT), 0, []
    for series in named:
        wide = 30 + len(series.name) * _LETTER
        if left + wide > width and left > _LEFT:
            left, row = float(_LEFT), row + 1
        middle = 12 + row * _LEGEND_HEIGHT
        parts.append(_swatch(series, left, middle))
        parts.append(f'<text class="legend" x="{left + 24:.0f}" y="{middle + 4}">{escape(series.name)}</text>')
        left += wide + 12
    return "".join(parts), row + 1


def _swatch(series: Series, left: float, middle: float) -> str:
    if series.shape in (Shape.BAND, Shape.BARS):
        style = "band" if series.shape is Shape.BAND else "bar"
        return f'<rect class="{style} f{series.colour}" x="{left:.0f}" y="{middle - 5}" width="18" height="10"/>'
    dot = f'<circle class="dot f{series.colour}" cx="{left + 9:.0f}" cy="{middle}" r="4"/>'
    line = (
        f'<line class="line s{series.colour}{_dash(series)}" '
        f'x1="{left:.0f}" x2="{left + 18:.0f}" y1="{middle}" y2="{middle}"/>'
    )
    return {Shape.DOTS: dot, Shape.LINE_AND_DOTS: line + dot}.get(series.shape, line)


def _dash(series: Series) -> str:
    return " dashed" if series.is_dashed else ""


def _grid(plot: Plot, x: Scale, y: Scale) -> str:
    parts = []
    for tick in y.ticks:
        at = y.place(tick)
        parts.append(f'<line class="grid" x1="{x.start:.1f}" x2="{x.end:.1f}" y1="{at:.1f}" y2="{at:.1f}"/>')
        parts.append(
            f'<text class="tick" x="{x.start - 8:.1f}" y="{at + 4:.1f}" text-anchor="end">{_tick(plot.y, tick)}</text>'
        )
    for tick in x.ticks:
        at = x.place(tick)
        parts.append(f'<line class="tickmark" x1="{at:.1f}" x2="{at:.1f}" y1="{y.start:.1f}" y2="{y.start + 4:.1f}"/>')
        parts.append(
            f'<text class="tick" x="{at:.1f}" y="{y.start + 18:.1f}" text-anchor="middle">{_tick(plot.x, tick)}</text>'
        )
    middle, centre = (x.start + x.end) / 2, (y.start + y.end) / 2
    parts.append(f'<line class="axis" x1="{x.start:.1f}" x2="{x.end:.1f}" y1="{y.start:.1f}" y2="{y.start:.1f}"/>')
    parts.append(
        f'<text class="label" x="{middle:.1f}" y="{y.start + 40:.1f}" text-anchor="middle">'
        f"{escape(plot.x.label)}</text>"
    )
    parts.append(
        f'<text class="label" transform="translate(16 {centre:.1f}) rotate(-90)" text-anchor="middle">'
        f"{escape(plot.y.label)}</text>"
    )
    return "".join(parts)


def _tick(axis: Axis, tick: float) -> str:
    return escape(axis.names[int(tick)]) if axis.names else tick_text(tick)


def _mark(mark: Mark, x: Scale, y: Scale) -> str:
    scale = y if mark.is_level else x
    if not scale.holds(mark.at):
        return ""
    at = scale.place(mark.at)
    if mark.is_level:
        line = f'x1="{x.start:.1f}" x2="{x.end:.1f}" y1="{at:.1f}" y2="{at:.1f}"'
    else:
        line = f'x1="{at:.1f}" x2="{at:.1f}" y1="{y.start:.1f}" y2="{y.end:.1f}"'
    return f'<line class="mark" {line}>{_told(mark.note)}</line>'


def _mark_name(mark: Mark, x: Scale, y: Scale) -> str:
    scale = y if mark.is_level else x
    if not mark.name or not scale.holds(mark.at):
        return ""
    at = scale.place(mark.at)
    if mark.is_level:
        place = f'x="{x.end - 4:.1f}" y="{at - 5:.1f}" text-anchor="end"'
    else:
        is_late = at > x.end - _LETTER * len(mark.name)  # it would leave the picture
        side = f'x="{at - 4:.1f}" text-anchor="end"' if is_late else f'x="{at + 4:.1f}"'
        place = f'{side} y="{y.end + 10:.1f}"'
    return f'<text class="marked" {place}>{escape(mark.name)}</text>'


# The data


def _drawn(series: Series, x: Scale, y: Scale) -> str:
    if series.shape is Shape.BARS:
        return "".join(_bar(series, number, point, x, y) for number, point in enumerate(series.present))
    stretches = _stretches(series.points)
    if series.shape is Shape.BAND:
        return "".join(_band(series, stretch, x, y) for stretch in stretches)
    parts = []
    if series.shape is not Shape.DOTS:
        parts = [_line(series, stretch, x, y) for stretch in stretches]
    if series.shape in (Shape.DOTS, Shape.LINE_AND_DOTS):
        parts += [_dot(series, number, point, x, y) for number, point in enumerate(series.present)]
    return "".join(parts)


def _stretches(points: Iterable[Point | None]) -> list[list[Point]]:
    """Return the points in stretches, without the gaps."""
    stretches: list[list[Point]] = [[]]
    for point in points:
        if point is None:
            stretches.append([])
        else:
            stretches[-1].append(point)
    return [stretch for stretch in stretches if stretch]


def _line(series: Series, points: Sequence[Point], x: Scale, y: Scale) -> str:
    path, before = "", None
    for point in points:
        at, high = x.place(point[0]), y.place(point[1])
        if before is None:
            path = f"M{at:.1f} {high:.1f}"
        elif series.shape is Shape.STEP:
            path += f"H{at:.1f}V{high:.1f}"
        else:
            path += f"L{at:.1f} {high:.1f}"
        before = point
    if len(points) == 1:  # a line needs a length to be seen
        path += "h1"
    return f'<path class="line s{series.colour}{_dash(series)}" d="{path}"/>'


def _band(series: Series, points: Sequence[Point], x: Scale, y: Scale) -> str:
    upper = [f"{x.place(at):.1f} {y.place(high):.1f}" for at, _, high in points]
    lower = [f"{x.place(at):.1f} {y.place(low):.1f}" for at, low, _ in reversed(points)]
    return f'<path class="band f{series.colour}" d="M{"L".join(upper + lower)}Z"/>'


def _dot(series: Series, number: int, point: Point, x: Scale, y: Scale) -> str:
    note = series.notes[number] if number < len(series.notes) else _numbers(series, point)
    return (
        f'<circle class="dot f{series.colour}" cx="{x.place(point[0]):.1f}" cy="{y.place(point[1]):.1f}" r="4">'
        f"{_told(note)}</circle>"
    )


def _bar(series: Series, number: int, point: Point, x: Scale, y: Scale) -> str:
    left, right, high = x.place(point[0]), x.place(point[1]), y.place(point[2])
    note = series.notes[number] if number < len(series.notes) else _numbers(series, point)
    wide = max(1.0, right - left - (1 if right - left > 3 else 0))
    return (
        f'<rect class="bar f{series.colour}" x="{left:.1f}" y="{high:.1f}" width="{wide:.1f}" '
        f'height="{max(0.0, y.start - high):.1f}">{_told(note)}</rect>'
    )


def _numbers(series: Series, point: Point) -> str:
    numbers = ", ".join(number_text(value) for value in point)
    return f"{series.name}: {numbers}" if series.name else numbers


def _told(note: str) -> str:
    return f"<title>{escape(note)}</title>" if note else ""
