"""The comparisons of a campaign: prediction, the paper's numbers and ours side by side, as plots and tables. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from ordercast.pipeline.campaign.comparison import Comparison
from ordercast.pipeline.campaign.model import PREDICTIONS, model_of
from ordercast.pipeline.campaign.plan import Campaign, Cell
from ordercast.pipeline.page.html import Block, Figure, Section, Table, Text
from ordercast.pipeline.page.plot import Plot, Series, Shape
from ordercast.pipeline.page.scales import Axis, number_text

Row = dict[str, Any]
OURS, PREDICTED, PAPER = "ours, simulated", "predicted by the paper's model", "measured in the paper"


@dataclass(slots=True)
class Curve:
    """One curve of ours: by place on the axis what each seed measured."""

    name: str
    values: dict[float, list[float]] = field(default_factory=dict)

    def means(self) -> dict[float, float]:
        return {x: fmean(values) for x, values in sorted(self.values.items()) if values}


def comparison_section(campaign: Campaign, comparison: Comparison, rows: Sequence[Row]) -> Section:
    curves = curves_of(comparison, campaign.cells, rows)
    if not any(curve.values for curve in curves):
        sentence = "Nothing was measured yet that could be drawn here."
        return Section(comparison.title, [Text(sentence, is_missing=True)], comparison.text)
    predicted = predictions_of(campaign, comparison)
    blocks: list[Block] = [Figure(_plot(comparison, curves, predicted), _caption(campaign))]
    blocks.append(_table(comparison, curves, predicted))
    return Section(comparison.title, blocks, comparison.text)


def _caption(campaign: Campaign) -> str:
    count = len(campaign.seeds)
    return f"Ours is the mean of {count} seeds; the band reaches from the least to the most." if count > 1 else ""


def curves_of(comparison: Comparison, cells: Sequence[Cell], rows: Sequence[Row]) -> list[Curve]:
    by_key: dict[str, list[Row]] = {}
    for row in rows:
        by_key.setdefault(row["cell_key"], []).append(row)
    curves: dict[str, Curve] = {}
    for cell in comparison.cells(cells):
        name = str(cell.axes[comparison.series]) if comparison.series else OURS
        curve = curves.setdefault(name, Curve(name))
        values = curve.values.setdefault(float(cell.axes[comparison.x]), [])
        for row in by_key.get(cell.key, []):
            measured = dict(row["measures"]).get(comparison.measure)
            if measured is not None:
                values.append(measured / comparison.scale)
    for curve in curves.values():
        curve.values = {x: values for x, values in curve.values.items() if values}
    return list(curves.values())


def predictions_of(campaign: Campaign, comparison: Comparison) -> dict[float, float]:
    if not comparison.prediction:
        return {}
    predict = PREDICTIONS[comparison.prediction]
    found = {}
    for cell in comparison.cells(campaign.cells):
        options = cell.options(campaign.seeds[0])
        value = predict(options, campaign.model or model_of(options))
        if value is not None:
            found[float(cell.axes[comparison.x])] = value / comparison.scale
    return dict(sorted(found.items()))


def _plot(comparison: Comparison, curves: Sequence[Curve], predicted: Mapping[float, float]) -> Plot:
    series = []
    for colour, curve in enumerate(curves):
        place = colour if comparison.series else 0
        bounds = [(x, min(values), max(values)) for x, values in sorted(curve.values.items())]
        if any(low < high for _, low, high in bounds):
            series.append(Series("", bounds, Shape.BAND, place))
        means = list(curve.means().items())
        series.append(Series(curve.name, means, Shape.LINE_AND_DOTS, place))
    if predicted:
        series.append(Series(PREDICTED, list(predicted.items()), Shape.LINE, 2, is_dashed=True))
    if comparison.paper:
        points = [(point.x, point.y) for point in comparison.paper]
        notes = [f"the paper: {point.note}" for point in comparison.paper]
        series.append(Series(PAPER, points, Shape.DOTS, 1, notes=notes))
    x, y = Axis(comparison.x_label, low=0), Axis(comparison.y_label, low=0)
    return Plot(comparison.title, x, y, series, width=1060, height=340)


def _table(comparison: Comparison, curves: Sequence[Curve], predicted: Mapping[float, float]) -> Table:
    paper = {point.x: point for point in comparison.paper}
    places = sorted({*paper, *predicted, *(x for curve in curves for x in curve.values)})
    means = [curve.means() for curve in curves]
    columns = [comparison.x_label, *(curve.name for curve in curves)]
    columns += [PREDICTED, "ours against it"] if predicted else []
    columns += [PAPER] if paper else []
    rows = []
    for x in places:
        cells = [number_text(x), *(_number(mean.get(x)) for mean in means)]
        if predicted:
            cells += [_number(predicted.get(x)), _difference(means[0].get(x), predicted.get(x))]
        if paper:
            cells.append(paper[x].note if x in paper else "")
        rows.append(cells)
    return Table(columns, rows, wide=(PAPER,) if paper else ())


def _number(value: float | None) -> str:
    return "–" if value is None else number_text(value)


def _difference(ours: float | None, predicted: float | None) -> str:
    return "–" if ours is None or not predicted else f"{ours / predicted - 1:+.0%}"
