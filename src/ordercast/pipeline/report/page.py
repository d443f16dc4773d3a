"""The page of a report: the numbers that matter most, then what happened, latency, throughput, and what its engine has
of its own. Pure."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from datetime import UTC, datetime

from ordercast import __version__
from ordercast.model.ids import SECOND
from ordercast.pipeline.page.html import Block, Fact, Page, PageTable, Section, Text
from ordercast.pipeline.page.scales import number_text, time_text
from ordercast.pipeline.report.course import throughput_section
from ordercast.pipeline.report.engines import parts_of
from ordercast.pipeline.report.latency_section import latency_rows, latency_section, service_name
from ordercast.pipeline.report.messages import EACH
from ordercast.pipeline.report.promises import promise_section
from ordercast.pipeline.report.source import Sources
from ordercast.pipeline.report.tables import Tables
from ordercast.pipeline.report.view_section import change_section, membership_section

RUNS_SHOWN = 50
GAPS_SHOWN = 20


def page_of(tables: Tables, sources: Sources) -> Page:
    sections = [
        membership_section(tables),
        latency_section(tables, is_live=sources.is_live),
        throughput_section(tables),
        *(section for part in parts_of(tables) for section in part.sections(tables, sources)),
        change_section(tables),
        promise_section(tables),
        _run_section(tables, sources),
    ]
    return Page(f"Report on {sources.path}", _subtitle(tables, sources), facts_of(tables), sections, _foot())


def _foot() -> str:
    made = f"Made by ordercast report, version {__version__}, on {socket.gethostname()}."
    return f"{made} The same numbers are in tables/*.parquet beside this page."


def _subtitle(tables: Tables, sources: Sources) -> str:
    count = len(tables.runs)
    kind = "live" if sources.is_live else "simulated"
    runs = f"One {kind} run" if count == 1 else f"{count:,} {kind} runs"
    processes = sum(tables.runs["processes"].to_pylist())
    longest = max(tables.runs["duration_ns"].to_pylist())
    lasted = f"lasting {time_text(longest)}" if count == 1 else f"the longest lasting {time_text(longest)}"
    began = f", begun {_moment(min(tables.runs['started_ns'].to_pylist()))}" if sources.is_live else ""
    return (
        f"{runs} of {processes:,} processes{began}, {lasted}; {sum(tables.runs['rows'].to_pylist()):,} rows of trace."
    )


def _moment(wall_ns: int) -> str:
    return datetime.fromtimestamp(wall_ns // SECOND, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def facts_of(tables: Tables) -> list[Fact]:
    submitted, delivered = (sum(tables.runs[name].to_pylist()) for name in ("submitted", "delivered"))
    facts = [Fact(number_text(submitted), "messages submitted"), Fact(number_text(delivered), "deliveries")]
    for row in latency_rows(tables, EACH):
        if (
            row["size_max"] is None
            and row["service"] is not None
            and service_name(row["service"]) in ("agreed", "safe")
        ):
            half, _, high, _ = row["percentiles"]
            name = f"{service_name(row['service'])}, median latency"
            facts.append(Fact(time_text(half), name, f"99 %: {time_text(high)}"))
    facts += [fact for part in parts_of(tables) for fact in part.facts(tables)]
    changes = sum(size > 1 for size in tables.views["size"].to_pylist())
    facts.append(Fact(number_text(changes), "views of several"))
    return facts


def _run_section(tables: Tables, sources: Sources) -> Section:
    infos = sources.infos()
    columns = ("run", "processes", "lasted", "rows", "submitted", "delivered", "token visits", "made by")
    rows = []
    for row in tables.runs.to_pylist()[:RUNS_SHOWN]:
        info = infos.get(row["run"])
        numbers = [number_text(row[name]) for name in ("rows", "submitted", "delivered", "visits")]
        command = info.command if info is not None and info.command else "live nodes"
        rows.append([str(row["run"]), str(row["processes"]), time_text(row["duration_ns"]), *numbers, command])
    count = len(tables.runs)
    caption = f"The first {RUNS_SHOWN} of {count:,} runs; tables/runs.parquet has all." if count > RUNS_SHOWN else ""
    blocks: list[Block] = [*_gaps(sources.notes), PageTable(columns, rows, wide=("made by",), caption=caption)]
    return Section("Runs", blocks)


def _gaps(notes: Sequence[str]) -> list[Text]:
    shown = [Text(f"Missing: {note}.") for note in notes[:GAPS_SHOWN]]
    more = len(notes) - len(shown)
    return [*shown, *([Text(f"And {more:,} more are missing.")] if more else [])]
