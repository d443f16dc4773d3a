"""The numbers of a report are those that one finds by hand; live traces give the same; the page is never empty."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TypeGuard
from xml.etree import ElementTree

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from ordercast.cli.main import run
from ordercast.model.configuration import ConfigurationKind
from ordercast.model.ids import MILLISECOND, ProcessId
from ordercast.model.notes import Moved, Visited
from ordercast.model.service import Service
from ordercast.order.ring.promised import PROMISED as RING_PROMISES
from ordercast.pipeline.page.html import html_of
from ordercast.pipeline.report.latency_section import latency_rows
from ordercast.pipeline.report.messages import EACH, LAST, OWN
from ordercast.pipeline.report.page import page_of
from ordercast.pipeline.report.promises import promises_table
from ordercast.pipeline.report.source import Sources, events_of, sources_in
from ordercast.pipeline.report.tables import NAMES, Tables, tables_of
from ordercast.pipeline.report.token import ROTATION
from ordercast.sim.fault_text import fault_from
from ordercast.sim.options import SimOptions
from ordercast.sim.run import simulate
from ordercast.trace.parquet import RunInfo, write_run
from ordercast.trace.records import DeliveredBatch, Event, Installed, Noted, Started, Submitted
from tests.unit.trace.live_traces import write_history

pytestmark = pytest.mark.spark

OPTIONS = SimOptions(
    nodes=3,
    messages=150,
    services=(Service.AGREED, Service.SAFE),
    loss=0.05,
    fault_time_ns=300 * MILLISECOND,
    faults=(fault_from("0.1s crash n1"), fault_from("0.2s restart n1")),
)


@pytest.fixture(scope="module")
def history() -> list[Event]:
    return simulate(OPTIONS, 3, keep_events=True).events


@pytest.fixture(scope="module")
def folder(history: list[Event], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of the traces."""
    folder = tmp_path_factory.mktemp("runs")
    write_run(folder, RunInfo(3, 3, {}, "ordercast sim --seed 3"), history)
    return folder


@pytest.fixture(scope="module")
def simulated(spark: SparkSession, folder: Path) -> Tables:
    """As the command writes them."""
    assert run(["report", str(folder), "--out", str(folder / "out"), "--json"]) == 0
    return Tables.read(folder / "out" / "tables")


def _waits(history: list[Event]) -> dict[int, list[int]]:
    """Of every delivery, by service."""
    submitted = {m.message: event.at for event in history if isinstance(event, Submitted) for m in event.messages}
    waits: dict[int, list[int]] = {}
    for event in history:
        for message in event.messages if isinstance(event, DeliveredBatch) else ():
            assert message.message is not None
            waits.setdefault(int(message.service), []).append(event.at - submitted[message.message])
    return waits


def test_latencies_are_counted_exactly_and_percentiles_are_those_of_the_deliveries(
    simulated: Tables, history: list[Event]
) -> None:
    waits = _waits(history)
    for row in latency_rows(simulated, EACH):
        mine = sorted(wait for service, found in waits.items() if row["service"] in (None, service) for wait in found)
        if row["size_max"] is None:
            assert row["count"] == len(mine)
            assert (row["min_ns"], row["max_ns"]) == (mine[0], mine[-1])
            assert row["mean_ns"] == pytest.approx(sum(mine) / len(mine))
            below = sum(wait <= row["percentiles"][0] for wait in mine)
            assert below == pytest.approx(len(mine) / 2, abs=2)
    assert sum(simulated.latency_histogram["count"].to_pylist()) == sum(map(len, waits.values()))


def test_the_last_and_the_own_delivery_are_counted_apart(simulated: Tables, history: list[Event]) -> None:
    delivered: dict[object, list[ProcessId]] = {}
    for event in history:
        if isinstance(event, DeliveredBatch):
            for message in event.messages:
                delivered.setdefault(message.message, []).append(event.process)
    last = next(row for row in latency_rows(simulated, LAST) if row["service"] is None)
    own = next(row for row in latency_rows(simulated, OWN) if row["service"] is None)
    assert last["count"] == len(delivered)
    assert own["count"] == sum(message[0] in who for message, who in delivered.items())  # type: ignore[index]


