"""What came of the demo: for people, and as a document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from ordercast.checker import Outcome, combined
from ordercast.checker.verdict import sum_of
from ordercast.cli.documents import verdict_document, verdict_documents
from ordercast.cli.drawing import closing_line, draw_witnesses, outcome_text
from ordercast.cli.tables import new_table
from ordercast.demo.judging import Panel
from ordercast.demo.log import Entry
from ordercast.demo.on_spark import OnSpark
from ordercast.demo.rates import Reached


@dataclass(frozen=True, slots=True)
class Result:
    entries: Sequence[Entry]
    seconds: float
    panels: Sequence[Panel] = ()
    reached: Reached | None = None
    digests: dict[str, str] | None = None  # by replica
    error: str | None = None  # why it ended before its time
    traces: Path | None = None  # where they were kept
    on_spark: OnSpark | str | None = None  # a sentence says why there is no Spark

    @property
    def is_valid(self) -> bool:
        agrees = not isinstance(self.on_spark, OnSpark) or self.on_spark.outcome is Outcome.VALID
        return agrees and self.error is None and bool(self.panels) and all(panel.is_valid for panel in self.panels)

    def document(self) -> dict[str, Any]:
        return {
            "valid": self.is_valid,
            "error": self.error,
            "seconds": round(self.seconds, 3),
            "rates": None if self.reached is None else asdict(self.reached),
            "digests": self.digests,
            "panels": [
                {
                    "name": panel.name,
                    "evidence": panel.evidence,
                    "verdict": verdict_document(panel.verdict),
                    "verdicts": verdict_documents(panel.verdicts),
                }
                for panel in self.panels
            ],
            "events": [
                {"at": round(entry.at, 3), "kind": entry.kind.value, "who": list(entry.who), "text": entry.text}
                for entry in self.entries
            ],
            "traces": None if self.traces is None else str(self.traces),
            "spark": _spark_document(self.on_spark),
        }


def _spark_document(on_spark: OnSpark | str | None) -> dict[str, Any] | None:
    if on_spark is None:
        return None
    if isinstance(on_spark, str):
        return {"missing": on_spark, "verdicts": [], "report": None}
    return {"missing": None, "verdicts": verdict_documents(on_spark.verdicts), "report": str(on_spark.page)}


def draw_result(console: Console, result: Result) -> None:
    table = new_table("judges of", "promises", "verdict", "evidence", right=("promises",))
    for panel in result.panels:
        count = f"{len(panel.verdicts)}"
        table.add_row(panel.name, count, outcome_text(panel.verdict.outcome), Text(panel.evidence))
    console.print(table)
    for panel in result.panels:
        draw_witnesses(console, panel.verdicts)
    verdicts = [verdict for panel in result.panels for verdict in panel.verdicts]
    overall = combined(verdicts)
    console.print(closing_line(overall.outcome, sum_of(verdicts), _facts(result)), soft_wrap=True)


def _facts(result: Result) -> list[str]:
    facts = []
    if (reached := result.reached) is not None:
        facts = [f"{reached.messages_per_second:,.0f} messages/s", f"{reached.commands_per_second:,.0f} commands/s"]
        if reached.command_ms is not None:
            facts.append(f"a command in {reached.command_ms:.2f} ms")
    return [*facts, f"{result.seconds:.0f} s"]


def draw_on_spark(console: Console, on_spark: OnSpark | str | None) -> None:
    if isinstance(on_spark, str):
        console.print(Text(f"No verdict of Spark and no report: {on_spark}."), soft_wrap=True)
    elif on_spark is not None:
        draw_witnesses(console, on_spark.verdicts)
        sentence = f"{sum_of(on_spark.verdicts)}, judged by Spark"
        facts = [f"{on_spark.events:,} events", f"{on_spark.seconds:.0f} s"]
        console.print(closing_line(on_spark.outcome, sentence, facts), soft_wrap=True)
        console.print(Text(f"Its report, a page for a browser: {on_spark.page}"), soft_wrap=True)


def draw_ways_on(console: Console, traces: Path) -> None:
    """What to do with traces that were kept."""
    console.print(Text(f"\nThe daemons' traces are in {traces}, and can be judged again, or made one Parquet file:"))
    for command in (f"ordercast check {traces}", f"ordercast trace compact {traces} --out {traces.parent / 'runs'}"):
        console.print(Text(f"  {command}", "cyan"), soft_wrap=True)
