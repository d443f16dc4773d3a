"""Traces to numbers and pictures: `report(path, out)` makes Parquet tables with Spark and one page of them.

`source.py` makes one frame of whatever traces there are, `messages.py`, `views.py` and the engines' own modules ask
it questions, `tables.py` runs them and keeps the answers as small Arrow tables, `promises.py` those of `ordercast
verify`; and from there on no Spark is needed: `page.py` and its sections draw.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ordercast.model.errors import UsageError
from ordercast.pipeline.out_folder import writing_into
from ordercast.pipeline.page.html import html_of
from ordercast.pipeline.report.page import page_of
from ordercast.pipeline.report.promises import promises_table
from ordercast.pipeline.report.source import Sources, events_of, sources_in
from ordercast.pipeline.report.tables import NAMES, Tables, tables_of
from ordercast.pipeline.spark_session import open_session
from ordercast.pipeline.verify.job import verify

__all__ = ["PAGE", "STEPS", "TABLES", "Report", "Sources", "Tables", "report", "sources_in"]

PAGE = "report.html"
TABLES = "tables"
SMALL_SIZE = 64 << 20  # bytes of traces for which Spark would spend more on preparing its work than on doing it
SMALL_OPTIONS = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "2",
}
STEPS = len(NAMES) + 1  # what `told` counts to: reading the traces, then the tables


@dataclass(frozen=True, slots=True)
class Report:
    page: Path
    folder: Path  # of the tables
    tables: Tables


def report(
    path: Path,
    out: Path,
    master: str | None = None,
    told: Callable[[int, str], None] = lambda done, what: None,
) -> Report:
    """Write the report of the traces at `path` into the folder `out`. UsageError says what is in the way, before Spark
    is started."""
    sources = sources_in(path)
    prepare(out)
    told(0, "starting Spark")
    options = SMALL_OPTIONS if sources.size < SMALL_SIZE else {}
    with scratch_in(out) as scratch, open_session("report", master, options) as spark:
        events = events_of(spark, sources, Path(scratch))
        told(1, "promises")
        promises = promises_table(judged.verdicts for judged in verify(spark, sources.traces))
        tables = tables_of(events, promises, lambda done, name: told(done + 2, name))
    with writing_into(out):
        tables.write(out / TABLES)
    return Report(draw(tables, sources, out), out / TABLES, tables)


def draw(tables: Tables, sources: Sources, out: Path) -> Path:
    """The page, there whole or not at all."""
    page, unfinished = out / PAGE, out / f".{PAGE}.unfinished"
    text = html_of(page_of(tables, sources))
    with writing_into(out):
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(page)
    return page


def prepare(out: Path) -> None:
    try:
        (out / TABLES).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"the folder {out} cannot be made: {error.strerror}; choose another with --out") from error


def scratch_in(out: Path) -> tempfile.TemporaryDirectory[str]:
    """A folder for a while, where executors can write, too."""
    with writing_into(out):
        return tempfile.TemporaryDirectory(prefix=".scratch-", dir=out.absolute())
