"""`ordercast report`: traces to numbers and one page of pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.text import Text

from ordercast.cli.tables import new_table
from ordercast.cli.terminal import Meter, output, write_json
from ordercast.pipeline.page.html import Fact
from ordercast.pipeline.report import STEPS, Report
from ordercast.pipeline.report import report as made
from ordercast.pipeline.report.page import facts_of


def report(path: Path, out: Path, master: str | None, as_json: bool) -> int:
    with Meter("report", STEPS, shown_after_s=0) as meter:
        result = made(path, out, master, meter.show)
    facts = facts_of(result.tables)
    if as_json:
        write_json(_document(result, facts))
        return 0
    console = output()
    table = new_table("what", "value", "", right=("value",))
    for fact in facts:
        table.add_row(fact.name, fact.value, fact.note)
    console.print(table)
    console.print(Text(f"page     {result.page}"), soft_wrap=True)
    console.print(Text(f"tables   {result.folder}"), soft_wrap=True)
    return 0


def _document(result: Report, facts: list[Fact]) -> dict[str, Any]:
    tables = result.tables
    return {
        "page": str(result.page),
        "tables": str(result.folder),
        "runs": tables.runs.to_pylist(),
        "facts": {fact.name: fact.value for fact in facts},
        "latency": tables.latency.to_pylist(),
    }
