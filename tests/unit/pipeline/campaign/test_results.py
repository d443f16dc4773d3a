"""The folder of a campaign: what is done is known, whatever happened meanwhile. One run of it is what `sim` runs."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from ordercast.cli.main import run
from ordercast.model.errors import UsageError
from ordercast.pipeline.campaign import draw
from ordercast.pipeline.campaign.figures import PAPER, PREDICTED
from ordercast.pipeline.campaign.replay import replay_of
from ordercast.pipeline.campaign.results import Results, jobs_of
from ordercast.pipeline.campaign.trial import FAILED, VALID, Row, batch_of, trial
from ordercast.sim.run import simulate
from tests.unit.pipeline.campaign.small import impossible, small_campaign


def _table(*rows: Row) -> pa.Table:
    return pa.Table.from_batches([batch_of(rows)])


def test_a_trial_is_the_run_that_the_simulator_runs(tmp_path: Path) -> None:
    cell = small_campaign(tmp_path).cells[1]
    row = trial(cell, 2)
    assert row["outcome"] == VALID
    assert row["digest"] == simulate(cell.options(2), 2).digest
    assert dict(row["measures"])["rotation_us"] > 0
    assert json.loads(row["parameters"]) == {"load": 200}
    assert row["schedule"] == "crash"


def test_an_exception_is_a_row(tmp_path: Path) -> None:
    row = trial(impossible(small_campaign(tmp_path).cells[0]), 1)
    assert row["outcome"] == FAILED
    assert "nodes must be within" in row["sentence"]
    assert len(_table(row)) == 1


def test_what_is_done_is_not_a_job(tmp_path: Path) -> None:
    campaign, results = small_campaign(tmp_path), Results(tmp_path / "out")
    assert len(jobs_of(campaign, results.done())) == 8
    row = trial(campaign.cells[0], 1)
    results.append(_table(row))
    left = jobs_of(campaign, results.done())
    assert len(left) == 7 and (0, 1) not in left
    more = jobs_of(replace(campaign, seeds=range(1, 4)), results.done())
    assert len(more) == 11


def test_cells_that_run_the_same_are_run_once(tmp_path: Path) -> None:
    campaign = small_campaign(tmp_path)
    crossing = replace(campaign, cells=[*campaign.cells, replace(campaign.cells[0], name="again")])
    assert crossing.runs == campaign.runs == 8
    assert len(jobs_of(crossing, set())) == 8


def test_failed_runs_are_done_unless_they_are_to_be_run_again_and_the_later_row_counts(tmp_path: Path) -> None:
    campaign, results = small_campaign(tmp_path), Results(tmp_path / "out")
    row = trial(campaign.cells[0], 1)
    results.append(_table(row | {"outcome": "INVALID", "sentence": "broken"}))
    assert len(jobs_of(campaign, results.done())) == 7
    assert len(jobs_of(campaign, results.done(failed_too=False))) == 8
    results.append(_table(row))
    assert len(jobs_of(campaign, results.done(failed_too=False))) == 7
    assert [found["outcome"] for found in results.latest(campaign)] == [VALID]


def test_a_file_that_was_not_finished_is_no_result_and_a_damaged_one_is_named(tmp_path: Path) -> None:
    campaign, results = small_campaign(tmp_path), Results(tmp_path / "out")
    results.append(_table(trial(campaign.cells[0], 1)))
    part = results.parts()[0]
    (part.parent / f".{part.name}.unfinished").write_bytes(part.read_bytes()[:100])
    assert len(results.done()) == 1
    part.write_bytes(part.read_bytes()[:100])
    with pytest.raises(UsageError, match=r"part-000001.parquet cannot be read: remove it"):
        results.done()


def test_two_campaigns_do_not_share_a_folder_at_a_time(tmp_path: Path) -> None:
    with Results(tmp_path / "out").locked(), pytest.raises(UsageError, match="is running in"):
        Results(tmp_path / "out").locked().__enter__()
    with Results(tmp_path / "out").locked():
        pass


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file")
    with pytest.raises(UsageError, match="choose another with --out"):
        Results(tmp_path / "out")


def test_a_folder_that_takes_no_more_is_said_and_what_was_done_is_kept(tmp_path: Path) -> None:
    campaign, results = small_campaign(tmp_path), Results(tmp_path / "out")
    row = trial(campaign.cells[0], 1)
    results.append(_table(row))
    names = (".lock", "results/.part-000002.parquet.unfinished", ".campaign.json.unfinished", ".report.html.unfinished")
    for name in names:
        (tmp_path / "out" / name).mkdir()  # whoever runs this as root may write into every folder
    writes: list[Callable[[], object]] = [
        lambda: results.locked().__enter__(),
        lambda: results.append(_table(row)),
        lambda: results.describe(campaign, 1),
        lambda: draw(campaign, [row], tmp_path / "out"),
    ]
    for write in writes:
        with pytest.raises(UsageError, match=r"out cannot be written into: Is a directory; what was done is kept"):
            write()
    assert len(results.done()) == 1


def test_what_goes_wrong_while_a_campaign_runs_is_not_laid_upon_its_folder(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), Results(tmp_path / "out").locked():
        (tmp_path / "none").read_text()


def test_the_replay_command_runs_the_same_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    campaign = small_campaign(tmp_path)
    cell = campaign.cells[3]
    words = shlex.split(replay_of(campaign, cell, 2))
    assert run([*words[1:], "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["digest"] == trial(cell, 2)["digest"]
    assert shlex.split(document["replay"]) == words


def test_a_hostile_seed_is_replayed_as_that_of_a_swarm(tmp_path: Path) -> None:
    campaign = replace(small_campaign(tmp_path))
    cell = replace(campaign.cells[0], hostile="groups", settings={}, faults=())
    assert replay_of(campaign, cell, 7) == "ordercast sim --hostile --groups --seed 7"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--cell", "x"], "--cell goes with --campaign"),
        (["--campaign", "small.toml"], "has 4 cells: choose one with --cell"),
        (["--campaign", "small.toml", "--cell", "load=1"], "has no cell 'load=1'"),
        (["--campaign", "small.toml", "--cell", "x", "--loss", "0.1"], "leave out --loss, or leave out --campaign"),
    ],
)
def test_sim_says_what_is_wrong_with_a_cell(
    words: list[str],
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    small_campaign(tmp_path)
    assert run(["sim", *words]) == 2
    assert sentence in " ".join(capsys.readouterr().err.split())


# The page


def test_the_page_shows_prediction_paper_and_ours_and_how_to_replay_what_failed(tmp_path: Path) -> None:
    campaign = small_campaign(tmp_path)
    rows = [trial(cell, seed) for cell in campaign.cells for seed in campaign.seeds]
    rows[3] |= {"outcome": "INVALID", "sentence": "total order is broken"}
    text = draw(campaign, rows, tmp_path).read_text()
    for words in ("Rotation against load", PREDICTED.replace("'", "&#x27;"), PAPER, "about 1 ms", "rotation, ms"):
        assert words in text
    assert "7 of 8" in text and "Failing seeds" in text
    assert f"--cell &#x27;{rows[3]['cell']}&#x27; --seed {rows[3]['seed']}" in text


def test_a_page_of_a_campaign_that_has_just_begun_has_sentences_instead_of_plots(tmp_path: Path) -> None:
    text = draw(small_campaign(tmp_path), [], tmp_path).read_text()
    assert "Nothing was measured yet" in text
    assert "<svg" not in text
