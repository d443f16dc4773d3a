"""`ordercast topology study`: the graph study of the paper, as a table, a document or a page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.text import Text

from ordercast.cli.tables import new_table
from ordercast.cli.terminal import Meter, output, write_json
from ordercast.pipeline.campaign.graphs import KINDS, GraphRun, GraphSum, graph_run, graph_sums
from ordercast.pipeline.campaign.graphs_page import COLUMNS, PLOTS, STEPS, claims, graphs_page, sum_rows
from ordercast.pipeline.out_folder import writing_into
from ordercast.pipeline.page.html import html_of
from ordercast.pipeline.page.picture import svg_file_of

PAGE = "report.html"


def studied(seeds: range, out: Path | None, *, as_json: bool) -> int:
    """Run the study; write, draw or print it."""
    sums = graph_sums(_runs(seeds))
    if out is not None:
        _write(out, sums, f"ordercast topology study --seeds {seeds[0]}..{seeds[-1]}")
    if as_json:
        write_json(_document(sums, seeds))
        return 0
    console = output()
    table = new_table(*COLUMNS, right=COLUMNS[1:])
    for row in sum_rows(sums):
        table.add_row(*row)
    console.print(table)
    for claim in claims(sums):
        console.print(Text(f"The paper: {claim.said}. Found: {claim.found}. Holds: {claim.holds}."), soft_wrap=True)
    if out is not None:
        console.print(Text(f"page     {out / PAGE}"), soft_wrap=True)
    return 0


def _runs(seeds: range) -> list[GraphRun]:
    runs: list[GraphRun] = []
    with Meter("study", len(KINDS) * len(seeds)) as meter:
        for kind in KINDS:
            for seed in seeds:
                runs.append(graph_run(kind, seed))
                meter.show(len(runs), kind.name)
    return runs


def _write(folder: Path, sums: list[GraphSum], command: str) -> None:
    with writing_into(folder):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / PAGE).write_text(html_of(graphs_page(sums, command)), encoding="utf-8")
        for name, draw in PLOTS.items():
            (folder / f"{name}.svg").write_text(svg_file_of(draw(sums)), encoding="utf-8")


def _document(sums: list[GraphSum], seeds: range) -> dict[str, Any]:
    return {
        "seeds": [seeds[0], seeds[-1]],
        "networks": [
            {
                "name": one.kind.name,
                "gateways": one.edges,
                "losses_until_parted": one.lost,
                "heights": {str(step): one.height(step) for step in STEPS},
                "whole": {str(step): one.whole_share(step) for step in STEPS},
                "one_or_two_cut_off": one.small_share(),
            }
            for one in sums
        ],
        "claims": [{"paper": one.said, "found": one.found, "holds": one.holds} for one in claims(sums)],
    }
