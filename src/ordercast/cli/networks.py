"""`ordercast networks`: what the alarms of redundant networks say together."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from ordercast.cli.tables import new_table
from ordercast.cli.terminal import output, write_json
from ordercast.model.configuration import ConfigurationKind
from ordercast.model.ids import SECOND, Instant, ProcessId, node_of
from ordercast.model.notes import Evidence, NetworkState, NetworkTurned
from ordercast.networks.diagnosis import Episode, NetworkReport, episodes
from ordercast.trace.folder import read_live, traces_in
from ordercast.trace.parquet import read_run
from ordercast.trace.records import Event, Installed, Noted


def explain(folder: Path, as_json: bool) -> int:
    found = [(path, _episodes(path)) for path in traces_in(folder)]
    if as_json:
        write_json({"runs": [{"path": str(path), "faults": list(map(_document, of_run))} for path, of_run in found]})
        return 0
    console = output()
    for path, of_run in found:
        _draw(console, path, of_run)
    return 0


def _episodes(path: Path) -> list[Episode]:
    events: Iterable[Event] = read_live(path).events() if path.is_dir() else read_run(path).events
    members: dict[ProcessId, tuple[ProcessId, ...]] = {}
    reports: list[tuple[NetworkReport, tuple[ProcessId, ...]]] = []
    for event in events:
        if isinstance(event, Installed) and event.configuration.kind is ConfigurationKind.REGULAR:
            members[event.process] = event.configuration.members
        elif isinstance(event, Noted) and isinstance(event.note, NetworkTurned):
            reports.append((NetworkReport(event.at, event.process, event.note), members.get(event.process, ())))
    reports.sort(key=lambda told: told[0].at)
    of = {id(report): known for report, known in reports}
    return episodes([report for report, _ in reports], lambda report: of[id(report)])


def _name(process: ProcessId) -> str:
    return f"n{node_of(process)}"


def _is_echo(report: NetworkReport) -> bool:
    return report.turn.evidence is Evidence.REFUSAL


def _document(episode: Episode) -> dict[str, Any]:
    return {
        "network": episode.network,
        "began_at": episode.began_at,
        "repaired_at": episode.repaired_at,
        "conclusion": episode.conclusion(_name),
        "reports": [
            {
                "at": report.at,
                "node": node_of(report.process),
                "state": report.turn.state.value,
                "evidence": report.turn.evidence.value,
                "about": None if report.turn.process is None else node_of(report.turn.process),
                "is_echo": _is_echo(report),
                "text": report.turn.text,
            }
            for report in episode.reports
        ],
    }


def _draw(console: Console, path: Path, found: list[Episode]) -> None:
    if not found:
        console.print(Text(f"{path}: no network was found faulty", style="green"), soft_wrap=True)
    for episode in found:
        end = "not repaired" if episode.repaired_at is None else f"used again {_after(episode, episode.repaired_at)}"
        console.print(Text(f"\nnetwork {episode.network}, {end}", style="bold"), soft_wrap=True)
        table = new_table("after", "node", "", "what it says")
        for report in episode.reports:
            kind = "echo" if _is_echo(report) else "first" if report is episode.reports[0] else ""
            style = "red" if report.turn.state is NetworkState.FAULTY else ""
            table.add_row(_after(episode, report.at), _name(report.process), kind, Text(report.turn.text, style=style))
        console.print(table)
        console.print(Text(episode.conclusion(_name), style="bold yellow"), soft_wrap=True)


def _after(episode: Episode, at: Instant) -> str:
    return f"{(at - episode.began_at) / SECOND:.3f} s"
