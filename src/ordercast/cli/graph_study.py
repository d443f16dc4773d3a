"""`ordercast graph study`: the thesis' experiments, as tables, a document or a page with its plots."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.text import Text

from ordercast.cli.tables import new_table
from ordercast.cli.terminal import Meter, output, write_json
from ordercast.pipeline.campaign.propagation import Point, Tally, by_point, measured, points
from ordercast.pipeline.campaign.propagation_claims import claims
from ordercast.pipeline.campaign.propagation_page import (
    DELAY_COLUMNS,
    LARGE_COLUMNS,
    METHOD_COLUMNS,
    delay_plot,
    large_rows,
    plots,
    propagation_page,
)
from ordercast.pipeline.campaign.propagation_tables import delay_rows, method_rows
from ordercast.pipeline.out_folder import writing_into
from ordercast.pipeline.page.html import html_of
from ordercast.pipeline.page.picture import svg_file_of

PAGE = "report.html"


def studied(runs_max: int, out: Path | None, *, as_json: bool) -> int:
    """Run the study; write, draw or print it."""
    tallies = by_point(_tallies(runs_max))
    if out is not None:
        _write(out, tallies, f"ordercast graph study --runs {runs_max}")
    if as_json:
        write_json(_document(tallies))
        return 0
    console = output()
    tables = ((DELAY_COLUMNS, delay_rows()), (METHOD_COLUMNS, method_rows()), (LARGE_COLUMNS, large_rows(tallies)))
    for columns, rows in tables:
        table = new_table(*columns, right=columns[1:-1] if columns is METHOD_COLUMNS else columns[2:])
        for row in rows:
            table.add_row(*row)
        console.print(table)
    for claim in claims(tallies):
        console.print(Text(f"The thesis: {claim.said}. Found: {claim.found}. Holds: {claim.holds}."), soft_wrap=True)
    if out is not None:
        console.print(Text(f"page     {out / PAGE}"), soft_wrap=True)
    return 0


def _tallies(runs_max: int) -> list[Tally]:
    wanted, found = points(), []
    with Meter("study", len(wanted)) as meter:
        for point in wanted:
            found.append(measured(point, runs_max=runs_max))
            meter.show(len(found), f"{point.groups} groups, {point.sites} sites")
    return found


def _write(folder: Path, tallies: Mapping[Point, Tally], command: str) -> None:
    with writing_into(folder):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / PAGE).write_text(html_of(propagation_page(tallies, command)), encoding="utf-8")
        for name, plot in {**plots(tallies), "delays": delay_plot()}.items():
            (folder / f"{name}.svg").write_text(svg_file_of(plot), encoding="utf-8")


def _document(tallies: Mapping[Point, Tally]) -> dict[str, Any]:
    return {
        "points": [
            {
                "sites": point.sites,
                "groups": point.groups,
                "size": point.size,
                "grid": point.has_grid,
                "exponential": point.is_exponential,
                "racks": point.racks,
                "runs": tally.runs,
                "measures": [
                    {"builder": builder, "measure": measure, "mean": found.mean, "half_width": found.half}
                    for builder, measure in tally.values
                    for found in [tally.estimate(builder, measure)]
                ],
            }
            for point, tally in tallies.items()
        ],
        "claims": [{"thesis": one.said, "found": one.found, "holds": one.holds} for one in claims(tallies)],
    }
