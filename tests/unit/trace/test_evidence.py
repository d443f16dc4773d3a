"""What clients and replicas saw, judged from files: the verdicts are those of the run itself, of damaged runs too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ordercast.checker import Outcome, Verdict
from ordercast.checker.evidence import EvidenceCheckers
from ordercast.cli.check import judge
from ordercast.model.promises import TOTALLY_ORDERED_GROUPS, GroupPromise, Promise, Promises, ReplicaPromise
from ordercast.order.ring.promised import PROMISED as RING_PROMISES
from ordercast.sim.options import SimOptions
from ordercast.sim.run import Result, simulate
from ordercast.sim.swarm import hostile_group_options, hostile_replica_options
from ordercast.trace.client_records import GotMessage
from ordercast.trace.parquet import RunInfo, write_run
from ordercast.trace.records import Started
from ordercast.trace.replica_records import Applied, ReplicaStarted

KINDS = (Promise, GroupPromise, ReplicaPromise)


@pytest.fixture(
    scope="module", params=[(hostile_group_options, 3), (hostile_replica_options, 15)], ids=["groups", "replicas"]
)
def result(request: pytest.FixtureRequest) -> Result:
    options: Callable[[int], SimOptions]
    options, seed = request.param
    return simulate(options(seed), seed, keep_events=True)


def in_files(result: Result, folder: Path) -> list[Verdict]:
    return judge(write_run(folder, RunInfo(1), result.events, result.client_events, result.replica_events)).verdicts


def in_process(result: Result) -> list[Verdict]:
    checkers = EvidenceCheckers()
    for event in result.events:
        checkers.observe(event)
    checkers.observe_clients(result.client_events)
    checkers.observe_replicas(result.replica_events)
    return checkers.verdicts()


def test_verdicts_from_files_are_those_of_the_run(result: Result, tmp_path: Path) -> None:
    found = in_files(result, tmp_path)
    assert found == [verdict for verdict in result.verdicts if isinstance(verdict.promise, KINDS)]
    assert len(found) == len(RING_PROMISES) + len(TOTALLY_ORDERED_GROUPS) + (
        len(ReplicaPromise) if result.replica_events else 0
    )


def test_verdicts_on_damaged_evidence_are_the_same_from_files(result: Result, tmp_path: Path) -> None:
    got = next(event for event in result.client_events if isinstance(event, GotMessage))
    clients = [event for event in result.client_events if event is not got]
    clients.append(replace(got, digest=got.digest ^ 1))
    applied = [event for event in result.replica_events if isinstance(event, Applied)][3:4]
    replicas = [replace(event, chain=event.chain ^ 1) if event in applied else event for event in result.replica_events]
    damaged = replace(result, client_events=clients, replica_events=replicas)
    found = in_files(damaged, tmp_path)
    assert found == in_process(damaged)
    broken = {verdict.promise for verdict in found if verdict.outcome is Outcome.INVALID}
    assert GroupPromise.INTEGRITY in broken
    assert (ReplicaPromise.SAME_COMMANDS in broken) is bool(replicas)


def test_a_run_without_clients_is_judged_by_its_daemons_alone(result: Result, tmp_path: Path) -> None:
    alone = replace(result, client_events=[], replica_events=[])
    assert {type(verdict.promise) for verdict in in_files(alone, tmp_path)} == {Promise}


def test_what_the_engine_does_not_promise_of_groups_and_replicas_is_not_judged(result: Result, tmp_path: Path) -> None:
    promised = Promises("pruned", frozenset(Promise), frozenset(), 1, groups=frozenset(), replicas=frozenset())
    events = [replace(event, promises=promised) if isinstance(event, Started) else event for event in result.events]
    verdicts = in_files(replace(result, events=events), tmp_path)
    others = [verdict.outcome for verdict in verdicts if not isinstance(verdict.promise, Promise)]
    assert set(others) == {Outcome.NOT_PROMISED}


def test_each_replicated_state_is_judged_by_itself(result: Result, tmp_path: Path) -> None:
    """The lives of two groups may have the same places, with other commands."""
    if not result.replica_events:
        pytest.skip("there are no replicas")
    lives = {event.life for event in result.replica_events if isinstance(event, ReplicaStarted)}
    again: list[Any] = []
    event: Any
    for event in result.replica_events[:-1]:
        if isinstance(event, ReplicaStarted):
            event = replace(event, group="other")
        if hasattr(event, "life"):
            event = replace(event, life=event.life + max(lives))
        if isinstance(event, Applied):
            event = replace(event, chain=event.chain ^ 1, caller=event.caller + max(lives))
        again.append(event)
    both = replace(result, replica_events=[*again, *result.replica_events])
    found = {verdict.promise: verdict for verdict in in_files(both, tmp_path)}
    assert found[ReplicaPromise.ONCE].outcome is Outcome.VALID
    assert found[ReplicaPromise.SAME_COMMANDS].outcome is Outcome.INVALID  # its pictures have the right digests
    assert found[ReplicaPromise.SAME_COMMANDS].sentence.startswith("other: ")