def test_throughput_and_totals_are_exact(simulated: Tables, history: list[Event]) -> None:
    counts: Counter[str] = Counter()
    for event in history:
        counts["submitted"] += len(event.messages) if isinstance(event, Submitted) else 0
        counts["delivered"] += len(event.messages) if isinstance(event, DeliveredBatch) else 0
    run_row = simulated.runs.to_pylist()[0]
    assert {name: run_row[name] for name in counts} == counts
    for name, count in counts.items():
        assert sum(simulated.throughput[name].to_pylist()) == count
        assert sum(simulated.lives[name].to_pylist()) == count


def test_the_token_is_followed(simulated: Tables, history: list[Event]) -> None:
    visits = [(e.process, e.note, e.at) for e in history if isinstance(e, Noted) and isinstance(e.note, Visited)]
    last: dict[object, int] = {}
    gaps = []
    for process, note, at in visits:
        if (process, note.ring) in last:
            gaps.append(at - last[process, note.ring])
        last[process, note.ring] = at
    total = next(row for row in simulated.token.to_pylist() if row["bucket"] is None)
    assert total["visits"] == len(visits)
    assert total["retransmitted"] == sum(note.retransmitted for _, note, _ in visits) > 0
    assert total[f"{ROTATION}_count"] == len(gaps)
    assert total[f"{ROTATION}_max"] == max(gaps)
    assert total[f"{ROTATION}_mean"] == pytest.approx(sum(gaps) / len(gaps))
    sent = {row["sent"]: row["visits"] for row in simulated.visit_sizes.to_pylist()}
    assert sent == Counter(note.sent for _, note, _ in visits if note.sent)


def _leaves(event: Event) -> TypeGuard[Noted]:
    return isinstance(event, Noted) and isinstance(event.note, Moved) and event.note.origin == "Operational"


def test_views_have_their_reasons_and_durations(simulated: Tables, history: list[Event]) -> None:
    began: dict[ProcessId, int] = {}
    views: dict[object, list[tuple[int, int]]] = {}
    for event in history:
        if isinstance(event, Started) or _leaves(event):
            began[event.process] = event.at
        elif isinstance(event, Installed) and event.configuration.kind is ConfigurationKind.REGULAR:
            key = (
                event.configuration.id.seq,
                event.configuration.id.representative,
                int(event.configuration.reason),
                event.configuration.members,
            )
            views.setdefault(key, []).append((began[event.process], event.at))
    expected = {
        (*key[:3], len(key[3]), max(at for _, at in times) - min(start for start, _ in times))  # type: ignore[index]
        for key, times in views.items()
    }
    names = ("configuration_seq", "configuration_rep", "reason", "size", "duration_ns")
    assert {tuple(row[name] for name in names) for row in simulated.views.to_pylist()} == expected
    assert sum(simulated.view_reasons["count"].to_pylist()) == len(expected)


