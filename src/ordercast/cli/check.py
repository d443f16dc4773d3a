"""`ordercast check`: judges recorded traces."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from ordercast.checker import Outcome, Verdict, combined
from ordercast.checker.evidence import EvidenceCheckers
from ordercast.cli.documents import verdict_document, verdict_documents
from ordercast.cli.drawing import closing_line, draw_witnesses, outcome_text, verdict_table
from ordercast.cli.tables import new_table
from ordercast.cli.terminal import Meter, output, write_json
from ordercast.trace.folder import LiveRun, read_live, traces_in
from ordercast.trace.parquet import RunInfo, read_run

LISTED_MAX = 100  # runs in a table


@dataclass(frozen=True, slots=True)
class Judged:
    """One run and what the checkers say of it."""

    path: Path
    info: RunInfo
    events: int
    deliveries: int
    verdicts: list[Verdict]
    client_events: int = 0
    replica_events: int = 0

    @property
    def verdict(self) -> Verdict:
        return combined(self.verdicts)

    @property
    def is_valid(self) -> bool:
        return self.verdict.outcome is Outcome.VALID


def check(folder: Path, as_json: bool) -> int:
    paths = traces_in(folder)
    judged: list[Judged] = []
    with Meter("checking", len(paths)) as meter:
        for number, path in enumerate(paths):
            meter.show(number, path.name)
            judged.append(judge(path))
    if as_json:
        write_json(judged_document(judged))
    else:
        draw_judged(output(), judged)
    return 0 if all(run.is_valid for run in judged) else 1


def judge(path: Path) -> Judged:
    """Judge the evidence of one run, or all that is in a folder of live traces."""
    run = read_live(path) if path.is_dir() else read_run(path)
    checkers = EvidenceCheckers()
    notes: list[int] = []
    for event in run.evidence(notes.append) if isinstance(run, LiveRun) else run.events:
        checkers.observe(event)
    checkers.observe_clients(run.clients)
    checkers.observe_replicas(run.replicas)
    counts = checkers.events + sum(notes), checkers.deliveries
    others = checkers.client_events, checkers.replica_events
    return Judged(path, run.info, *counts, checkers.verdicts(), *others)


def _overall(judged: list[Judged]) -> Verdict:
    """The worst of all runs; of runs that are all valid, how many."""
    worst = combined([run.verdict for run in judged])
    return (
        replace(worst, sentence=f"{len(judged)} of {len(judged)} runs VALID")
        if worst.outcome is Outcome.VALID
        else worst
    )


def judged_document(judged: list[Judged]) -> dict[str, Any]:
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
                "client_events": run.client_events,
                "replica_events": run.replica_events,
                "verdict": verdict_document(run.verdict),
                "verdicts": verdict_documents(run.verdicts),
                "digest": run.info.digest,
                "replay": run.info.command,
            }
            for run in judged
        ],
    }


def draw_judged(console: Console, judged: list[Judged]) -> None:
    if len(judged) == 1:
        console.print(verdict_table(judged[0].verdicts))
    else:
        _draw_runs(console, judged)
    for run in judged:
        if not run.is_valid:
            console.print(Text(f"{_name(run)} ({run.path})", style="bold"), soft_wrap=True)
            draw_witnesses(console, run.verdicts)
            if run.info.command:
                console.print(Text(f"replay   {run.info.command}\n"), soft_wrap=True)
    console.print(_closing(judged), soft_wrap=True)


def _draw_runs(console: Console, judged: list[Judged]) -> None:
    """Draw a line for each run; of very many the valid ones are counted, not listed."""
    shown = judged if len(judged) <= LISTED_MAX else [run for run in judged if not run.is_valid]
    if shown:
        console.print(_run_table(shown[:LISTED_MAX]))
    if len(judged) > LISTED_MAX:
        valid = sum(run.is_valid for run in judged)
        more = f", and {len(shown) - LISTED_MAX:,} more that are not" if len(shown) > LISTED_MAX else ""
        console.print(f"{valid:,} valid runs are not listed{more}", soft_wrap=True)


def _run_table(judged: list[Judged]) -> Any:
    """Return a table of runs; where two have the same name, all are called by their paths."""
    table = new_table("run", "events", "deliveries", "verdict", "why", right=("run", "events", "deliveries"))
    names = [_name(run).removeprefix("run ") for run in judged]
    if len(set(names)) < len(names):
        names = [str(run.path) for run in judged]
    for name, run in zip(names, judged, strict=True):
        counts = (name, f"{run.events:,}", f"{run.deliveries:,}")
        table.add_row(*counts, outcome_text(run.verdict.outcome), Text(_why(run)))
    return table


def _name(run: Judged) -> str:
    return "live" if run.path.is_dir() else f"run {run.info.run}"


def _why(run: Judged) -> str:
    if run.is_valid:
        return run.verdict.sentence
    worst = run.verdict.outcome
    return ", ".join(v.promise.value for v in run.verdicts if v.outcome is worst and v.promise is not None)


def _is_owed(verdict: Verdict) -> bool:
    return verdict.outcome is not Outcome.NOT_PROMISED


def _closing(judged: list[Judged]) -> Text:
    outcome = combined([run.verdict for run in judged]).outcome
    valid = sum(run.is_valid for run in judged)
    events, deliveries = sum(run.events for run in judged), sum(run.deliveries for run in judged)
    runs = "run is" if len(judged) == 1 else "runs are"
    sentence = f"{valid} of {len(judged)} {runs} valid"
    facts = [f"{events:,} events, {deliveries:,} deliveries"]
    for whose, count in (
        ("clients", sum(run.client_events for run in judged)),
        ("replicas", sum(run.replica_events for run in judged)),
    ):
        facts += [f"{count:,} events of {whose}"] if count else []
    promised = {verdict.promise for run in judged for verdict in run.verdicts if _is_owed(verdict)}
    idle = promised - {
        verdict.promise for run in judged for verdict in run.verdicts if verdict.outcome is not Outcome.NOT_EXERCISED
    }
    facts += [f"{len(idle)} of {len(promised)} promises not exercised"] if idle else []
    return closing_line(outcome, sentence, facts)
