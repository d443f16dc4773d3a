"""Rows of coloured stretches over one axis of time: who was where, when. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

from ordercast.pipeline.page.plot import Mark, sheet
from ordercast.pipeline.page.scales import Axis, Scale, scale_over, tick_text

_LEFT, _RIGHT, _TOP, _BOTTOM = 68, 18, 20, 52
_ROW = 26
_LETTER = 7.2


@dataclass(frozen=True, slots=True)
class Stretch:
    start: float
    end: float
    colour: int | None  # None: nothing settled, drawn as a hatched line
    name: str = ""  # written inside, where there is room
    note: str = ""  # for the pointer


@dataclass(frozen=True, slots=True)
class Strips:
    title: str
    x: Axis
    rows: Sequence[tuple[str, Sequence[Stretch]]]
    marks: Sequence[Mark] = field(default_factory=tuple)
    width: int = 1060

    @property
    def is_empty(self) -> bool:
        return not any(stretches for _, stretches in self.rows)


def svg_of_strips(strips: Strips) -> str:
    if strips.is_empty:
        raise ValueError(f"strips {strips.title!r} have no data")
    ends = [at for _, stretches in strips.rows for stretch in stretches for at in (stretch.start, stretch.end)]
    bottom = _TOP + _ROW * len(strips.rows)
    x = scale_over(strips.x, ends, _LEFT, strips.width - _RIGHT, 10)
    parts = [_axis(strips, x, bottom)]
    for number, (name, stretches) in enumerate(strips.rows):
        middle = _TOP + _ROW * (number + 0.5)
        parts.append(f'<text class="row" x="{_LEFT - 10}" y="{middle + 4:.1f}" text-anchor="end">{escape(name)}</text>')
        parts += [_drawn(stretch, x, middle) for stretch in stretches]
    parts += [_mark(mark, x, bottom) for mark in strips.marks]
    return sheet(strips.width, bottom + _BOTTOM, strips.title, parts)


def _axis(strips: Strips, x: Scale, bottom: float) -> str:
    parts = [f'<line class="axis" x1="{x.start:.1f}" x2="{x.end:.1f}" y1="{bottom}" y2="{bottom}"/>']
    for tick in x.ticks:
        at = x.place(tick)
        parts.append(f'<line class="grid" x1="{at:.1f}" x2="{at:.1f}" y1="{_TOP}" y2="{bottom}"/>')
        parts.append(f'<text class="tick" x="{at:.1f}" y="{bottom + 18}" text-anchor="middle">{tick_text(tick)}</text>')
    middle = (x.start + x.end) / 2
    label = escape(strips.x.label)
    parts.append(f'<text class="label" x="{middle:.1f}" y="{bottom + 40}" text-anchor="middle">{label}</text>')
    return "".join(parts)


def _drawn(stretch: Stretch, x: Scale, middle: float) -> str:
    left, right = x.place(stretch.start), x.place(stretch.end)
    wide = max(1.0, right - left)
    note = f"<title>{escape(stretch.note)}</title>" if stretch.note else ""
    if stretch.colour is None:
        return (
            f'<rect class="unsettled" x="{left:.1f}" y="{middle - 2:.1f}" width="{wide:.1f}" height="4">{note}</rect>'
        )
    bar = (
        f'<rect class="stretch f{stretch.colour}" x="{left:.1f}" y="{middle - 9:.1f}" width="{wide:.1f}" '
        f'height="18" rx="2">{note}</rect>'
    )
    if wide < len(stretch.name) * _LETTER + 8:
        return bar
    return f'{bar}<text class="inside" x="{left + 6:.1f}" y="{middle + 4:.1f}">{escape(stretch.name)}</text>'


def _mark(mark: Mark, x: Scale, bottom: float) -> str:
    if not x.holds(mark.at):
        return ""
    at = x.place(mark.at)
    note = f"<title>{escape(mark.note or mark.name)}</title>"
    text = f'<text class="marked" x="{at + 4:.1f}" y="{_TOP - 6}">{escape(mark.name)}</text>' if mark.name else ""
    return f'<line class="mark" x1="{at:.1f}" x2="{at:.1f}" y1="{_TOP - 14}" y2="{bottom}">{note}</line>{text}'
