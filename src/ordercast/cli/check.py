"""`ordercast check`: judges recorded traces."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from ordercast.checker import Checkers, Outcome, Verdict, combined
from ordercast.cli.documents import verdict_document, verdict_documents
from ordercast.cli.drawing import closing_line, draw_witnesses, new_table, outcome_text, verdict_table
from ordercast.cli.terminal import Meter, output, write_json
from ordercast.trace.parquet import RunInfo, read_run, runs_in
from ordercast.trace.records import DeliveredBatch

EXAMPLE = "Example: ordercast sim --hostile --seed 7 --trace runs; ordercast check runs"


@dataclass(frozen=True, slots=True)
class Judged:
    """One run and what the checkers say of it."""

    path: Path
    info: RunInfo
    events: int
    deliveries: int
    verdicts: list[Verdict]

    @property
    def verdict(self) -> Verdict:
        return combined(self.verdicts)

    @property
    def is_valid(self) -> bool:
        return self.verdict.outcome is Outcome.VALID


def check(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of run-*.parquet files, or one such file.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> int:
    """Judge the recorded traces of all runs in a folder.

    Shows a verdict per promise, and witnesses for what does not hold.
    Exit status 1 unless every run is VALID.
    """
    paths = runs_in(folder)
    judged: list[Judged] = []
    with Meter("checking", len(paths)) as meter:
        for number, path in enumerate(paths):
            meter.show(number, path.name)
            judged.append(judge(path))
    if as_json:
        write_json(_document(judged))
    else:
        _draw(output(), judged)
    return 0 if all(run.is_valid for run in judged) else 1


def judge(path: Path) -> Judged:
    run = read_run(path)
    checkers = Checkers()
    for event in run.events:
        checkers.observe(event)
    deliveries = sum(len(event.messages) for event in run.events if isinstance(event, DeliveredBatch))
    return Judged(path, run.info, len(run.events), deliveries, checkers.verdicts())


def _overall(judged: list[Judged]) -> Verdict:
    """The worst of all runs; of runs that are all valid, how many."""
    worst = combined([run.verdict for run in judged])
    return (
        replace(worst, sentence=f"{len(judged)} of {len(judged)} runs VALID")
        if worst.outcome is Outcome.VALID
        else worst
    )


def _document(judged: list[Judged]) -> dict[str, Any]:
    return {
        "valid": all(run.is_valid for run in judged),
        "verdict": verdict_document(_overall(judged)),
        "runs": [
            {
                "path": str(run.path),
                "run": run.info.run,
                "seed": run.info.seed,
                "valid": run.is_valid,
                "events": run.events,
                "deliveries": run.deliveries,
                "verdict": verdict_document(run.verdict),
                "verdicts": verdict_documents(run.verdicts),
                "digest": run.info.digest,
                "replay": run.info.command,
            }
            for run in judged
        ],
    }


def _draw(console: Console, judged: list[Judged]) -> None:
    if len(judged) == 1:
        console.print(verdict_table(judged[0].verdicts))
    else:
        console.print(_run_table(judged))
    for run in judged:
        if not run.is_valid:
            console.print(Text(f"run {run.info.run} ({run.path})", style="bold"), soft_wrap=True)
            draw_witnesses(console, run.verdicts)
            if run.info.command:
                console.print(Text(f"replay   {run.info.command}\n"), soft_wrap=True)
    console.print(_closing(judged), soft_wrap=True)


def _run_table(judged: list[Judged]) -> Any:
    table = new_table("run", "events", "deliveries", "verdict", "why", right=("run", "events", "deliveries"))
    for run in judged:
        counts = (str(run.info.run), f"{run.events:,}", f"{run.deliveries:,}")
        table.add_row(*counts, outcome_text(run.verdict.outcome), Text(_why(run)))
    return table


def _why(run: Judged) -> str:
    if run.is_valid:
        return run.verdict.sentence
    worst = run.verdict.outcome
    return ", ".join(v.promise.value for v in run.verdicts if v.outcome is worst and v.promise is not None)


def _closing(judged: list[Judged]) -> Text:
    outcome = combined([run.verdict for run in judged]).outcome
    valid = sum(run.is_valid for run in judged)
    events, deliveries = sum(run.events for run in judged), sum(run.deliveries for run in judged)
    runs = "run is" if len(judged) == 1 else "runs are"
    sentence = f"{valid} of {len(judged)} {runs} valid"
    return closing_line(outcome, sentence, [f"{events:,} events, {deliveries:,} deliveries"])
