"""A run that fails is shrunk to one that a person can read, and the command that is printed replays it."""

from __future__ import annotations

import shlex

import pytest

from ordercast.cli.main import run
from ordercast.sim.run_options import replay_command
from ordercast.sim.shrink import failures_of, shrink
from ordercast.sim.swarm import hostile_options

from .planted import PLANTED


@pytest.mark.parametrize(
    "name", ["anyone raises the aru", pytest.param("safe is delivered as agreed", marks=pytest.mark.long)]
)
def test_a_planted_fault_is_shrunk_to_a_few_events_that_are_replayed(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    next(fault for fault in PLANTED if fault.name == name).plant(monkeypatch)
    smallest = shrink(hostile_options(1), 1)
    assert smallest is not None and smallest.events < 20
    assert failures_of(smallest.options, 1)
    command = replay_command(smallest.options, 1, is_hostile=False)
    assert run(shlex.split(command)[1:]) == 1
    assert "INVALID" in capsys.readouterr().out


def test_a_swarm_shrinks_its_first_failure(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    next(fault for fault in PLANTED if fault.name == "anyone raises the aru").plant(monkeypatch)
    assert run(["swarm", "--seeds", "1..1", "--processes", "1", "--shrink"]) == 1
    said = capsys.readouterr().out
    assert "seed 1 shrunk to 1 event (messages and faults)" in said
    assert "left     nodes" in said and "replay   " in said


def test_a_sound_run_is_not_shrunk() -> None:
    assert shrink(hostile_options(1), 1) is None
