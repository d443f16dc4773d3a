"""Programs that record what their clients and replicas see: files that survive, and one history of all of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ordercast.model.ids import Instant, Position, ProcessId
from ordercast.trace import live_writer, recording
from ordercast.trace.arrow import TraceError, evidence_table
from ordercast.trace.client_records import (
    Calm,
    ClientEvent,
    ClientId,
    Connected,
    Disconnected,
    End,
    GotMessage,
    KnownGroups,
    Sent,
)
from ordercast.trace.client_rows import CLIENTS
from ordercast.trace.cluster import append_cluster_event
from ordercast.trace.evidence_folder import history_in
from ordercast.trace.live_writer import wall_offset_ns
from ordercast.trace.recording import Recorder, now
from ordercast.trace.records import Ended, Healed, MessageId, Unrecorded
from ordercast.trace.replica_records import Called, ReplicaEnded, ReplicaEvent, ReplicaStarted
from ordercast.trace.replica_rows import REPLICAS
from ordercast.trace.tail import read_tail

ONE, TWO = ClientId(ProcessId(1), 1), ClientId(ProcessId(1), 2)
MESSAGE = MessageId(ProcessId(1), 1, 1)
STEP = 1_000_000


def sent(at: int) -> Sent:
    return Sent(Instant(at), ONE, MESSAGE, ("chat",), 4, 7)


def got(at: int, client: ClientId = TWO) -> GotMessage:
    return GotMessage(Instant(at), client, MESSAGE, "one@n1", ("chat",), 4, 7, Position(*([(1, 1), 1, 1])))  # type: ignore[arg-type]


def kinds(events: list[ClientEvent]) -> list[type]:
    return [type(event) for event in events]


def test_what_was_told_comes_back_with_times_of_the_wall_clock(tmp_path: Path) -> None:
    at = now()
    told: list[ClientEvent] = [Connected(at, ONE, "one@n1"), sent(at + 1), got(at + 2, ONE)]
    recorder = Recorder(tmp_path, "program")
    for event in told:
        recorder.client(event)
    recorder.close()
    append_cluster_event(tmp_path, "settled")
    *events, ended = history_in(tmp_path, CLIENTS)
    offset = wall_offset_ns()
    assert kinds(events) == kinds(told)
    assert all(abs(event.at - before.at - offset) < 1_000 * STEP for event, before in zip(events, told, strict=True))
    assert isinstance(ended, Ended) and ended.complete
    assert history_in(tmp_path, REPLICAS) == []
    assert [path.name.split("-")[0] for path in tmp_path.glob("*.arrows")] == ["clients"]
    assert not list(tmp_path.glob("*.tail"))


@pytest.mark.parametrize("written", [False, True])
def test_a_killed_program_has_ended_where_its_record_does(tmp_path: Path, written: bool) -> None:
    """Nothing is lost, be it in the stream already or in the tail alone, or in both."""
    recorder = Recorder(tmp_path, "program", survives_kill=True)
    at = now()
    recorder.replica(ReplicaStarted(at, 1 << 63, "r@n1", (), (), "counter", "count"))
    if written:
        recorder.replica(Called(Instant(at + recording.FLUSH_NS + 1), 1 << 63, 1, b"\xff\x00"))  # flushes
    recorder.replica(Called(Instant(at + recording.FLUSH_NS + 2), 1 << 63, 2, b""))
    recorder.client(Connected(at, ONE, "one@n1"))
    (tail,) = tmp_path.glob("clients-*.tail")
    with tail.open("ab") as file:
        file.write(b'{"n": 1, "kin')  # it was killed while it wrote
    append_cluster_event(tmp_path, "settled", at=(1 << 62))
    replicas: list[ReplicaEvent] = history_in(tmp_path, REPLICAS)
    calls = [event for event in replicas if isinstance(event, Called)]
    assert [(call.request, call.operation) for call in calls] == [*[(1, b"\xff\x00")][:written], (2, b"")]
    assert isinstance(replicas[-2], ReplicaEnded) and replicas[-2].life == 1 << 63
    clients = history_in(tmp_path, CLIENTS)
    assert isinstance(clients[1], Disconnected) and clients[1].how is End.CRASHED
    assert clients[-1] == Ended(clients[-2].at)
    recorder.close()


def test_without_a_tail_a_killed_program_cannot_be_judged(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, "program")
    recorder.client(Connected(now(), ONE, "one@n1"))
    events = history_in(tmp_path, CLIENTS)
    recorder.close()
    (gap,) = [event for event in events if isinstance(event, Unrecorded)]
    assert "the record of program has no end" in gap.why
    assert events[-1] == Ended(events[-2].at, complete=False)  # nobody said that the run was over


def test_programs_of_one_host_are_merged_by_their_clock(tmp_path: Path) -> None:
    at = now()
    first, second = Recorder(tmp_path, "first"), Recorder(tmp_path / "below", "second")
    first.client(Connected(at, ONE, "one@n1"))
    second.client(Connected(Instant(at + 1), TWO, "two@n1"))
    first.client(sent(at + 2))
    second.client(got(at + 3))
    for recorder in (first, second):
        recorder.close()
    events = history_in(tmp_path, CLIENTS)
    assert kinds(events) == [Connected, Connected, Sent, GotMessage, Ended]


def test_between_hosts_nothing_is_got_before_it_was_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = now()
    monkeypatch.setattr(recording, "_clock", lambda: "one")
    first = Recorder(tmp_path, "first")
    first.client(Connected(at, ONE, "one@n1"))
    monkeypatch.setattr(recording, "_clock", lambda: "two")
    second = Recorder(tmp_path, "second")
    second.client(Connected(at, TWO, "two@n1"))
    second.client(got(at + STEP))
    first.client(sent(at + 5_000 * STEP))
    for recorder in (first, second):
        recorder.close()
    events = history_in(tmp_path, CLIENTS)
    assert kinds(events)[2:] == [Sent, GotMessage, Ended]


def test_what_comes_after_the_end_is_left_out_but_for_last_words(tmp_path: Path) -> None:
    at = now()
    wall = at + wall_offset_ns()
    recorder = Recorder(tmp_path, "program")
    recorder.client(Connected(at, ONE, "one@n1"))
    recorder.client(KnownGroups(Instant(at + 9 * STEP), ONE.process, (("chat", ("one@n1",)),)))
    recorder.client(Disconnected(Instant(at + 99 * STEP), ONE, End.ORDERLY))
    recorder.close()
    for number, event in enumerate(("healed", "calm", "settled"), 1):
        append_cluster_event(tmp_path, event, at=wall + number * STEP)
    append_cluster_event(tmp_path, "ended", at=wall + 200 * STEP)
    events = history_in(tmp_path, CLIENTS)
    assert kinds(events) == [Connected, Healed, Calm, KnownGroups, Ended]
    assert events[-1] == Ended(events[-2].at)


def test_a_damaged_stream_is_named(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, "program", survives_kill=True)
    recorder.client(Connected(now(), ONE, "one@n1"))
    (tail,) = tmp_path.glob("*.tail")
    tail.write_bytes(b"nonsense\n")
    with pytest.raises(TraceError, match=f"{tail.name} is not a sound trace"):
        history_in(tmp_path, CLIENTS)
    recorder.close()


def test_a_writer_that_is_behind_removes_no_tail_before_its_events_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several batches wait. Whenever one is about to be written, its events are in a tail."""
    waiting: list[tuple[object, list[object], bool]] = []
    monkeypatch.setattr(
        live_writer._Writer, "give", lambda self, items, size, *, is_last: waiting.append((self, items, is_last))
    )
    recorder, at = Recorder(tmp_path, "program", survives_kill=True), now()
    for number in range(1, 6):
        recorder.replica(Called(Instant(at + 2 * number * recording.FLUSH_NS), 1 << 63, number, b""))
    tails: list[set[int]] = []

    def table(*arguments: Any) -> object:
        kept = [read_tail(path, REPLICAS) for path in tmp_path.glob("*.tail")]
        tails.append({event.request for events in kept for _, event in events if isinstance(event, Called)})
        return evidence_table(*arguments)

    monkeypatch.setattr(recording, "evidence_table", table)
    batches = [items for _, items, _ in waiting]
    assert len(batches) >= 4
    for writer, items, is_last in waiting:
        assert isinstance(writer, live_writer._Writer)
        writer._take(items, is_last)
    written = [{event.request for event in batch if isinstance(event, Called)} for batch in batches]
    assert len(tails) == len(written)
    assert all(batch <= kept for batch, kept in zip(written, tails, strict=True))
    assert all(not written[0] & kept for kept in tails[2:]), "nothing is kept for ever"
