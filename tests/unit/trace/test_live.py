"""What a live node records is read back exactly, whatever becomes of the node, its files and its disk."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Event as Signal
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from ordercast.model.effects import Deliver
from ordercast.model.ids import SECOND, ConfigurationId, Incarnation, Instant, NodeId, process_id_from
from ordercast.model.notes import Occurred, Occurrence, Visited
from ordercast.model.promises import Promise, Promises
from ordercast.model.service import Service
from ordercast.trace import live_columns, live_file, live_writer
from ordercast.trace.arrow import TraceError
from ordercast.trace.columns import RowKind
from ordercast.trace.digests import digest
from ordercast.trace.folder import read_live
from ordercast.trace.live import LiveTrace
from ordercast.trace.live_columns import Gathered
from ordercast.trace.live_file import is_finished, read_batches, read_info, whole_batches
from ordercast.trace.live_stamp import live_stamped
from ordercast.trace.records import (
    STAMPED,
    UNKNOWN,
    UNSTAMPED,
    Crashed,
    DeliveredBatch,
    DeliveredMessage,
    Departed,
    Ended,
    Event,
    Gap,
    MessageId,
    Noted,
    Started,
    Submitted,
    SubmittedMessage,
    Unrecorded,
    Wanted,
    message_id_of,
)

from .live_traces import BEGIN, LATE, ends_of_batches, files_of, killed, new_trace, set_clocks

ME = process_id_from(NodeId(1), Incarnation(5))
OTHER = process_id_from(NodeId(2), Incarnation(6))
RING = ConfigurationId(4, ME)
PROMISES = Promises("story", frozenset(Promise), frozenset(Service), 1 << 24)
STARTED = Started(Instant(1), ME, PROMISES)
MANY_COUNT = 20_000  # messages: more than a mebibyte of records
MANY = Deliver(RING, RING, [(1, ME, [STAMPED] * MANY_COUNT, bytes(MANY_COUNT), [bytes(30)] * MANY_COUNT, 1, 0)])


@pytest.fixture(autouse=True)
def _clocks(monkeypatch: pytest.MonkeyPatch) -> None:
    set_clocks(monkeypatch)


def _stamped(message: MessageId, data: bytes) -> bytes:
    return live_stamped(message.process, message.sender, message.counter, [data])[0]


def visited(at: int) -> Noted:
    return Noted(Instant(at), ME, Visited(RING, at, at, at, at, 1, 0, 0))


def told(folder: Path) -> list[Event]:
    """What the folder says, at the monotonic times of the recorder, without gaps and the end."""
    events: list[Event] = [event for event in read_live(folder).events() if not isinstance(event, Unrecorded | Ended)]
    for event in events:
        object.__setattr__(event, "at", event.at - BEGIN)
    return events


def rows_in(folder: Path) -> int:
    return sum(batch.num_rows for path in files_of(folder, ME) for batch in read_batches(path))


# Quiet times


def idle(at_s: float) -> Noted:
    """A visit on which nothing was done."""
    return Noted(Instant(int(at_s * SECOND)), ME, Visited(RING, 1, 1, 1, 1, 0, 0, 0))


def test_notes_of_a_quiet_ring_are_few_batches_and_none_is_lost(tmp_path: Path) -> None:
    trace = new_trace(tmp_path, ME)
    trace.record(STARTED)
    notes = [idle(10 + tenth / 10) for tenth in range(1000)]  # a hundred seconds
    for note in notes:
        trace.record(note)
        trace.flush()
    trace.close()
    (path,) = files_of(tmp_path, ME)
    assert len(list(whole_batches(path))) < 25
    assert told(tmp_path)[1:] == [*notes, Crashed(Instant(LATE), ME)]


def test_what_is_judged_is_handed_over_at_once_with_the_notes_before_it(tmp_path: Path) -> None:
    trace = new_trace(tmp_path, ME)
    trace.record(STARTED)
    trace.record(idle(10))
    trace.flush()
    trace.record(Departed(Instant(11 * SECOND), ME))
    trace.flush()
    trace.close()
    (path,) = files_of(tmp_path, ME)
    assert [len(batch) for batch in whole_batches(path)] == [1, 2, 1]


def test_the_evidence_is_everything_but_the_notes_which_are_counted(tmp_path: Path) -> None:
    trace = new_trace(tmp_path, ME)
    events: list[Event] = [STARTED, idle(10), visited(11 * SECOND), Departed(Instant(12 * SECOND), ME)]
    for event in events:
        trace.record(event)
    trace.close()
    run, notes = read_live(tmp_path), list[int]()
    evidence = list(run.evidence(notes.append))
    assert evidence == [event for event in run.events() if not isinstance(event, Noted)]
    assert sum(notes) == 2


# Levels and columns


def test_messages_are_recorded_from_the_bytes_that_were_delivered(tmp_path: Path) -> None:
    trace = new_trace(tmp_path, ME)
    mine, lie = _stamped(MessageId(ME, 3, 1), b"a"), _stamped(MessageId(OTHER, 0, 9), b"bb")
    zero = _stamped(MessageId(ME, 3, 0), b"")
    payloads = [mine, lie, b"short", zero, b"no stamp at all, but long enough"]
    senders = [3 | STAMPED, 1 | STAMPED, STAMPED, STAMPED, 7]
    trace.record(STARTED)
    trace.submitted(Instant(2), 3, 1, 4, [mine])
    trace.submitted(Instant(2), 3, 2, 4, [])
    last = [(4, ME, [3 | STAMPED], [4], [mine], 1, 0), (5, ME, [], [], [], 1, 0)]
    deliver = Deliver(RING, RING, [(1, OTHER, senders, [4, 5, 0, 1, 2], payloads, 2, 512), *last])
    trace.delivered(Instant(3), deliver, 100)
    trace.delivered(Instant(4), Deliver(RING, RING, []), 0)
    trace.record(Departed(Instant(5), ME))
    trace.close()
    identities = [
        MessageId(ME, 3, 1),
        MessageId(OTHER, 0, 9),
        None,
        None,
        MessageId(OTHER, 7, UNSTAMPED),
        MessageId(ME, 3, 1),
    ]
    delivered = [
        DeliveredMessage(identity, digest(data), service, len(data), seq, slot)
        for identity, (seq, slot, _, _, service, data) in zip(identities, deliver.messages(), strict=True)
    ]
    assert told(tmp_path) == [
        STARTED,
        Submitted(Instant(2), ME, (SubmittedMessage(MessageId(ME, 3, 1), digest(mine), 4, len(mine)),)),
        Submitted(Instant(2), ME, ()),
        DeliveredBatch(Instant(3), ME, RING, RING, tuple(delivered)),
        DeliveredBatch(Instant(4), ME, RING, RING, ()),
        Departed(Instant(5), ME),
    ]
    assert trace.error is None


def test_a_stamp_without_a_counter_is_no_stamp() -> None:
    assert message_id_of(bytes(40)) is None


def test_level_control_leaves_out_messages_and_visits(tmp_path: Path) -> None:
    trace = new_trace(tmp_path, ME, full=False)
    occurred = Noted(Instant(2), ME, Occurred(Occurrence.TOKEN_RESTED))
    trace.record(STARTED)
    trace.record(visited(1))
    trace.record(Submitted(Instant(1), ME, ()))
    trace.submitted(Instant(1), 0, 1, 4, [_stamped(MessageId(ME, 0, 1), b"")])
    trace.delivered(Instant(1), Deliver(RING, RING, [(1, ME, [0], [4], [b"x"], 1, 0)]), 1)
    trace.record(occurred)
    trace.record(Departed(Instant(5), ME))
    trace.close()
    assert told(tmp_path) == [STARTED, occurred, Departed(Instant(5), ME)]
    (path,) = files_of(tmp_path, ME)
    info = read_info(path)
    assert info is not None
    assert (info.name, info.process, info.level, info.number, info.wall_offset_ns) == ("n1", ME, "control", 1, BEGIN)
    assert path.name == "live-n1-5-1.arrows"


# Files that are cut off


def _three_batches(folder: Path) -> Path:
    trace = new_trace(folder, ME)
    trace.record(STARTED)
    for at in range(2, 6):
        trace.record(visited(at))
        trace.flush()
    trace.record(Departed(Instant(6), ME))
    trace.close()
    return files_of(folder, ME)[0]


def test_a_file_cut_anywhere_gives_back_its_whole_batches(tmp_path: Path) -> None:
    path = _three_batches(tmp_path)
    data, ends = path.read_bytes(), ends_of_batches(path)
    counts = [batch.num_rows for batch in whole_batches(path)]
    assert is_finished(path) and ends[-1] + 8 == len(data)
    for size in [
        *range(0, len(data), 97),
        *ends,
        *(end + 1 for end in ends),
        *(end - 1 for end in ends),
        len(data) - 1,
    ]:
        path.write_bytes(data[:size])
        whole = sum(end <= size for end in ends)
        assert [batch.num_rows for batch in whole_batches(path)] == counts[: max(0, whole - 1)], size
        assert (read_info(path) is None) == (whole == 0)
        assert not is_finished(path)


def test_a_process_killed_while_writing_leaves_what_it_had_flushed(tmp_path: Path) -> None:
    script = f"""