@pytest.mark.long
def test_live_traces_give_the_same_numbers(
    spark: SparkSession,
    simulated: Tables,
    history: list[Event],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write_history(tmp_path, history, monkeypatch)
    live = tables_of(events_of(spark, sources_in(tmp_path), tmp_path / "scratch"), promises_table(()))
    mine, theirs = simulated.runs.to_pylist()[0], live.runs.to_pylist()[0]
    assert theirs["run"] == 0
    assert {name: theirs[name] for name in ("processes", "submitted")} == {
        name: mine[name] for name in ("processes", "submitted")
    }
    assert theirs["delivered"] <= mine["delivered"]  # who was killed takes its last moments with it
    names = ("configuration_seq", "reason", "size", "installed_by", "duration_ns")
    assert [[row[name] for name in names] for row in live.views.to_pylist()] == [
        [row[name] for name in names] for row in simulated.views.to_pylist()
    ]
    text = html_of(page_of(live, sources_in(tmp_path)))
    _well_drawn(text)
    assert "live" in text and "Missing:" in text


# The page, made of tables that Spark gave before


def _without(tables: Tables, *names: str) -> Tables:
    """As if nothing had been recorded for these."""
    runs = tables.runs
    for name in ("submitted", "delivered", "visits"):
        nothing = pa.array([0] * len(runs), runs.schema.field(name).type)
        runs = runs.set_column(runs.schema.get_field_index(name), name, nothing)
    return replace(tables, runs=runs, **{name: getattr(tables, name).slice(0, 0) for name in names})


MESSAGES = ("latency", "latency_histogram", "throughput", "deliverers", "token", "visit_sizes")


def test_traces_of_level_control_have_sentences_where_there_is_nothing_to_draw(simulated: Tables, folder: Path) -> None:
    text = html_of(page_of(_without(simulated, *MESSAGES), sources_in(folder)))
    _well_drawn(text)
    assert "trace level full" in text
    assert "Who was in which view" in text and "How long a view change takes" in text
    assert "Share of deliveries" not in text


def test_a_run_in_which_nothing_happened_has_a_page_without_plots(simulated: Tables, folder: Path) -> None:
    nothing = _without(simulated, *MESSAGES, "views", "view_reasons", "timeline")
    text = html_of(page_of(nothing, sources_in(folder)))
    assert "<svg" not in text
    assert "No view is in the traces" in text


def test_several_runs_lie_over_each_other(simulated: Tables, history: list[Event], tmp_path: Path) -> None:
    def doubled(table: pa.Table) -> pa.Table:
        again = table.set_column(0, "run", pa.array([4] * len(table), pa.int64()))
        return pa.concat_tables([table, again])

    names = ("runs", "lives", "views")
    two = replace(simulated, **{name: doubled(getattr(simulated, name)) for name in names})
    for number in (3, 4):
        write_run(tmp_path, RunInfo(number, number, {}, f"ordercast sim --seed {number}"), history[:20])
    text = html_of(page_of(two, sources_in(tmp_path)))
    _well_drawn(text)
    assert "2 simulated runs" in text and "ordercast sim --seed 4" in text
    assert "Of run 3, which has the most view changes of 2 runs" in text


def _well_drawn(text: str) -> None:
    for svg in re.findall(r"<svg.*?</svg>", text, flags=re.DOTALL):
        root = ElementTree.fromstring(svg)
        kinds = {name for one in root.iter() for name in one.get("class", "").split()}
        assert kinds & {"line", "dot", "bar", "band", "stretch"}, "an empty plot"
        assert "label" in kinds


def test_the_command_writes_a_page_and_tables_that_can_be_read_again(simulated: Tables, folder: Path) -> None:
    text = (folder / "out" / "report.html").read_text()
    _well_drawn(text)
    assert "One simulated run" in text and "ordercast sim --seed 3" in text
    assert set(simulated.promises["promise"].to_pylist()) == {each.value for each in RING_PROMISES}
    assert "groups" not in text and "virtual synchrony" in text
    assert sorted(path.stem for path in (folder / "out" / "tables").iterdir()) == sorted(NAMES)
    assert html_of(page_of(simulated, sources_in(folder))) == text


def test_the_columns_are_those_of_the_reference(simulated: Tables) -> None:
    page = (Path(__file__).parents[4] / "docs" / "reference" / "report.md").read_text()
    for name in NAMES:
        row = next(line for line in page.splitlines() if line.startswith(f"| `{name}` |"))
        said = re.findall(r"`(\w+)`", row.split("|")[3])
        stems, suffixes = [word for word in said if not word.startswith("_")], [word for word in said if word[0] == "_"]
        ends = [stem + suffix for stem in ("rotation_ns", "rotation_packets", "backlog_packets") for suffix in suffixes]
        expected = {stem for stem in stems if not suffixes or stem not in _SPREAD} | set(ends)
        assert set(getattr(simulated, name).column_names) == expected, name


_SPREAD = ("rotation_ns", "rotation_packets", "backlog_packets")


@pytest.mark.parametrize("name", ["none", "empty"])
def test_what_is_no_trace_is_said_before_spark_starts(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    assert run(["report", str(tmp_path / name), "--out", str(tmp_path / "out")]) == 2
    assert "trace" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_the_folder_of_a_campaign_is_told_from_traces(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "campaign.json").write_text("{}")
    assert run(["report", str(tmp_path)]) == 2
    assert "results of a campaign" in " ".join(capsys.readouterr().err.split())


def test_live_traces_beside_what_was_made_of_them_are_not_counted_twice(
    history: list[Event], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_history(tmp_path, history, monkeypatch)
    assert run(["trace", "compact", str(tmp_path)]) == 0
    sources: Sources = sources_in(tmp_path)
    assert sources.live is None and len(sources.runs) == 1
    assert "left out" in sources.notes[0]
