"""Folders of live traces, judged by columns: whatever the clocks say, the verdicts are those of `ordercast check`."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("numpy")

from ordercast.checker import Outcome, combined
from ordercast.cli.check import judge as check
from ordercast.model.ids import SECOND, Instant
from ordercast.pipeline.verify.job import judge_large_folder
from ordercast.pipeline.verify.judging import judge
from ordercast.trace.client_records import Calm, ClientEvent, GotMessage
from ordercast.trace.cluster import append_cluster_event
from ordercast.trace.folder import read_live
from ordercast.trace.live_writer import wall_offset_ns
from ordercast.trace.recording import Recorder, now
from ordercast.trace.records import Ended, Event, Healed
from tests.unit.checker.groups.stories import Story as ClientStory
from tests.unit.checker.histories import PRUNING, Story, without_delivery
from tests.unit.checker.test_mutations import Mutation, drop, duplicate, swap
from tests.unit.pipeline.agreement import in_turn, reference
from tests.unit.trace.live_traces import write_history

SKEWS = (0, 40, -25)  # in events: a clock of the story goes on by one for each


def story(count: int = 12) -> Story:
    told = Story(3)
    told.change(0, 1, 2)
    told.saturate(0, 1, 2, begins=True)
    told.round(0, 1, 2, count=count)
    told.saturate(0, 1, 2, begins=False)
    told.crash(2)
    told.change(0, 1)
    told.round(0, 1, count=5)
    return told


def assert_alike(folder: Path, how: str) -> None:
    """In one task, which says how it went, and in parts."""
    events = list(read_live(folder).events())
    expected = reference(events)
    one = judge(str(folder))
    assert (one.verdicts, one.events, one.how) == (expected, len(events), how)
    parts = judge_large_folder(str(folder), in_turn, 100)
    assert [verdict.outcome for verdict in parts.verdicts] == [verdict.outcome for verdict in expected]
    assert (parts.events, parts.deliveries) == (one.events, one.deliveries)
    assert not list(folder.glob(".verify-*"))


@pytest.mark.parametrize("skews", [(0,), SKEWS], ids=["one clock", "clocks that differ"])
def test_a_valid_folder_is_cleared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, skews: Sequence[int]) -> None:
    write_history(tmp_path, story(41).finished(), monkeypatch, skews=skews)
    assert combined(judge(str(tmp_path)).verdicts).outcome is Outcome.VALID
    assert_alike(tmp_path, "columns")


@pytest.mark.parametrize("damage", [drop, duplicate, swap])
def test_a_damaged_folder_is_judged_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: Mutation) -> None:
    write_history(tmp_path, damage(story().finished(), random.Random(1)), monkeypatch, skews=SKEWS)
    assert_alike(tmp_path, "checkers")


def test_a_record_without_an_end_and_one_with_a_hole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_history(tmp_path / "cut", story().events, monkeypatch, is_told=False)
    assert_alike(tmp_path / "cut", "columns")
    write_history(tmp_path / "hole", story().finished(), monkeypatch)
    paths = sorted((tmp_path / "hole").rglob("live-n1-*.arrows"))
    paths[0].rename(paths[0].with_name(paths[0].name.replace("-1.arrows", "-2.arrows")))
    assert_alike(tmp_path / "hole", "checkers")


def test_an_engine_that_prunes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = Story(3, PRUNING)
    told.change(0, 1, 2)
    told.want(0, "g")
    told.want(1, "g")
    messages = [told.send(0, "g") for _ in range(4)]
    for message in messages:
        told.deliver(message, at=(0, 1))
    events: list[Event] = told.finished()
    write_history(tmp_path / "good", events, monkeypatch)
    assert_alike(tmp_path / "good", "columns")
    write_history(tmp_path / "bad", without_delivery(events, 1, messages[1]), monkeypatch)
    assert_alike(tmp_path / "bad", "checkers")


def _record(folder: Path, events: list[ClientEvent]) -> None:
    """As a program that has all the clients records it."""
    begin, recorder = now(), Recorder(folder, "program")
    for number, event in enumerate(events):
        if not isinstance(event, Healed | Ended | Calm):
            recorder.client(replace(event, at=Instant(begin + number)))
    recorder.close()
    append_cluster_event(folder, "settled", at=begin + wall_offset_ns() + SECOND)


def test_what_clients_recorded_is_judged_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = ClientStory("a", "b")
    told.join("g", "a")
    told.join("g", "b")
    messages = [told.send("a", "g") for _ in range(9)]
    for message in messages:
        told.get(message, "a", "b")
    events = told.finished()
    lost = next(event for event in events if isinstance(event, GotMessage) and event.message == messages[4])
    for name, clients in (("good", events), ("bad", [event for event in events if event is not lost])):
        folder = tmp_path / name
        write_history(folder, story().finished(), monkeypatch)
        monkeypatch.undo()
        _record(folder, clients)
        expected = check(folder)
        assert expected.is_valid == (name == "good")
        assert judge(str(folder)).verdicts == expected.verdicts
        parts = judge_large_folder(str(folder), in_turn, 100)
        assert [verdict.outcome for verdict in parts.verdicts] == [verdict.outcome for verdict in expected.verdicts]
        assert parts.client_events == expected.client_events == len(clients)