import os, signal, time
from pathlib import Path
from ordercast.model.ids import Instant, ConfigurationId
from ordercast.model.notes import Visited
from ordercast.model.promises import Promises
from ordercast.trace.live import LiveTrace
from ordercast.trace.records import Noted, Started
trace = LiveTrace(Path({str(tmp_path)!r}), "n1", {ME}, full=True, file_size_max=20_000, files_max=0)
trace.record(Started(Instant(0), {ME}, Promises("story", frozenset(), frozenset(), 1)))
for at in range(1, 100_000):
    trace.record(Noted(Instant(at), {ME}, Visited(ConfigurationId(4, {ME}), at, at, at, at, 1, 0, 0)))
    trace.submitted(Instant(at), 7, at, 4, [b"x" * 30])
    if at % 50 == 0:
        trace.flush()
    if len(list(Path({str(tmp_path)!r}).iterdir())) > 3:
        os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", script], check=False, timeout=60)
    assert done.returncode == -9
    rounds = [
        event.note.round for event in told(tmp_path) if isinstance(event, Noted) and isinstance(event.note, Visited)
    ]
    assert len(rounds) > 50 and rounds == list(range(1, len(rounds) + 1))
    sent = [event.messages[0].message.counter for event in told(tmp_path) if isinstance(event, Submitted)]
    assert sent == list(range(1, len(sent) + 1)) and len(sent) > len(rounds)  # the journal has what no batch has


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda data: b"hello, this is no stream at all", "is no Arrow stream"),
        (lambda data: data.replace(b"ordercast.live", b"ordercast.dead"), "not a trace of Ordercast"),
        (lambda data: data.replace(b'"level"', b'"devil"'), "damaged description"),
    ],
)
def test_what_is_no_trace_is_named(damage: Callable[[bytes], bytes], words: str, tmp_path: Path) -> None:
    path = _three_batches(tmp_path)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(TraceError, match=words) as caught:
        read_live(tmp_path)
    assert str(path) in str(caught.value)


