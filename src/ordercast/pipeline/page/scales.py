"""From numbers to places on an axis: round ticks, and numbers as people write them. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_STEPS = (1, 2, 2.5, 5, 10)
_UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1, "ns"))


@dataclass(frozen=True, slots=True)
class Axis:
    """`label` says what is on it, with the unit. Bounds that are not given follow from what is drawn."""

    label: str
    is_log: bool = False
    low: float | None = None
    high: float | None = None
    is_whole: bool = False  # of things that are counted: ticks are whole numbers
    names: Sequence[str] = ()  # of the places 0, 1, 2 …, when they are kinds and no amounts


@dataclass(frozen=True, slots=True)
class Scale:
    """An axis with its bounds, laid over a stretch of the picture."""

    low: float
    high: float
    is_log: bool
    start: float
    end: float
    ticks: tuple[float, ...]

    def place(self, value: float) -> float:
        low, high = self._bent(self.low), self._bent(self.high)
        return self.start + (self._bent(value) - low) / (high - low) * (self.end - self.start)

    def holds(self, value: float) -> bool:
        return self.low <= value <= self.high

    def _bent(self, value: float) -> float:
        """Nothing, which decades never reach, is at the foot of a logarithmic axis."""
        return math.log10(value if value > 0 else self.low) if self.is_log else value


def scale_over(axis: Axis, values: Iterable[float], start: float, end: float, ticks: int = 6) -> Scale:
    """Bounds are widened to round numbers; those that the axis names are kept."""
    found = [value for value in values if math.isfinite(value) and (value > 0 or not axis.is_log)]
    if axis.names:
        return Scale(-0.5, len(axis.names) - 0.5, False, start, end, tuple(range(len(axis.names))))
    low = axis.low if axis.low is not None else min(found, default=1.0 if axis.is_log else 0.0)
    high = axis.high if axis.high is not None else max(found, default=low)
    if axis.is_log:
        return _log_scale(axis, low, max(high, low), start, end)
    if high <= low:
        high = low + (abs(low) or 1.0)
    step = _step(high - low, ticks, (1, 2, 5, 10) if axis.is_whole else _STEPS)
    step = max(1.0, step) if axis.is_whole else step
    low = low if axis.low is not None else math.floor(low / step) * step
    high = high if axis.high is not None else math.ceil(high / step - 1e-12) * step
    count = math.floor((high - low) / step + 1e-9)
    first = math.ceil(low / step - 1e-9)
    marks = tuple(round((first + n) * step, 12) for n in range(count + 1) if (first + n) * step <= high + step * 1e-9)
    return Scale(low, high, False, start, end, marks)


def _log_scale(axis: Axis, low: float, high: float, start: float, end: float) -> Scale:
    """Decades; over less than three of them 2 and 5 as well."""
    bottom = low if axis.low is not None else _log_round(low, upward=False)
    top = high if axis.high is not None else _log_round(high, upward=True)
    top = top if top > bottom else bottom * 10
    parts = (1, 2, 5) if math.log10(top / bottom) < 3 else (1,)
    decades = range(math.floor(math.log10(bottom)), math.ceil(math.log10(top)) + 1)
    marks = (part * 10.0**decade for decade in decades for part in parts)
    return Scale(bottom, top, True, start, end, tuple(mark for mark in marks if bottom * 0.999 <= mark <= top * 1.001))


def _log_round(value: float, *, upward: bool) -> float:
    """The next of 1, 2, 5 × a power of ten."""
    power = 10.0 ** math.floor(math.log10(value) + 1e-9)
    rounds = [part * power for part in (1, 2, 5, 10)]
    if upward:
        return next(one for one in rounds if one >= value * 0.999)
    return next(one for one in reversed(rounds) if one <= value * 1.001)


def _step(span: float, ticks: int, steps: Sequence[float] = _STEPS) -> float:
    rough = span / max(1, ticks)
    power = float(10 ** math.floor(math.log10(rough)))
    return float(next(step for step in steps if step * power >= rough * 0.999)) * power


def round_step(span: float, parts: int) -> float:
    """The smallest of 1, 2, 2.5, 5 × a power of ten of which `parts` cover the span."""
    return _step(span, parts) if span > 0 else 1.0


def number_text(value: float) -> str:
    """`1,234`, `12.3`, `0.045`; no digit that nobody reads."""
    if not math.isfinite(value):
        return "–"
    if value == int(value) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def tick_text(value: float) -> str:
    """Short: `20k`, `1.5M`."""
    for bound, mark in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= bound:
            unit = 1e3 if mark == "k" else bound
            return f"{value / unit:.4g}{mark}"
    return f"{value:,.0f}" if value == int(value) else f"{value:.4g}"


def unit_of(values: Iterable[float]) -> tuple[float, str]:
    """Nanoseconds are divided by this, and called so: what suits the largest of them."""
    largest = max((abs(value) for value in values), default=0.0)
    return next(((size, name) for size, name in _UNITS if largest >= size), _UNITS[-1])


def time_text(ns: float | None) -> str:
    """`1.23 ms`"""
    if ns is None:
        return "–"
    size, name = unit_of([ns])
    return f"{number_text(ns / size)} {name}"


def size_text(size: int) -> str:
    """Return a number of bytes as text: `256 B`, `4 KiB`."""
    for bound, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= bound:
            return f"{number_text(size / bound)} {name}"
    return f"{size} B"
