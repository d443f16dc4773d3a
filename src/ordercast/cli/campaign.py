"""`ordercast campaign`: engine × parameters × fault schedule × seeds, spread over Spark's executors."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from ordercast.cli.quantities import seeds_from
from ordercast.cli.tables import new_table
from ordercast.cli.terminal import Meter, complain, failed_text, output, write_json
from ordercast.pipeline.campaign import Campaign, Outcome, Progress, campaign_from, run_campaign
from ordercast.pipeline.campaign.page import Sum, sums_of
from ordercast.pipeline.campaign.replay import replay_of
from ordercast.pipeline.campaign.trial import VALID

CELLS_SHOWN = 40
FAILURES_SHOWN = 20


def campaign(
    file: Path,
    out: Path | None,
    seeds: str | None,
    engine: str | None,
    rerun_failed: bool,
    master: str | None,
    as_json: bool,
) -> int:
    plan = campaign_from(file, engine)
    if seeds is not None:
        plan = replace(plan, seeds=seeds_from(seeds))
    if plan.comparisons and all(cell.measure is None for cell in plan.cells):
        complain('the comparisons will be empty, for nothing is measured: add [measure] with window = "0.5s..3s"')
    outcome, seconds = _run(plan, out or Path(f"campaign-{plan.name}"), master, rerun_failed)
    if as_json:
        write_json(_document(plan, outcome, seconds))
    else:
        _draw(output(), plan, outcome, seconds)
    return 1 if outcome.failures else 0


def _run(plan: Campaign, folder: Path, master: str | None, rerun_failed: bool) -> tuple[Outcome, float]:
    """Run it, and return how long the simulations took, Spark's start not counted."""
    wanted = plan.runs
    meter = Meter("campaign", wanted, shown_after_s=0)
    with meter:
        meter.show(0, "starting Spark")
        began = [meter.seconds]

        def started(progress: Progress) -> None:
            began[0] = meter.seconds
            meter.show(wanted - progress.left, f"{progress.left:,} runs to do")

        def told(progress: Progress) -> None:
            rate = progress.inputs / max(meter.seconds - began[0], 1e-9)
            done = wanted - progress.left + progress.done
            failed = failed_text(progress.failed)
            meter.show(done, Text.assemble(f"{done:,} of {wanted:,}, ", failed, f", {rate:,.0f} inputs/s"))

        outcome = run_campaign(plan, folder, master, rerun_failed=rerun_failed, started=started, told=told)
        return outcome, meter.seconds - began[0]


def _document(plan: Campaign, outcome: Outcome, seconds: float) -> dict[str, Any]:
    sums = sums_of(plan, outcome.rows)
    cells = {cell.key: cell for cell in plan.cells}
    return {
        "campaign": plan.name,
        "folder": str(outcome.folder),
        "page": str(outcome.page),
        "runs": len(outcome.rows),
        "valid": len(outcome.rows) - len(outcome.failures),
        "failed": len(outcome.failures),
        "run_now": outcome.progress.done,
        "seconds": round(seconds, 6),
        "inputs_now": outcome.progress.inputs,
        "cells": [_cell_document(cell.name, sums[cell.key]) for cell in plan.cells],
        "failures": [
            {
                "cell": row["cell"],
                "seed": row["seed"],
                "outcome": row["outcome"],
                "sentence": row["sentence"].strip(),
                "replay": replay_of(plan, cells[row["cell_key"]], row["seed"]),
            }
            for row in outcome.failures
        ],
    }


def _cell_document(name: str, total: Sum) -> dict[str, Any]:
    means = {measure: sum(values) / len(values) for measure, values in sorted(total.measures.items())}
    return {"cell": name, "runs": total.runs, "valid": total.valid, "inputs": total.inputs, "measures": means}


def _draw(console: Console, plan: Campaign, outcome: Outcome, seconds: float) -> None:
    sums = sums_of(plan, outcome.rows)
    table = new_table("cell", "runs", "valid", "inputs", right=("runs", "valid", "inputs"))
    for cell in plan.cells[:CELLS_SHOWN]:
        total = sums[cell.key]
        table.add_row(Text(cell.name), f"{total.runs:,}", f"{total.valid:,}", f"{total.inputs:,}")
    console.print(table)
    if len(plan.cells) > CELLS_SHOWN:
        console.print(Text(f"… and {len(plan.cells) - CELLS_SHOWN:,} more cells: see {outcome.page}"), soft_wrap=True)
    _draw_failures(console, plan, outcome)
    console.print(_closing(outcome, seconds), soft_wrap=True)
    console.print(Text(f"page     {outcome.page}"), soft_wrap=True)
    console.print(Text(f"results  {outcome.folder / 'results'}"), soft_wrap=True)


def _draw_failures(console: Console, plan: Campaign, outcome: Outcome) -> None:
    cells = {cell.key: cell for cell in plan.cells}
    for row in outcome.failures[:FAILURES_SHOWN]:
        last = row["sentence"].strip().split("\n")[-1]
        said = f"\n{row['outcome']}: seed {row['seed']} of {row['cell']}: {last}"
        console.print(Text(said, style="bold red"), soft_wrap=True)
        console.print(Text(f"  replay   {replay_of(plan, cells[row['cell_key']], row['seed'])}"), soft_wrap=True)
    more = len(outcome.failures) - FAILURES_SHOWN
    if more > 0:
        console.print(Text(f"\n… and {more:,} more: see {outcome.page}"), soft_wrap=True)


def _closing(outcome: Outcome, seconds: float) -> Text:
    failed, runs = len(outcome.failures), len(outcome.rows)
    line = Text("\n")
    line.append(" FAILED " if failed else f" {VALID} ", style="reverse bold red" if failed else "reverse green")
    line.append(f"  {runs:,} runs: {runs - failed:,} valid, {failed:,} failed")
    now = outcome.progress
    if not now.done:
        line.append("  ·  all of it was done before")
        return line
    rate = now.inputs / max(seconds, 1e-9)
    line.append(f"  ·  {now.done:,} of them now, {now.inputs:,} inputs, {rate:,.0f} inputs/s  ·  {seconds:.1f} s")
    return line
