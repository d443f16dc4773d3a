"""Live folders merged by columns: the same verdicts as when every event is an object."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("numpy")

from dataclasses import replace
from typing import Any

import numpy as np

from ordercast.model.ids import MILLISECOND
from ordercast.pipeline.verify.job import judge_large_folder
from ordercast.pipeline.verify.judging import judge
from ordercast.pipeline.verify.live_evidence import write_evidence
from ordercast.pipeline.verify.ordering import Needs, numbered, raised
from ordercast.sim.run import simulate
from ordercast.sim.swarm import hostile_options, hostile_replica_options
from ordercast.trace import recording
from ordercast.trace.client_rows import CLIENTS
from ordercast.trace.cluster import append_cluster_event
from ordercast.trace.evidence_folder import history_in
from ordercast.trace.folder import read_live
from ordercast.trace.live_writer import wall_offset_ns
from ordercast.trace.merge import merged as merged_events
from ordercast.trace.merge import streams_in
from ordercast.trace.parquet import RunInfo, read_evidence, run_path
from ordercast.trace.recording import Recorder, now
from ordercast.trace.records import Ended
from ordercast.trace.replica_rows import REPLICAS
from tests.unit.pipeline.agreement import in_turn, reference
from tests.unit.trace.live_traces import write_history


def test_a_hostile_run_is_judged_from_its_folder_as_its_events_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = simulate(hostile_options(2), 2, keep_events=True)
    write_history(tmp_path, result.events, monkeypatch, skews=(0, 50 * MILLISECOND), flush_every=60)
    expected = reference(list(read_live(tmp_path).events()))
    assert judge(str(tmp_path)).verdicts == expected
    parts = judge_large_folder(str(tmp_path), in_turn, 10_000)
    assert [one.outcome for one in parts.verdicts] == [one.outcome for one in expected]


def test_what_clients_and_replicas_of_two_hosts_saw_is_merged_as_their_events_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock of the second host is behind: it gets what was not yet sent. One of its programs was killed."""
    result = simulate(hostile_replica_options(3), 3, keep_events=True)
    event: Any
    at = now()
    recorders = []
    for number, clock in enumerate(("one", "two", "two")):
        monkeypatch.setattr(recording, "_clock", lambda clock=clock: clock)
        recorders.append(recorder := Recorder(tmp_path, f"p{number}", survives_kill=number == 2))
        for event in result.client_events[:200]:
            client = getattr(event, "client", None)
            if client is not None and client.process % 3 == number:
                recorder.client(replace(event, at=at + event.at - (20 * MILLISECOND if number else 0)))
        for event in result.replica_events[:200]:
            life = getattr(event, "life", None)
            if life is not None and life % 3 == number:
                recorder.replica(replace(event, at=at + event.at - (20 * MILLISECOND if number else 0)))
    for recorder in recorders[:2]:
        recorder.close()
    for said in ("healed", "calm"):
        append_cluster_event(tmp_path, said, at=wall_offset_ns() + at + 50 * MILLISECOND)
    append_cluster_event(tmp_path, "settled", at=wall_offset_ns() + at + 10**12)
    out = tmp_path / "merged"
    out.mkdir()
    assert write_evidence(tmp_path, out, 1, {}) == ["clients", "replicas"]
    path, info = run_path(out, 1), RunInfo(1, None, {}, evidence=["clients", "replicas"])
    clients, replicas = read_evidence(path, info, CLIENTS), read_evidence(path, info, REPLICAS)
    assert_same(clients, history_in(tmp_path, CLIENTS))
    assert_same(replicas, history_in(tmp_path, REPLICAS))
    recorders[2].close()


def assert_same(merged: list[Any], expected: list[Any]) -> None:
    """The same events, those of each host in their order, and nothing before what it needs."""
    assert sorted(map(repr, merged[:-1])) == sorted(map(repr, expected[:-1]))
    assert isinstance(merged[-1], Ended) and merged[-1].complete
    streams = streams_in([merged])
    assert list(merged_events([merged], streams)) == merged


def test_what_needs_another_comes_after_it_with_all_behind_it() -> None:
    times = [np.array([10, 20, 30]), np.array([1, 2, 40])]
    needs = [Needs(1, np.array([1]), 0, np.array([2]))]
    found = raised(times, needs)
    assert [list(each) for each in found] == [[10, 20, 30], [1, 31, 40]]
    assert [list(each) for each in numbered(found)] == [[1, 2, 3], [0, 4, 5]]


def test_a_circle_is_given_up() -> None:
    circle = [Needs(0, np.array([0]), 1, np.array([0])), Needs(1, np.array([0]), 0, np.array([0]))]
    assert len(raised([np.array([1]), np.array([1])], circle)) == 2
