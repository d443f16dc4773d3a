"""A campaign on Spark gives the rows that one process gives, and goes on where it was interrupted."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from ordercast.cli.main import run
from ordercast.model.errors import UsageError
from ordercast.pipeline.campaign import run_campaign
from ordercast.pipeline.campaign.results import Results, jobs_of
from ordercast.pipeline.campaign.spread import spread
from ordercast.pipeline.campaign.trial import FAILED, trial
from tests.unit.pipeline.campaign.small import impossible, small_campaign

pytestmark = pytest.mark.spark


@pytest.mark.long
def test_the_rows_are_those_of_one_process_under_another_hash_seed(spark: SparkSession, tmp_path: Path) -> None:
    campaign = small_campaign(tmp_path)
    outcome = run_campaign(campaign, tmp_path / "out")
    expected = [trial(cell, seed) for cell in campaign.cells for seed in campaign.seeds]
    for row in [*outcome.rows, *expected]:
        row["seconds"] = 0
    assert [{**row, "measures": dict(row["measures"]), "counts": dict(row["counts"])} for row in outcome.rows] == [
        {**row, "measures": dict(row["measures"]), "counts": dict(row["counts"])} for row in expected
    ]
    assert json.loads((tmp_path / "out" / "campaign.json").read_text())["done"] == 8


class _Stopped(Exception):
    pass


def test_what_was_done_before_an_interruption_is_not_run_again(spark: SparkSession, tmp_path: Path) -> None:
    campaign = replace(small_campaign(tmp_path), seeds=range(1, 4))  # twelve runs, four in the first waves
    results = Results(tmp_path / "out")

    def keep_one(table: pa.Table) -> None:
        results.append(table)
        raise _Stopped

    with pytest.raises(_Stopped):
        spread(spark, campaign.cells, jobs_of(campaign, set()), keep_one)
    before = len(results.done())
    assert 0 < before < 12
    outcome = run_campaign(campaign, tmp_path / "out")
    assert outcome.progress.done == 12 - before
    assert len(outcome.rows) == 12 == len(results.rows())
    assert run_campaign(campaign, tmp_path / "out").progress.done == 0


def test_an_exception_in_a_task_is_a_row_and_the_others_go_on(spark: SparkSession, tmp_path: Path) -> None:
    campaign = small_campaign(tmp_path)
    cells = [campaign.cells[0], impossible(campaign.cells[0])]
    tables: list[pa.Table] = []
    spread(spark, cells, [(0, 1), (1, 1)], tables.append)
    rows = {row["cell"]: row for row in pa.concat_tables(tables).to_pylist()}
    assert rows["impossible"]["outcome"] == FAILED
    assert rows[campaign.cells[0].name]["digest"]


def test_a_wave_that_spark_gives_up_on_is_one_sentence(spark: SparkSession, tmp_path: Path) -> None:
    campaign = small_campaign(tmp_path)
    broken = replace(campaign.cells[0], axes={"load": {1, 2}})  # no JSON: the row cannot be made, whatever the run does
    with pytest.raises(UsageError, match="Spark gave up on some simulations"):
        spread(spark, [broken], [(0, 1)], lambda table: None)


def test_the_command(spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small_campaign(tmp_path)
    words = ["campaign", str(tmp_path / "small.toml"), "--out", str(tmp_path / "out"), "--seeds", "1..1"]
    assert run(words) == 0
    said = capsys.readouterr().out
    assert "VALID   4 runs: 4 valid, 0 failed" in said and "report.html" in said
    assert run([*words, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["runs"], document["run_now"], document["failed"]) == (4, 0, 0)
