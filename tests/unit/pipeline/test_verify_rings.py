"""Traces of networks of rings: all judges of the pipeline say what the checkers say, of damaged ones too."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("numpy")

from ordercast.checker import Outcome, combined
from ordercast.cli.check import judge as check
from ordercast.model.ids import MILLISECOND
from ordercast.order.catalogue import entry_of
from ordercast.pipeline.verify.job import found_in, verify
from ordercast.sim.faults import Fault, FaultKind
from ordercast.sim.options import SimOptions
from ordercast.sim.run import Result, simulate
from ordercast.trace.client_records import GotMessage, GotView
from ordercast.trace.parquet import RunInfo, write_run
from ordercast.trace.records import DeliveredBatch, Event
from ordercast.trace.replica_records import Applied
from tests.unit.checker.test_mutations import MUTATIONS
from tests.unit.pipeline.agreement import assert_agreement, assert_clients_agree, reference

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Two rings with two gateways; one ring is parted while the other keeps its halves together, and then both are.
OPTIONS = SimOptions(
    nodes=5,
    engine="gateways",
    attachments=((0, 1), (1, 0), (0,), (1,), (1,)),
    messages=60,
    faults=(
        Fault(250 * MILLISECOND, FaultKind.PARTITION, groups=((0, 3), (1, 4)), segment=1),
        Fault(400 * MILLISECOND, FaultKind.PARTITION, groups=((0, 2, 3), (1, 4))),
        Fault(550 * MILLISECOND, FaultKind.HEAL),
        Fault(700 * MILLISECOND, FaultKind.CRASH, node=1),
    ),
    fault_time_ns=900 * MILLISECOND,
)
SEED = 5


@pytest.fixture(scope="module")
def result() -> Result:
    return simulate(OPTIONS, SEED, keep_events=True)


def damaged(events: list[Event], number: int) -> list[Event]:
    """One change to the history. A slot below zero is no position: no trace has it."""
    mutation = MUTATIONS[number % len(MUTATIONS)]
    tried = (mutation(events, random.Random(number + 100 * turn)) for turn in range(100))
    return next(broken for broken in tried if all(slot >= 0 for slot in slots_in(broken)))


def slots_in(events: list[Event]) -> list[int]:
    return [each.slot for event in events if isinstance(event, DeliveredBatch) for each in event.messages]


def test_a_run_is_judged_alike(result: Result) -> None:
    assert result.is_valid, result.verdict.sentence
    promised = entry_of("gateways").promises
    verdicts = reference(result.events)
    assert combined(verdicts).outcome is Outcome.VALID
    for verdict in verdicts:
        assert (verdict.outcome is Outcome.NOT_PROMISED) == (verdict.promise not in promised)
    assert_agreement(result.events)


@pytest.mark.parametrize("number", range(2 * len(MUTATIONS)))
def test_a_damaged_run_is_judged_alike(result: Result, number: int) -> None:
    broken = damaged(result.events, number)
    assert_agreement(broken, in_parts=number < len(MUTATIONS))


@pytest.fixture(scope="module")
def groups() -> Result:
    return simulate(replace(OPTIONS, clients=1, messages=80), SEED, keep_events=True)


def without(events: list[Any], kind: type, number: int) -> list[Any]:
    """One event of this kind left out."""
    chosen = [event for event in events if isinstance(event, kind)][number]
    return [event for event in events if event is not chosen]


def test_clients_are_judged_alike(groups: Result) -> None:
    assert groups.is_valid, groups.verdict.sentence
    assert_clients_agree(groups.client_events)
    assert_clients_agree(without(groups.client_events, GotMessage, 5), in_parts=False)


@pytest.fixture(scope="module")
def traces(result: Result, groups: Result, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A valid run and every third damaged one; runs with clients and with replicas, and damaged ones of them."""
    folder = tmp_path_factory.mktemp("rings")
    write_run(folder, RunInfo(0), result.events)
    for number in range(0, 2 * len(MUTATIONS), 3):
        write_run(folder, RunInfo(1 + number), damaged(result.events, number))
    told = groups.client_events
    for number, seen in enumerate((told, without(told, GotMessage, 5), without(told, GotView, -1))):
        write_run(folder, RunInfo(100 + number), groups.events, seen)
    replicas = simulate(replace(OPTIONS, replicas=1), SEED, keep_events=True)
    assert replicas.is_valid, replicas.verdict.sentence
    done = replicas.replica_events
    for number, applied in enumerate((done, without(done, Applied, 3))):
        write_run(folder, RunInfo(200 + number), replicas.events, replicas.client_events, applied)
    return folder


@pytest.mark.spark
def test_spark_says_what_the_checkers_say(spark: SparkSession, traces: Path) -> None:
    expected = {path: check(Path(path)).verdicts for path in map(str, found_in([traces]))}
    outcomes = [combined(verdicts).outcome for verdicts in expected.values()]
    assert outcomes.count(Outcome.VALID) < 6 and outcomes.count(Outcome.INVALID) > 10
    for judged in verify(spark, found_in([traces])):
        assert judged.verdicts == expected[judged.path]
    for judged in verify(spark, found_in([traces])[::6], task_rows=10, part_rows=2_000):
        assert judged.how == "parts"
        assert [one.outcome for one in judged.verdicts] == [one.outcome for one in expected[judged.path]]