# The journal


def test_submissions_after_the_last_batch_are_in_the_journal(tmp_path: Path) -> None:
    trace = new_trace(tmp_path, ME)
    trace.record(STARTED)
    payloads = {counter: _stamped(MessageId(ME, 3, counter), bytes(counter)) for counter in range(1, 6)}
    trace.submitted(Instant(2), 3, 1, 5, [payloads[1], payloads[2]])
    trace.flush()
    trace.submitted(Instant(3), 3, 3, 5, [payloads[3], payloads[4]])
    trace.record(
        Submitted(Instant(4), ME, (SubmittedMessage(MessageId(ME, 3, 5), digest(payloads[5]), 5, len(payloads[5])),))
    )
    (journal,) = tmp_path.glob("*.submitted")
    kept = journal.read_bytes()
    trace.close()
    assert not journal.exists()
    killed(files_of(tmp_path, ME)[0])
    journal.write_bytes(kept)
    submitted = [message for event in told(tmp_path) if isinstance(event, Submitted) for message in event.messages]
    assert submitted == [
        SubmittedMessage(MessageId(ME, 3, counter), digest(data), 5, len(data)) for counter, data in payloads.items()
    ]
    for size in range(0, len(kept), len(kept) // 9):  # whatever is left of it, nothing is made up
        journal.write_bytes(kept[:size])
        found = [message for event in told(tmp_path) if isinstance(event, Submitted) for message in event.messages]
        assert found == submitted[: len(found)] and len(found) >= 2


def test_destinations_are_kept_and_of_a_killed_process_it_is_known_that_they_are_lost(tmp_path: Path) -> None:
    """Whom a message is for does not fit in the journal: then nobody may be blamed for lacking it."""
    trace = new_trace(tmp_path, ME)
    trace.record(STARTED)
    first, second, third = (_stamped(MessageId(ME, 3, counter), b"") for counter in (1, 2, 3))
    trace.submitted(Instant(2), 3, 1, 5, [first], ("g", "@n2"))
    trace.record(Wanted(Instant(2), ME, ("g",), True))
    trace.flush()
    trace.submitted(Instant(3), 3, 2, 5, [second], ("g",))
    trace.submitted(Instant(3), 3, 3, 5, [third])
    (journal,) = tmp_path.glob("*.submitted")
    kept = journal.read_bytes()
    trace.close()
    assert _destinations(tmp_path) == [("g", "@n2"), ("g",), ()]
    assert Wanted(Instant(2), ME, ("g",), True) in told(tmp_path)
    killed(files_of(tmp_path, ME)[0])
    journal.write_bytes(kept)
    assert _destinations(tmp_path) == [("g", "@n2"), UNKNOWN, ()]


def _destinations(folder: Path) -> list[tuple[str, ...]]:
    return [event.destinations for event in told(folder) if isinstance(event, Submitted)]


def test_a_journal_that_was_overrun_is_not_used(tmp_path: Path) -> None:
    trace = new_trace(tmp_path, ME)
    trace.record(STARTED)
    data = _stamped(MessageId(ME, 3, 1), b"")
    trace.submitted(Instant(2), 3, 1, 5, [data] * 69_999)
    (journal,) = tmp_path.glob("*.submitted")
    kept = journal.read_bytes()
    trace.close()
    killed(files_of(tmp_path, ME)[0])
    journal.write_bytes(kept)
    assert told(tmp_path) == [STARTED]


# Rotation


def test_files_rotate_and_nothing_is_lost(tmp_path: Path) -> None:
    trace = new_trace(tmp_path, ME, file_size_max=30_000)
    trace.record(STARTED)
    for at in range(2, 60):
        trace.record(visited(at))
        trace.flush()
    trace.record(Departed(Instant(60), ME))
    trace.close()
    paths = files_of(tmp_path, ME)
    assert len(paths) > 3 and all(is_finished(path) for path in paths)
    infos = [read_info(path) for path in paths]
    assert [info.number for info in infos if info is not None] == list(range(1, len(paths) + 1))
    assert told(tmp_path) == [STARTED, *(visited(at) for at in range(2, 60)), Departed(Instant(60), ME)]


def test_the_oldest_files_of_the_node_are_removed_those_of_others_stay(tmp_path: Path) -> None:
    earlier, other = process_id_from(NodeId(1), Incarnation(4)), OTHER
    for process in (earlier, other):
        new_trace(tmp_path, process).close()
    trace = new_trace(tmp_path, ME, file_size_max=1, files_max=3)
    trace.record(STARTED)
    for at in range(2, 8):
        trace.record(visited(at))
        trace.flush()
    trace.close()
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["live-n1-5-6.arrows", "live-n1-5-7.arrows", "live-n1-5-8.arrows", "live-n2-6-1.arrows"]


# What goes wrong


def test_a_folder_that_cannot_be_used_is_refused_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(TraceError, match=r"file/below: Not a directory; check its permissions or choose another"):
        new_trace(tmp_path / "file" / "below", ME)
    with pytest.raises(TraceError, match=r"file is not a folder: choose another folder"):
        new_trace(tmp_path / "file", ME)
    new_trace(tmp_path, ME).close()
    with pytest.raises(TraceError, match=r"has a trace of node 'n1' of this very start"):
        new_trace(tmp_path, ME)
    with pytest.raises(TraceError, match=r"the name must fit a file name"):
        LiveTrace(tmp_path, "a/b", ME, full=True, file_size_max=1, files_max=0)


def test_a_full_disk_ends_the_recording_and_not_the_node(tmp_path: Path) -> None:
    script = f"""
import resource, time
from pathlib import Path
from ordercast.model.ids import Instant, ConfigurationId
from ordercast.model.notes import Visited
from ordercast.model.promises import Promises
from ordercast.trace.live import LiveTrace
from ordercast.trace.records import Noted, Started
trace = LiveTrace(Path({str(tmp_path)!r}), "n1", {ME}, full=True, file_size_max=1_000_000, files_max=0)
resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))
trace.record(Started(Instant(0), {ME}, Promises("story", frozenset(), frozenset(), 1)))
for at in range(1, 1000):
    trace.record(Noted(Instant(at), {ME}, Visited(ConfigurationId(4, {ME}), at, at, at, at, 1, 0, 0)))
    if at % 50 == 0:
        trace.flush()
trace.close()
print(trace.error)
"""
    done = subprocess.run([sys.executable, "-c", script], check=True, timeout=60, capture_output=True, text=True)
    assert done.stdout == (
        f"the trace in {tmp_path} cannot be written to: File too large; "
        "the recording has ended: make room or choose another folder\n"
    )
    notes = [event for event in told(tmp_path) if isinstance(event, Noted)]
    assert 50 <= len(notes) < 999 and len(notes) % 50 == 0
    assert not is_finished(files_of(tmp_path, ME)[0])
    said = "the trace of n1'5 was given up by its writer, whose disk did not keep up or was full"
    assert read_live(tmp_path).gaps() == [said]


def test_who_began_again_after_a_full_disk_is_not_taken_for_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It went on, and left without its own message: nobody knows, so nobody says that it kept its promises."""
    trace, message = new_trace(tmp_path, ME), MessageId(ME, 0, 1)
    trace.record(STARTED)
    trace.flush()
    trace.record(Submitted(Instant(3), ME, (SubmittedMessage(message, 1, Service.AGREED, 8),)))
    right = live_writer.Files.write

    def full(self: live_writer.Files, batch: pa.RecordBatch) -> None:
        if int(RowKind.SUBMITTED) in batch["kind"].to_pylist():
            raise OSError(28, "No space left on device")
        right(self, batch)

    monkeypatch.setattr(live_writer.Files, "write", full)
    trace.close()
    again = process_id_from(NodeId(1), Incarnation(6))
    later = new_trace(tmp_path, again)
    later.record(Started(Instant(9), again, PROMISES))
    later.close()
    events = list(read_live(tmp_path).events())
    assert not any(isinstance(event, Crashed) and event.process == ME for event in events)
    gaps = [(event.process, event.gap) for event in events if isinstance(event, Unrecorded)]
    assert (ME, Gap.END) in gaps


def test_what_comes_while_it_is_read_is_left_for_the_next_time(tmp_path: Path) -> None:
    trace = new_trace(tmp_path, ME)
    trace.record(STARTED)
    trace.flush()
    trace.record(
        Submitted(Instant(3), ME, (SubmittedMessage(MessageId(ME, 0, 1), 1, Service.AGREED, 8),)),
    )
    trace.flush()
    trace.record(visited(5))
    (journal,), (path,) = tmp_path.glob("*.submitted"), files_of(tmp_path, ME)
    kept = journal.read_bytes()
    trace.close()
    whole = path.read_bytes()
    path.write_bytes(whole[: ends_of_batches(path)[1]])
    journal.write_bytes(kept)
    run = read_live(tmp_path)
    path.write_bytes(whole)  # what was in the journal alone is in the file now
    for events in (list(run.events()), list(read_live(tmp_path).events())):
        assert sum(isinstance(event, Submitted) for event in events) == 1


def test_a_fault_in_the_writer_ends_the_recording_and_not_the_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = new_trace(tmp_path, ME)
    monkeypatch.setattr(live_columns, "table_from", lambda *_: 1 / 0)
    trace.record(STARTED)
    trace.close()
    assert trace.error is not None and "ZeroDivisionError" in trace.error


def test_a_writer_too_far_behind_ends_the_recording_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = Signal()
    right: Any = Gathered.add

    def slow(self: Gathered, items: Any) -> None:
        assert go_on.wait(60)
        right(self, items)

    monkeypatch.setattr(Gathered, "add", slow)
    monkeypatch.setattr(live_writer, "BEHIND_SIZE_MAX", 8 << 20)
    trace = new_trace(tmp_path, ME)
    trace.record(STARTED)
    for at in range(2, 20):
        trace.delivered(Instant(at), MANY, 30 * MANY_COUNT)
    assert trace.error is not None and "too slow for the trace, over 8 MiB wait" in trace.error
    trace.record(visited(30))  # ignored
    go_on.set()
    trace.close()
    events = list(read_live(tmp_path).events())
    assert 6 <= sum(isinstance(event, DeliveredBatch) for event in events) <= 8
    assert not any(isinstance(event, Noted) for event in events)
    gaps = [event.why for event in events if isinstance(event, Unrecorded)]
    assert gaps == ["the trace of n1'5 was given up by its writer, whose disk did not keep up or was full"]
    assert events[-1] == Ended(events[-1].at, complete=False)


def test_much_is_handed_over_without_being_asked(tmp_path: Path) -> None:
    trace = new_trace(tmp_path, ME)
    trace.record(STARTED)
    for at in range(2, 6):
        trace.delivered(Instant(at), MANY, 30 * MANY_COUNT)
    assert trace.waiting_size > 1 << 20
    trace.close()
    (path,) = files_of(tmp_path, ME)
    assert [batch.num_rows for batch in whole_batches(path)] == [1, 4 * MANY_COUNT + 1]


def test_a_killed_process_ends_where_its_file_does(tmp_path: Path) -> None:
    path = _three_batches(tmp_path)
    killed(path)
    killed_events = told(tmp_path)
    assert killed_events == [STARTED, *(visited(at) for at in range(2, 6))]


def test_batches_are_compressed(tmp_path: Path) -> None:
    path = _three_batches(tmp_path)
    assert b"\x28\xb5\x2f\xfd" in path.read_bytes()  # the magic of zstd
    assert isinstance(next(read_batches(path)), pa.RecordBatch)
    assert rows_in(tmp_path) == 7


def test_a_file_of_another_format_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_file, "RUNS_VERSION", 4)
    _three_batches(tmp_path)
    monkeypatch.undo()
    with pytest.raises(TraceError, match="has trace format 4, this Ordercast reads format 2 and 3"):
        read_live(tmp_path)


def test_a_process_that_does_not_run_between_two_looks_at_the_clocks_is_not_wrong_by_that_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, offset, pauses = [1000], 5_000_000, [0, 7_000_000, 0, 0, 0, 9_000_000]  # before the first readings

    def monotonic() -> int:
        clock[0] += 10 + (pauses.pop(0) if pauses else 0)
        return clock[0]

    def wall() -> int:
        return monotonic() + offset

    monkeypatch.setattr(live_writer, "time", SimpleNamespace(monotonic_ns=monotonic, time_ns=wall))
    assert live_writer.wall_offset_ns() == offset
