"""What a report is made of and where it is written, without Spark."""

from __future__ import annotations

import errno
import tempfile
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ordercast.cli.main import run
from ordercast.model.errors import UsageError
from ordercast.model.ids import MILLISECOND
from ordercast.pipeline import report as module
from ordercast.pipeline.report import Tables, draw, report, sources_in
from ordercast.sim.options import SimOptions
from ordercast.sim.run import simulate
from ordercast.trace.parquet import RunInfo, write_run
from tests.unit.trace.live_traces import write_history

Stub = Callable[..., Any]


def no_space(*how: object, **more: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    """A folder with the live traces of a run, which nothing was made of yet."""
    folder = tmp_path / "traces"
    folder.mkdir()
    history = simulate(SimOptions(nodes=2, messages=3, fault_time_ns=20 * MILLISECOND), 1, keep_events=True).events
    with pytest.MonkeyPatch.context() as patch:
        write_history(folder, history, patch)
    return folder


@pytest.fixture
def verified(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a report has verified. There is no Spark, and its tables are written nowhere."""
    found: list[str] = []

    def verify(session: object, traces: Sequence[str]) -> list[object]:
        found.extend(traces)
        return []

    tables = SimpleNamespace(write=lambda folder: None)
    stubs: dict[str, Stub] = {
        "open_session": lambda *how: nullcontext(),
        "events_of": lambda *how: None,
        "verify": verify,
        "promises_table": list,
        "tables_of": lambda *how: tables,
        "page_of": lambda *how: None,
        "html_of": lambda page: "page",
    }
    for name, stub in stubs.items():
        monkeypatch.setattr(module, name, stub)
    return found


def test_what_is_drawn_is_verified_and_nothing_twice(traces: Path, verified: list[str], tmp_path: Path) -> None:
    report(traces, tmp_path / "out")
    assert verified == [str(traces)]
    verified.clear()
    assert run(["trace", "compact", str(traces)]) == 0
    (file,) = [file for file, _ in sources_in(traces).runs]
    report(traces, tmp_path / "out")
    assert verified == [str(file)], "the live traces that it was made of are left out"


def test_a_run_beside_live_traces_of_another_is_verified_too(traces: Path, verified: list[str], tmp_path: Path) -> None:
    history = simulate(SimOptions(nodes=2, messages=3, fault_time_ns=20 * MILLISECOND), 7, keep_events=True).events
    file = write_run(traces, RunInfo(7, 7, {}, "ordercast sim --seed 7"), history)
    report(traces, tmp_path / "out")
    assert verified == [str(file), str(traces)]


def test_a_folder_that_takes_nothing_is_said_before_spark_starts(
    traces: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tempfile, "TemporaryDirectory", no_space)
    monkeypatch.setattr(module, "open_session", lambda *how: pytest.fail("Spark was started"))
    assert run(["report", str(traces), "--out", str(tmp_path / "out")]) == 2
    assert "out cannot be written into: No space left on device; make room" in " ".join(capsys.readouterr().err.split())


@pytest.mark.usefixtures("verified")
def test_tables_that_cannot_be_written_are_said(
    traces: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(module, "tables_of", lambda *how: SimpleNamespace(write=no_space))
    assert run(["report", str(traces), "--out", str(tmp_path / "out")]) == 2
    assert "out cannot be written into: No space left on device" in " ".join(capsys.readouterr().err.split())


@pytest.mark.usefixtures("verified")
def test_a_page_that_cannot_be_written_is_said(traces: Path, tmp_path: Path) -> None:
    (tmp_path / ".report.html.unfinished").mkdir()
    with pytest.raises(UsageError, match="cannot be written into: Is a directory"):
        draw(cast(Tables, None), sources_in(traces), tmp_path)
