"""Live traces on the command line: judged as one run, compacted to one file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ordercast.cli.main import run
from ordercast.trace.cluster import CLUSTER_FILE
from tests.unit.checker.histories import Story, process
from tests.unit.trace.live_traces import files_of, killed, write_history

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    story = Story(3)
    story.change(0, 1, 2)
    story.round(0, 1, 2, count=3)
    write_history(tmp_path, story.finished(), monkeypatch)
    return tmp_path


def test_a_live_cluster_is_judged_as_one_run(folder: Path, capsys: Capture) -> None:
    assert run(["check", str(folder)]) == 0
    assert "1 of 1 run is valid" in capsys.readouterr().out
    assert run(["check", str(folder), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    (judged,) = document["runs"]
    assert (judged["path"], judged["run"], judged["seed"], judged["deliveries"]) == (str(folder), 0, None, 27)


def test_what_is_missing_is_said(folder: Path, capsys: Capture) -> None:
    killed(files_of(folder, process(1))[-1])
    assert run(["check", str(folder)]) == 1
    out = capsys.readouterr().out
    assert "UNKNOWN" in out
    assert "the trace of n1 has no end: is it still running, or was it killed?" in out


def test_compact_makes_a_run_that_is_judged_the_same(folder: Path, capsys: Capture) -> None:
    out = folder / "new" / "runs"
    assert run(["trace", "compact", str(folder), "--out", str(out)]) == 0
    assert capsys.readouterr().out.startswith(f"written  {out / 'run-1.parquet'} (")
    assert run(["check", str(out)]) == 0
    capsys.readouterr()
    assert run(["trace", "compact", str(folder)]) == 0
    capsys.readouterr()
    assert run(["check", str(folder)]) == 0  # both: the run and the live traces
    printed = capsys.readouterr().out
    assert "2 of 2 runs are valid" in printed and "live" in printed


def test_compact_says_what_is_missing(folder: Path, capsys: Capture) -> None:
    killed(files_of(folder, process(1))[-1])
    why = "the trace of n1 has no end: is it still running, or was it killed?"
    assert run(["trace", "compact", str(folder), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    path = folder / "run-1.parquet"
    assert document == {"path": str(path), "size": path.stat().st_size, "missing": [why]}
    assert run(["trace", "compact", str(folder)]) == 0
    assert f"missing  {why}" in capsys.readouterr().out
    assert run(["check", str(path)]) == 1
    assert why in capsys.readouterr().out


def test_help_has_an_example(capsys: Capture) -> None:
    assert run(["trace", "compact", "--help"]) == 0
    out = capsys.readouterr().out
    assert "Example: ordercast trace compact" in out and "--json" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["trace"], "Missing command"),
        (["trace", "compact"], "DIR"),
        (["trace", "compact", "/does/not/exist"], "there are no live traces (live-*.arrows) in /does/not/exist"),
        (["trace", "compact", "{folder}", "--out", "/dev/null"], "/dev/null"),
        (["check", "{folder}/n0/live-n0-1-1.arrows"], "give the folder with those of the whole cluster"),
    ],
)
def test_what_cannot_be_done_is_one_sentence_and_status_2(
    folder: Path, capsys: Capture, arguments: list[str], words: str
) -> None:
    assert run([argument.format(folder=folder) for argument in arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert words in captured.err and captured.err.startswith("ordercast: ") and captured.err.count("\n") == 1


def test_a_wrong_line_of_the_harness_is_one_sentence(folder: Path, capsys: Capture) -> None:
    (folder / CLUSTER_FILE).write_text("boom\n")
    assert run(["check", str(folder)]) == 2
    assert "cluster.jsonl, line 1 is not JSON" in capsys.readouterr().err
