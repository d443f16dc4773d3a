"""`ordercast verify` on Spark of what clients and replicas saw: all promises, the same verdicts as `ordercast check`.

Every history of the checkers' own tests, and each planted fault of groups, goes through the same comparison without
Spark: see `tests/unit/checker/conftest.py` and `tests/simulation/test_planted_groups.py`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("numpy")

from ordercast.checker import Outcome
from ordercast.cli.check import judge as check
from ordercast.cli.main import run
from ordercast.model.promises import GroupPromise, Promise, ReplicaPromise
from ordercast.pipeline.verify.job import found_in, verify
from ordercast.sim.run import Result, simulate
from ordercast.sim.swarm import hostile_group_options, hostile_replica_options
from ordercast.trace.client_records import GotMessage, GotView
from ordercast.trace.parquet import RunInfo, write_run
from ordercast.trace.replica_records import Applied, Returned

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

ORDER = [promise for promise in Promise if promise is not Promise.MULTIPLE_GROUP_ORDER]  # total order is stronger
GROUPS = [*ORDER, *(promise for promise in GroupPromise if promise is not GroupPromise.MULTIPLE_GROUP_ORDER)]
REPLICAS = ALL = [*GROUPS, *ReplicaPromise]


def _without(events: list[Any], kind: type, number: int) -> list[Any]:
    """One event of this kind left out."""
    chosen = [event for event in events if isinstance(event, kind)][number]
    return [event for event in events if event is not chosen]


def _altered(events: list[Any], kind: type, number: int, **fields: Any) -> list[Any]:
    chosen: Any = [event for event in events if isinstance(event, kind)][number]
    altered: Any = replace(chosen, **fields)
    return [altered if event is chosen else event for event in events]


def _write(folder: Path, result: Result, number: int, clients: list[Any], replicas: list[Any]) -> None:
    write_run(folder, RunInfo(number), result.events, clients, replicas)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two that are valid, and damaged ones."""
    folder = tmp_path_factory.mktemp("evidence")
    groups = simulate(hostile_group_options(2), 2, keep_events=True)
    replicas = simulate(hostile_replica_options(0), 0, keep_events=True)
    told, done = groups.client_events, replicas.replica_events
    _write(folder, groups, 1, told, [])
    _write(folder, groups, 2, _without(told, GotMessage, 5), [])
    _write(folder, groups, 3, _altered(told, GotMessage, 7, digest=1), [])
    _write(folder, groups, 4, _without(told, GotView, -1), [])
    _write(folder, replicas, 5, replicas.client_events, done)
    _write(folder, replicas, 6, replicas.client_events, _altered(done, Applied, 3, result=b"?"))
    _write(folder, replicas, 7, replicas.client_events, _altered(done, Returned, 2, result=b"!"))
    return folder


def test_all_promises_are_judged_as_check_judges_them(spark: SparkSession, runs: Path) -> None:
    found = verify(spark, found_in([runs]))
    for judged in found:
        expected = check(Path(judged.path))
        assert judged.verdicts == expected.verdicts
        assert (judged.client_events, judged.replica_events) == (expected.client_events, expected.replica_events)
    valid = [all(verdict.outcome is not Outcome.INVALID for verdict in judged.verdicts) for judged in found]
    assert valid == [True, False, False, False, True, False, False]
    assert [verdict.promise for verdict in found[0].verdicts] == GROUPS
    assert [verdict.promise for verdict in found[4].verdicts] == REPLICAS


def test_so_they_are_in_parts(spark: SparkSession, runs: Path) -> None:
    traces = found_in([runs])[:5]
    for judged in verify(spark, traces, task_rows=10, part_rows=5_000):
        assert judged.how == "parts"
        expected = check(Path(judged.path))
        assert [verdict.outcome for verdict in judged.verdicts] == [verdict.outcome for verdict in expected.verdicts]


def test_the_command_shows_them(spark: SparkSession, runs: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = str(runs / "run-5.parquet")
    assert run(["check", path, "--json"]) == 0
    expected = json.loads(capfd.readouterr().out)
    assert run(["verify", path, "--json"]) == 0
    assert json.loads(capfd.readouterr().out) == expected
    assert run(["verify", path]) == 0
    assert ReplicaPromise.LINEARISABLE.value in capfd.readouterr().out
