"""Simulations by the thousand: a file says which, Spark spreads them, a folder keeps what came of each.

`plan.py` reads the file into cells, `trial.py` runs one cell with one seed, `spread.py` does so in Spark's executors,
`results.py` keeps the rows, and `page.py` draws them. `run_campaign` puts these together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from ordercast.pipeline.campaign.page import failures_of, page_of
from ordercast.pipeline.campaign.plan import Campaign, campaign_from
from ordercast.pipeline.campaign.results import KEPT, Results, jobs_of
from ordercast.pipeline.campaign.spread import spread
from ordercast.pipeline.out_folder import writing_into
from ordercast.pipeline.page.html import html_of
from ordercast.pipeline.spark_session import open_session

__all__ = ["PAGE", "Campaign", "Outcome", "Progress", "campaign_from", "run_campaign"]

PAGE = "report.html"
# Java only hands rows about: its better compiler would take the processors from the simulations.
SESSION_OPTIONS = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}


@dataclass(slots=True)
class Progress:
    """What this command has done so far."""

    left: int  # runs, at its start
    done: int = 0
    failed: int = 0
    inputs: int = 0

    def add(self, table: pa.Table) -> None:
        self.done += len(table)
        self.failed += len(failures_of(table.select(["outcome"]).to_pylist()))
        self.inputs += sum(table["inputs"].to_pylist())


@dataclass(frozen=True, slots=True)
class Outcome:
    """All rows of the campaign, those of earlier commands too."""

    folder: Path
    page: Path
    rows: Sequence[dict[str, Any]]
    progress: Progress

    @property
    def failures(self) -> list[dict[str, Any]]:
        return failures_of(self.rows)


def run_campaign(
    campaign: Campaign,
    folder: Path,
    master: str | None = None,
    *,
    rerun_failed: bool = False,
    started: Callable[[Progress], None] = lambda progress: None,
    told: Callable[[Progress], None] = lambda progress: None,
) -> Outcome:
    """What is not done yet. `started` is told when Spark is there, `told` after each wave."""
    results = Results(folder)
    with results.locked():
        jobs = jobs_of(campaign, results.done(failed_too=not rerun_failed))
        progress = Progress(len(jobs))
        results.describe(campaign, campaign.runs - len(jobs))

        def keep(table: pa.Table) -> None:
            results.append(table)
            progress.add(table)
            told(progress)

        try:
            if jobs:
                with open_session("campaign", master, SESSION_OPTIONS) as spark:
                    started(progress)
                    spread(spark, campaign.cells, jobs, keep)
        finally:
            rows = results.latest(campaign)
            results.describe(campaign, len(rows))
            page = draw(campaign, rows, folder)
    return Outcome(folder, page, rows, progress)


def draw(campaign: Campaign, rows: Sequence[dict[str, Any]], folder: Path) -> Path:
    page, unfinished = folder / PAGE, folder / f".{PAGE}.unfinished"
    text = html_of(page_of(campaign, rows))
    with writing_into(folder, KEPT):
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(page)
    return page
