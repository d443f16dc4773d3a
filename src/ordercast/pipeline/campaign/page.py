"""The page of a campaign: what failed and how to replay it, what was measured, what every cell came to. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from ordercast.pipeline.campaign.comparison import MEASURES
from ordercast.pipeline.campaign.figures import comparison_section
from ordercast.pipeline.campaign.plan import Campaign, Cell
from ordercast.pipeline.campaign.replay import replay_of
from ordercast.pipeline.campaign.trial import VALID
from ordercast.pipeline.page.html import Block, Code, Fact, Page, PageTable, Section, Text
from ordercast.pipeline.page.scales import number_text, time_text
from ordercast.sim.swarm import SwarmKind, expected_rows

Row = dict[str, Any]
FAILURES_SHOWN = 200
CELLS_SHOWN = 500


@dataclass(slots=True)
class Sum:
    """Sums up the runs of one cell, or of all."""

    runs: int = 0
    valid: int = 0
    inputs: int = 0
    submissions: int = 0
    seconds: float = 0.0
    virtual_ns: int = 0
    measures: dict[str, list[float]] = field(default_factory=dict)

    def add(self, row: Row) -> None:
        self.runs += 1
        self.valid += row["outcome"] == VALID
        for name in ("inputs", "submissions", "seconds", "virtual_ns"):
            setattr(self, name, getattr(self, name) + row[name])
        for name, value in row["measures"]:
            self.measures.setdefault(name, []).append(value)


def sums_of(campaign: Campaign, rows: Sequence[Row]) -> dict[str, Sum]:
    """By the key of the cell."""
    sums = {cell.key: Sum() for cell in campaign.cells}
    for row in rows:
        sums[row["cell_key"]].add(row)
    return sums


def failures_of(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row["outcome"] != VALID]


def page_of(campaign: Campaign, rows: Sequence[Row]) -> Page:
    total = Sum()
    for row in rows:
        total.add(row)
    failures = failures_of(rows)
    wanted = campaign.runs
    sections = [_failure_section(campaign, failures)] if failures else []
    sections += [comparison_section(campaign, comparison, rows) for comparison in campaign.comparisons]
    sections.append(_cell_section(campaign, rows))
    if any(cell.hostile for cell in campaign.cells):
        sections.append(_coverage_section(campaign, rows))
    facts = [
        Fact(f"{total.valid:,} of {total.runs:,}", "runs VALID", mood="bad" if failures else "good"),
        Fact(f"{total.runs / wanted:.0%}", "of the campaign done", f"{wanted:,} runs in all"),
        Fact(
            number_text(len(campaign.cells)),
            "cells",
            f"{len(campaign.seeds):,} seed{'s' * (len(campaign.seeds) != 1)} each",
        ),
        Fact(number_text(total.inputs), "inputs of engines"),
        Fact(time_text(total.virtual_ns), "virtual time"),
        Fact(time_text(total.seconds * 1e9), "of running, all runs"),
    ]
    foot = f"Made by ordercast campaign {campaign.path}. Every run is a row of results/*.parquet beside this page."
    return Page(campaign.title, campaign.text, facts, sections, foot)


def _failure_section(campaign: Campaign, failures: Sequence[Row]) -> Section:
    by_key = {cell.key: cell for cell in campaign.cells}
    blocks: list[Block] = []
    for row in failures[:FAILURES_SHOWN]:
        last = row["sentence"].strip().split("\n")[-1]
        blocks.append(Text(f"{row['outcome']}, seed {row['seed']} of {row['cell']}: {last}"))
        blocks.append(Code([replay_of(campaign, by_key[row["cell_key"]], row["seed"])]))
    more = len(failures) - FAILURES_SHOWN
    lead = f"{len(failures):,} runs are not VALID. Each command replays its run."
    return Section("Failing seeds", blocks, lead + (f" The first {FAILURES_SHOWN} are shown." if more > 0 else ""))


def _cell_section(campaign: Campaign, rows: Sequence[Row]) -> Section:
    sums = sums_of(campaign, rows)
    names = [name for name in MEASURES if any(name in total.measures for total in sums.values())]
    columns = ("cell", "runs", "valid", "inputs", "virtual time", *(MEASURES[name] + _unit(name) for name in names))
    cells = [_cell_row(cell, sums[cell.key], names) for cell in campaign.cells[:CELLS_SHOWN]]
    caption = f"The first {CELLS_SHOWN} of {len(campaign.cells):,}." if len(campaign.cells) > CELLS_SHOWN else ""
    lead = "Mean over the seeds of each cell." if names else ""
    return Section("Cells", [PageTable(columns, cells, left=("cell",), caption=caption)], lead)


def _unit(name: str) -> str:
    return ", ms" if name.endswith("_us") else ""


def _cell_row(cell: Cell, total: Sum, names: Sequence[str]) -> list[str]:
    numbers = [str(total.runs), str(total.valid), number_text(total.inputs), time_text(total.virtual_ns)]
    measured = [
        number_text(fmean(total.measures[name]) / (1000 if name.endswith("_us") else 1))
        if name in total.measures
        else "–"
        for name in names
    ]
    return [cell.name, *numbers, *measured]


def counts_of(rows: Sequence[Row]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for row in rows:
        counts.update(dict(row["counts"]))
    return counts


def _coverage_section(campaign: Campaign, rows: Sequence[Row]) -> Section:
    kinds = {SwarmKind(cell.hostile) for cell in campaign.cells if cell.hostile}
    richest = next(kind for kind in (SwarmKind.REPLICATED, SwarmKind.GROUPS, SwarmKind.PLAIN) if kind in kinds)
    expected = expected_rows(richest)
    counts = counts_of(rows)
    never = [name for name in expected if not counts[name]]
    lead = "How often everything happened that such a campaign must have met: what never happened was not tested."
    blocks: list[Block] = []
    if never:
        blocks.append(Text(f"Never happened: {'; '.join(never)}. Run more seeds."))
    blocks.append(PageTable(("what", "how often"), [[name, f"{counts[name]:,}"] for name in expected], left=("what",)))
    return Section("What the runs met", blocks, lead)
