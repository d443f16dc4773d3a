"""A figure that a campaign asks for: a measure along an axis beside a prediction and what the paper says. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from ordercast.model.errors import UsageError
from ordercast.pipeline.campaign.claims import Claim, check_claims, claim_from
from ordercast.pipeline.campaign.model import PREDICTIONS
from ordercast.pipeline.page.plot import Mark

if TYPE_CHECKING:
    from ordercast.pipeline.campaign.plan import Cell

MEASURES = {
    "rotation_us": "token rotation",
    "rotation_p99_us": "token rotation, 99 %",
    "latency_us": "latency, mean over the members",
    "latency_last_us": "latency until the last member",
    "latency_last_p99_us": "latency until the last member, 99 %",
    "latency_last_max_us": "latency until the last member, longest",
    "messages_per_s": "messages per second",
    "bytes_per_s": "bytes per second",
    "packets_per_message": "packets for each message",
}
OF_SENDERS = ("latency_us", "interval_us", "interval_deviation_us")  # behind the host's name, where hosts have rates


@dataclass(frozen=True, slots=True)
class PaperPoint:
    x: float
    y: float
    note: str


@dataclass(frozen=True, slots=True)
class Comparison:
    title: str
    text: str
    grid: str
    x: str  # axis
    x_label: str
    y_label: str
    measure: str
    scale: float  # what is measured is divided by this
    series: str  # axis of which each place is a curve of its own; empty: one curve
    where: Mapping[str, Any]  # places on other axes
    prediction: str  # empty: there is none
    paper: Sequence[PaperPoint]
    claims: Sequence[Claim]  # what the paper says of curves beside each other
    marks: Sequence[Mark]  # lines across
    log: Sequence[str]  # axes that are logarithmic: x, y

    def cells(self, cells: Sequence[Cell]) -> list[Cell]:
        """Return the cells that the comparison is about."""
        return [
            cell
            for cell in cells
            if cell.grid == self.grid and all(_labels(cell).get(axis) == label for axis, label in self.where.items())
        ]

    def check(self, cells: Sequence[Cell]) -> None:
        mine = self.cells(cells)
        if not mine:
            raise UsageError(f"comparison {self.title!r} is about no cell: check its grid and where")
        for axis in (self.x, *([self.series] if self.series else [])):
            if axis not in mine[0].axes:
                raise UsageError(f"comparison {self.title!r}: grid {self.grid!r} has no axis {axis!r}")
        for axis in _labels(mine[0]):
            labels = sorted({str(_labels(cell).get(axis)) for cell in mine})
            if axis not in (self.x, self.series) and len(labels) > 1:
                raise UsageError(
                    f"comparison {self.title!r} mixes cells that differ in {axis!r} ({', '.join(labels)}): choose one "
                    f'with where = {{ "{axis}" = … }}{"" if axis == FAULTS else ", or make it the series"}'
                )
        names = {str(cell.axes[self.series]) for cell in mine} if self.series else set[str]()
        check_claims(self.claims, names, self.title)


FAULTS = "faults"  # the name of a cell's schedule, as if it were an axis


def _labels(cell: Cell) -> dict[str, Any]:
    """Return all by which cells of a grid differ: their places on the axes, and the name of their faults."""
    return dict(cell.axes) | ({FAULTS: cell.schedule} if cell.schedule else {})


_KEYS = tuple(field.name for field in fields(Comparison))


def comparison_from(table: Mapping[str, Any]) -> Comparison:
    stranger = next((key for key in table if key not in _KEYS), None)
    if stranger is not None:
        raise UsageError(f"a comparison has no key {stranger!r}: it may have {', '.join(_KEYS)}")
    if table["measure"] not in MEASURES and not re.fullmatch(rf"n\d+_({'|'.join(OF_SENDERS)})", table["measure"]):
        known = (*MEASURES, *(f"n0_{measure}" for measure in OF_SENDERS))
        raise UsageError(f"there is no measure {table['measure']!r}: choose among {', '.join(known)}")
    prediction = table.get("prediction", "")
    if prediction and prediction not in PREDICTIONS:
        raise UsageError(f"there is no prediction {prediction!r}: choose among {', '.join(PREDICTIONS)}")
    return Comparison(
        title=str(table["title"]),
        text=str(table.get("text", "")),
        grid=str(table.get("grid", "")),
        x=str(table["x"]),
        x_label=str(table["x_label"]),
        y_label=str(table["y_label"]),
        measure=table["measure"],
        scale=float(table.get("scale", 1)),
        series=str(table.get("series", "")),
        where=dict(table.get("where", {})),
        prediction=prediction,
        paper=[PaperPoint(float(p["x"]), float(p["y"]), str(p.get("note", ""))) for p in table.get("paper", [])],
        claims=[claim_from(claim) for claim in table.get("claims", [])],
        marks=[_mark(mark) for mark in table.get("marks", [])],
        log=_log(table.get("log", [])),
    )


def _mark(table: Mapping[str, Any]) -> Mark:
    if ("x" in table) == ("y" in table):
        raise UsageError("a mark is at one place: write { x = …, name = … } or { y = …, name = … }")
    return Mark(float(table["y" if "y" in table else "x"]), str(table.get("name", "")), is_level="y" in table)


def _log(axes: Any) -> list[str]:
    if not isinstance(axes, list) or any(axis not in ("x", "y") for axis in axes):
        raise UsageError(f'log = {axes!r} cannot be used: write log = ["x"], ["y"] or ["x", "y"]')
    return axes
