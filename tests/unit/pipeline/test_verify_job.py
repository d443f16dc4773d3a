"""`ordercast verify` on Spark: the same verdicts and witnesses as `ordercast check`, whole and in parts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("numpy")

from ordercast.checker import Outcome, combined
from ordercast.cli.main import run
from ordercast.pipeline.verify.job import found_in, verify
from ordercast.trace.parquet import RunInfo, write_run
from tests.unit.checker.histories import Story, delivery_index, swapped, without_delivery
from tests.unit.pipeline.agreement import reference

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def _story() -> Story:
    told = Story(3)
    told.change(0, 1, 2)
    told.round(0, 1, 2, count=30)
    return told


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """One valid, one that lacks a delivery, one out of order, one cut short on disk."""
    told = _story()
    messages = list(told.submissions)
    events = told.finished()
    places = delivery_index(events, 2, messages[4]), delivery_index(events, 2, messages[5])
    for number, history in enumerate((events, without_delivery(events, 1, messages[7]), swapped(events, *places)), 1):
        write_run(tmp_path, RunInfo(number), history)
    cut = write_run(tmp_path, RunInfo(4), events)
    cut.write_bytes(cut.read_bytes()[:1000])
    return tmp_path


def test_many_runs(spark: SparkSession, runs: Path) -> None:
    told: list[tuple[int, int]] = []
    found = verify(spark, found_in([runs]), lambda done, total: told.append((done, total)))
    assert [Path(judged.path).name for judged in found] == [f"run-{number}.parquet" for number in (1, 2, 3, 4)]
    assert [combined(judged.verdicts).outcome for judged in found] == [
        Outcome.VALID,
        Outcome.INVALID,
        Outcome.INVALID,
        Outcome.UNKNOWN,
    ]
    events = _story().finished()
    assert found[0].verdicts == reference(events)
    assert found[1].verdicts == reference(without_delivery(events, 1, list(_story().submissions)[7]))


def test_the_same_runs_in_parts(spark: SparkSession, runs: Path) -> None:
    whole = verify(spark, found_in([runs]))
    parts = verify(spark, found_in([runs]), task_rows=10, part_rows=60)
    assert [judged.how for judged in parts] == ["parts", "parts", "parts", "unread"]
    for one, other in zip(whole, parts, strict=True):
        assert [verdict.outcome for verdict in one.verdicts] == [verdict.outcome for verdict in other.verdicts]
        assert (one.events, one.deliveries) == (other.events, other.deliveries)
    assert combined(parts[1].verdicts).witnesses


def test_the_command_says_what_check_says(spark: SparkSession, runs: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (runs / "run-4.parquet").unlink()
    assert run(["check", str(runs), "--json"]) == 1
    expected = json.loads(capfd.readouterr().out)
    assert run(["verify", str(runs), "--json"]) == 1
    found = json.loads(capfd.readouterr().out)
    assert found == expected
    assert run(["verify", str(runs / "run-1.parquet")]) == 0
    assert "1 of 1 run is valid" in capfd.readouterr().out


def test_bad_input_is_one_sentence(spark: SparkSession, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["verify", str(tmp_path / "nothing")]) == 2
    assert "there is no folder" in capfd.readouterr().err
    assert run(["verify", str(tmp_path), "--conf", "memory"]) == 2
    assert "--conf memory is no option of Spark" in capfd.readouterr().err
