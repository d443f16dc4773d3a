"""The comparisons of a campaign: prediction, the paper's numbers and ours side by side, as plots and tables. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from statistics import fmean
from typing import Any

from ordercast.pipeline.campaign.claims import finding_of
from ordercast.pipeline.campaign.comparison import Comparison
from ordercast.pipeline.campaign.model import PREDICTIONS, model_of
from ordercast.pipeline.campaign.plan import Campaign, Cell
from ordercast.pipeline.page.html import Block, Figure, PageTable, Section, Text
from ordercast.pipeline.page.plot import Plot, Series, Shape
from ordercast.pipeline.page.scales import Axis, number_text

Row = dict[str, Any]
OURS, PREDICTED, PAPER = "ours, simulated", "predicted by the model", "measured in the paper"
AGAINST = "ours against it"
BESIDE = "± model"  # the same, where there are many columns
CLAIM, FOUND, WITHIN = "what the paper says", "ours, least … most", "within it at"
Predictions = Mapping[str, Mapping[float, float]]  # by curve and place on the axis


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
    blocks: list[Block] = [Figure(_plot(comparison, curves, predicted), _caption(campaign, comparison))]
    blocks += [_claims(comparison, curves)] if comparison.claims else []
    blocks.append(_table(comparison, curves, predicted))
    return Section(comparison.title, blocks, comparison.text)


def _caption(campaign: Campaign, comparison: Comparison) -> str:
    count = len(campaign.seeds)
    sentences = [f"Ours is the mean of {count} seeds; the band reaches from the least to the most."] * (count > 1)
    if comparison.claims:
        sentences.append("Wide bands: where a curve should be by what the paper says of it beside another of ours.")
    return " ".join(sentences)


def _name(comparison: Comparison, cell: Cell) -> str:
    return str(cell.axes[comparison.series]) if comparison.series else OURS


def curves_of(comparison: Comparison, cells: Sequence[Cell], rows: Sequence[Row]) -> list[Curve]:
    by_key: dict[str, list[Row]] = {}
    for row in rows:
        by_key.setdefault(row["cell_key"], []).append(row)
    curves: dict[str, Curve] = {}
    for cell in comparison.cells(cells):
        name = _name(comparison, cell)
        curve = curves.setdefault(name, Curve(name))
        values = curve.values.setdefault(float(cell.axes[comparison.x]), [])
        for row in by_key.get(cell.key, []):
            measured = dict(row["measures"]).get(comparison.measure)
            if measured is not None:
                values.append(measured / comparison.scale)
    for curve in curves.values():
        curve.values = {x: values for x, values in curve.values.items() if values}
    return list(curves.values())


def predictions_of(campaign: Campaign, comparison: Comparison) -> Predictions:
    if not comparison.prediction:
        return {}
    predict = PREDICTIONS[comparison.prediction]
    found: dict[str, dict[float, float]] = {}
    for cell in comparison.cells(campaign.cells):
        options = cell.options(campaign.seeds[0])
        value = predict(options, campaign.model or model_of(options))
        if value is not None:
            found.setdefault(_name(comparison, cell), {})[float(cell.axes[comparison.x])] = value / comparison.scale
    return {name: dict(sorted(values.items())) for name, values in found.items()}


def _plot(comparison: Comparison, curves: Sequence[Curve], predicted: Predictions) -> Plot:
    series = [*_claimed(comparison, curves), *_ours(comparison, curves)]
    for number, (curve, values) in enumerate(predicted.items()):
        colour = [one.name for one in curves].index(curve) if comparison.series else 2
        name = "" if number else PREDICTED  # the legend explains dashes once
        series.append(Series(name, list(values.items()), Shape.LINE, colour, is_dashed=True))
    if comparison.paper:
        points = [(point.x, point.y) for point in comparison.paper]
        notes = [f"the paper: {point.note}" for point in comparison.paper]
        series.append(Series(PAPER, points, Shape.DOTS, len(curves), notes=notes))
    x, y = _axis(comparison, "x", comparison.x_label), _axis(comparison, "y", comparison.y_label)
    return Plot(comparison.title, x, y, series, comparison.marks, width=1060, height=340)


def _axis(comparison: Comparison, name: str, label: str) -> Axis:
    return Axis(label, is_log=True) if name in comparison.log else Axis(label, low=0)


def _shown(comparison: Comparison, curve: Curve) -> str:
    """Return what people read of a curve: true and false, and numbers, say nothing without their axis."""
    is_telling = not comparison.series or not re.fullmatch(r"True|False|[\d.]+", curve.name)
    return curve.name if is_telling else f"{comparison.series} {curve.name.lower()}"


def _ours(comparison: Comparison, curves: Sequence[Curve]) -> list[Series]:
    series = []
    for colour, curve in enumerate(curves):
        bounds = [(x, min(values), max(values)) for x, values in sorted(curve.values.items())]
        if any(low < high for _, low, high in bounds):
            series.append(Series("", bounds, Shape.BAND, colour))
        series.append(Series(_shown(comparison, curve), list(curve.means().items()), Shape.LINE_AND_DOTS, colour))
    return series


def _claimed(comparison: Comparison, curves: Sequence[Curve]) -> list[Series]:
    names, means = [curve.name for curve in curves], {curve.name: curve.means() for curve in curves}
    # A difference may lead below everything that there is, which a logarithmic axis cannot show.
    floor = min((y for curve in means.values() for y in curve.values()), default=0.0) if "y" in comparison.log else -inf
    series = []
    for claim in comparison.claims:
        bounds = [
            (x, *(max(bound, floor) for bound in claim.bounds(base))) for x, base in means.get(claim.over, {}).items()
        ]
        series.append(Series(f"the paper: {claim.note}", bounds, Shape.BAND, names.index(claim.curve)))
    return series


def _claims(comparison: Comparison, curves: Sequence[Curve]) -> PageTable:
    means = {curve.name: curve.means() for curve in curves}
    findings = [finding_of(claim, means) for claim in comparison.claims]
    rows = [[finding.claim.note, finding.range_text, finding.within_text] for finding in findings]
    return PageTable((CLAIM, FOUND, WITHIN), rows, left=(FOUND,), wide=(CLAIM, WITHIN))


def _table(comparison: Comparison, curves: Sequence[Curve], predicted: Predictions) -> PageTable:
    paper = {point.x: point for point in comparison.paper}
    all_predicted = {x for values in predicted.values() for x in values}
    places = sorted({*paper, *all_predicted, *(x for curve in curves for x in curve.values)})
    columns, rows = [comparison.x_label], [[number_text(x)] for x in places]
    for curve in curves:
        foretold, means = predicted.get(curve.name, {}), curve.means()
        is_alone = len(curves) == 1
        columns += [_shown(comparison, curve), *(([PREDICTED, AGAINST] if is_alone else [BESIDE]) if foretold else [])]
        for x, row in zip(places, rows, strict=True):
            row.append(_number(means.get(x)))
            row += [_number(foretold.get(x))] if foretold and is_alone else []
            row += [_difference(means.get(x), foretold.get(x))] if foretold else []
    if paper:
        columns.append(PAPER)
        for x, row in zip(places, rows, strict=True):
            row.append(paper[x].note if x in paper else "")
    return PageTable(columns, rows, wide=(PAPER,) if paper else ())


def _number(value: float | None) -> str:
    return "–" if value is None else number_text(value)


def _difference(ours: float | None, predicted: float | None) -> str:
    return "–" if ours is None or not predicted else f"{ours / predicted - 1:+.0%}"
