"""Runs with clients: what failed once, snapshots in pieces, a quiet one. Hostile ones: `test_recorded.py`."""

from __future__ import annotations

import pytest

from ordercast.sim.options import SimOptions
from ordercast.sim.run import simulate
from ordercast.sim.swarm import hostile_group_options
from ordercast.trace.client_records import Calm, GotMessage, GotView


def test_a_newcomer_that_a_list_dropped_does_not_come_with_another_newcomer() -> None:
    assert simulate(hostile_group_options(2325), 2325).is_valid


def test_a_client_that_comes_back_does_not_take_a_view_of_its_earlier_stay_for_an_answer() -> None:
    assert simulate(hostile_group_options(555), 555).is_valid


def test_a_frame_that_a_daemon_refuses_is_not_under_way() -> None:
    assert simulate(hostile_group_options(842), 842).is_valid


def test_what_one_holds_above_a_seq_that_leapt_all_can_keep() -> None:
    assert simulate(hostile_group_options(1279), 1279).is_valid


def test_snapshots_may_come_in_many_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ordercast.groups.snapshot.PIECE_SIZE_MAX", 40)
    for seed in range(4):
        assert simulate(hostile_group_options(seed), seed).is_valid


def test_a_quiet_run_merges_once_and_everybody_hears_everybody() -> None:
    options = SimOptions(nodes=3, messages=60, clients=2, groups=1)
    result = simulate(options, 1, keep_events=True)
    assert result.is_valid
    assert result.counts["groups: gathering given up"] == 0
    assert any(isinstance(event, Calm) for event in result.client_events)
    seen = {len(event.view.members) for event in result.client_events if isinstance(event, GotView)}
    assert max(seen) >= 4
    assert any(isinstance(event, GotMessage) for event in result.client_events)


def test_without_clients_there_is_nothing_to_tell_of_them() -> None:
    result = simulate(SimOptions(messages=20), 1, keep_events=True)
    assert not result.client_events
    assert not any(name.startswith("groups") for name in result.counts)
    assert len(result.verdicts) == 16
