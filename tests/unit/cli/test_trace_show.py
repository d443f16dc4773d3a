"""`ordercast trace show`: what became of a message."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ordercast.cli.main import run


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    assert run(["sim", "--nodes", "3", "--messages", "5", "--seed", "7", "--trace", str(folder)]) == 0
    return next(folder.glob("run-*.parquet"))


def test_a_message_is_drawn_from_its_sending_to_its_last_delivery(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["trace", "show", str(trace), "--message", "nobody"]) == 2
    said = capsys.readouterr().err
    assert "there is no message 'nobody' in this run: name one as witnesses do, such as n" in said
    name = said.split("such as ")[1].split()[0].rstrip(".")
    assert run(["trace", "show", str(trace), "--message", name, "--around", "1ms"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["n0", "n1", "n2"]
    assert sum("●" in line and f"sends {name}" in line for line in lines) == 1
    assert sum("▼" in line and f"delivers {name} in view" in line for line in lines) == 3
    assert run(["trace", "show", str(trace), "--message", name, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["message"] == name and len(document["rows"]) >= 4


def test_without_a_message_the_timeline_is_told(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["trace", "show", str(trace)]) == 0
    assert "view" in capsys.readouterr().out
    assert run(["trace", "show", str(trace.parent / "nothing")]) == 2
    assert "is not there: name a run-" in capsys.readouterr().err
