"""Folders of live traces: what each life came to, what is missing, and what the checkers make of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ordercast.checker import Outcome
from ordercast.model.ids import Instant
from ordercast.model.promises import Promise
from ordercast.trace.arrow import TraceError
from ordercast.trace.cluster import CLUSTER_FILE, append_cluster_event, read_cluster_events
from ordercast.trace.folder import read_live, traces_in
from ordercast.trace.records import (
    UNSTAMPED,
    Crashed,
    DeliveredBatch,
    Ended,
    Event,
    Gap,
    Healed,
    MessageId,
    Submitted,
    Unrecorded,
)
from tests.unit.checker.histories import Story, process

from .live_traces import (
    BEGIN,
    KEPT,
    LATE,
    VIEW_PROMISES,
    files_of,
    killed,
    new_trace,
    outcomes_on,
    set_clocks,
    verdicts_on,
    write_history,
)

ABSENCE = (Promise.SELF_DELIVERY, Promise.SAFE_DELIVERY, Promise.LIVENESS)  # conclude from absence


@pytest.fixture(autouse=True)
def _clocks(monkeypatch: pytest.MonkeyPatch) -> None:
    set_clocks(monkeypatch)


def story() -> Story:
    """Three come together and talk."""
    story = Story(3)
    story.change(0, 1, 2)
    story.round(0, 1, 2, count=3)
    return story


Write = Callable[..., None]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    def _write(events: list[Event], **options: object) -> None:
        write_history(tmp_path, events, monkeypatch, **options)  # type: ignore[arg-type]

    return _write


def gaps_of(events: list[Event]) -> list[tuple[Gap, str]]:
    return [(event.gap, event.why) for event in events if isinstance(event, Unrecorded)]


def history_of(folder: Path) -> list[Event]:
    return list(read_live(folder).events())


# Ends


def test_who_is_recorded_past_the_end_was_running_then(write: Write, tmp_path: Path) -> None:
    write(story().finished())
    events = history_of(tmp_path)
    assert gaps_of(events) == []
    assert not any(isinstance(event, Crashed) for event in events)
    assert set(outcomes_on(events).values()) <= KEPT


def test_what_came_after_the_end_is_left_out(write: Write, tmp_path: Path) -> None:
    told = story()
    told.finished()
    told.leave(2)
    told.change(0, 1)
    write(told.events)
    assert set(outcomes_on(history_of(tmp_path)).values()) <= KEPT


def test_a_closed_trace_is_the_end_of_its_process(write: Write, tmp_path: Path) -> None:
    write(story().events, is_told=False)
    events = history_of(tmp_path)
    assert gaps_of(events) == []
    assert {event.process for event in events if isinstance(event, Crashed)} == {process(node) for node in range(3)}
    assert events[-1] == Ended(events[-1].at, complete=True)


def test_a_trace_without_an_end_leaves_open_what_rests_on_absence(write: Write, tmp_path: Path) -> None:
    write(story().finished())
    killed(files_of(tmp_path, process(1))[-1])
    verdicts = verdicts_on(history_of(tmp_path))
    for promise, verdict in verdicts.items():
        if promise in ABSENCE:
            assert verdict.outcome is Outcome.UNKNOWN
            assert "the trace of n1 has no end: is it still running, or was it killed?" in verdict.sentence
    assert {verdict.outcome for promise, verdict in verdicts.items() if promise not in ABSENCE} <= KEPT


@pytest.mark.parametrize("name", ["n1", "n1'1"])
def test_the_harness_may_say_that_it_was_killed(name: str, write: Write, tmp_path: Path) -> None:
    told = story()
    told.crash(1)
    told.change(0, 2)
    told.finished()
    write(told.events)
    path = tmp_path / CLUSTER_FILE
    path.write_text(path.read_text().replace("n1'1", name))
    events = history_of(tmp_path)
    assert gaps_of(events) == [(Gap.TAIL, "n1 was killed, and what it did last is not in its trace")]
    assert Crashed in map(type, events)
    assert set(outcomes_on(events).values()) <= KEPT


def test_a_later_life_proves_that_the_earlier_was_killed(write: Write, tmp_path: Path) -> None:
    told = story()
    told.crash(1)
    told.start(1)
    told.change(0, 1, 2)
    told.finished()
    write(told.events)
    path = tmp_path / CLUSTER_FILE
    path.write_text("".join(line for line in path.read_text().splitlines(keepends=True) if "crashed" not in line))
    events = history_of(tmp_path)
    assert [event.process for event in events if isinstance(event, Crashed)] == [process(1)]
    assert set(outcomes_on(events).values()) <= KEPT


def test_a_process_killed_after_the_end_without_having_recorded_past_it_is_in_doubt(
    write: Write, tmp_path: Path
) -> None:
    write(story().finished())
    killed(files_of(tmp_path, process(1))[-1])
    append_cluster_event(tmp_path, "crashed", process="n1")
    assert outcomes_on(history_of(tmp_path))[Promise.LIVENESS] is Outcome.UNKNOWN


# What a killed process had not written


def _without_last(events: list[Event], node: int) -> list[Event]:
    """The last submission of this node did not reach its disk, nor anything after it."""
    last = max(n for n, event in enumerate(events) if isinstance(event, Submitted) and event.process == process(node))
    return [
        event
        for n, event in enumerate(events)
        if n < last or isinstance(event, Crashed) or getattr(event, "process", None) != process(node)
    ]


def _killed_story() -> list[Event]:
    told = story()
    told.crash(1)
    told.change(0, 2)
    return _without_last(told.finished(), 1)


def test_what_a_killed_process_sent_last_is_in_doubt_and_nothing_else_is(write: Write, tmp_path: Path) -> None:
    write(_killed_story())
    verdicts = verdicts_on(history_of(tmp_path))
    assert verdicts[Promise.INTEGRITY].outcome is Outcome.UNKNOWN
    assert "the record of its submitter stops before it" in verdicts[Promise.INTEGRITY].sentence
    others = {verdict.outcome for promise, verdict in verdicts.items() if promise is not Promise.INTEGRITY}
    assert others <= KEPT


def test_its_journal_dispels_the_doubt(write: Write, tmp_path: Path) -> None:
    told = story()
    told.crash(1)
    told.change(0, 2)
    events = told.finished()
    known = _without_last(events, 1)
    write([event for event in known if getattr(event, "process", None) != process(1) or isinstance(event, Crashed)])
    trace = new_trace(tmp_path / "one", process(1))
    for event in events:
        if getattr(event, "process", None) == process(1) and event in known and not isinstance(event, Crashed):
            trace.record(event)
    trace.flush()
    lost = [event for event in events if isinstance(event, Submitted) and event not in known]
    trace.record(lost[0])
    (journal,) = (tmp_path / "one").glob("*.submitted")
    kept = journal.read_bytes()
    trace.close()
    killed(files_of(tmp_path / "one", process(1))[0])
    journal.write_bytes(kept)
    for path in files_of(tmp_path / "n1", process(1)):
        path.unlink()
    assert set(outcomes_on(history_of(tmp_path)).values()) <= KEPT


def test_but_all_must_deliver_it_alike(write: Write, tmp_path: Path) -> None:
    def altered(event: Event) -> Event:
        if isinstance(event, DeliveredBatch) and event.process == process(2):
            changed = tuple(d._replace(digest=1) if d.message == lost else d for d in event.messages)
            return DeliveredBatch(event.at, event.process, event.configuration, event.origin, changed)
        return event

    lost = MessageId(process(1), 0, 3)
    write([altered(event) for event in _killed_story()])
    verdict = verdicts_on(history_of(tmp_path))[Promise.INTEGRITY]
    assert verdict.outcome is Outcome.INVALID
    assert "with other bytes, size or service than elsewhere" in verdict.sentence


def test_what_nobody_submitted_is_invalid_also_of_a_killed_process(write: Write, tmp_path: Path) -> None:
    told = story()
    told.crash(1)
    told.change(0, 2)
    events = [
        event
        for event in told.finished()
        if not (isinstance(event, Submitted) and event.messages[0].message == MessageId(process(1), 0, 2))
    ]
    write(events)
    verdict = verdicts_on(history_of(tmp_path))[Promise.INTEGRITY]
    assert verdict.outcome is Outcome.INVALID and "never submitted" in verdict.sentence


# Files and processes that are not there


def _remove_first(folder: Path) -> None:
    files_of(folder, process(1))[0].unlink()


def _remove_second(folder: Path) -> None:
    files_of(folder, process(1))[1].unlink()


def _cut_first(folder: Path) -> None:
    path = files_of(folder, process(1))[0]
    path.write_bytes(path.read_bytes()[:-4])


def _swap_in_an_older(folder: Path) -> None:
    files = files_of(folder, process(1))
    data = files[1].read_bytes()
    files[1].unlink()
    files[2].rename(files[1])
    files[2].write_bytes(data)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (_remove_first, "file 1 of it is not there (files_max removes the oldest)"),
        (_remove_second, "file 2 of it is not there"),
        (_cut_first, "file 1 of it is cut off"),
        (_swap_in_an_older, "events"),
    ],
)
def test_with_a_hole_nothing_is_judged(
    damage: Callable[[Path], None], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = story().finished()
    write_history(tmp_path, [e for e in events if getattr(e, "process", None) != process(1)], monkeypatch)
    trace = new_trace(tmp_path / "n1", process(1), file_size_max=1)
    for event in events:
        if getattr(event, "process", None) == process(1):
            trace.record(event)
            trace.flush()
    trace.close()
    assert set(outcomes_on(history_of(tmp_path)).values()) <= KEPT
    damage(tmp_path)
    for verdict in verdicts_on(history_of(tmp_path)).values():
        assert verdict.outcome is Outcome.UNKNOWN
        assert "the trace of n1 has a hole: " in verdict.sentence
        assert words in verdict.sentence


def test_a_member_without_a_trace_is_named(write: Write, tmp_path: Path) -> None:
    write(story().finished())
    text = (tmp_path / CLUSTER_FILE).read_text()
    (tmp_path / CLUSTER_FILE).write_text(text.replace(', "n2\'1"', ""))
    for path in files_of(tmp_path, process(2)):
        path.unlink()
    verdicts = verdicts_on(history_of(tmp_path))
    for promise in ABSENCE:
        assert verdicts[promise].outcome is Outcome.UNKNOWN
        assert f"n2 is a member of views, but has no trace in {tmp_path}" in verdicts[promise].sentence
    assert verdicts[Promise.INTEGRITY].outcome is Outcome.UNKNOWN
    assert verdicts[Promise.VIEW_AGREEMENT].outcome is Outcome.VALID


# Messages without a stamp


def _unstamped(events: list[Event], node: int) -> list[Event]:
    """What this node sends carries no stamp, and it does not record messages."""
    result: list[Event] = []
    for event in events:
        if isinstance(event, DeliveredBatch):
            messages = tuple(
                d._replace(message=MessageId(process(node), 0, UNSTAMPED))
                if d.message is not None and d.message.process == process(node)
                else d
                for d in event.messages
            )
            result.append(DeliveredBatch(event.at, event.process, event.configuration, event.origin, messages))
        elif not (isinstance(event, Submitted) and event.process == process(node)):
            result.append(event)
    return result


def test_messages_of_a_node_without_a_trace_leave_all_about_messages_open(write: Write, tmp_path: Path) -> None:
    write(_unstamped(story().events, 2), is_told=False)
    for path in files_of(tmp_path, process(2)):
        path.unlink()
    for promise, verdict in verdicts_on(history_of(tmp_path)).items():
        if promise in VIEW_PROMISES:
            assert verdict.outcome in KEPT
        else:
            assert verdict.outcome is Outcome.UNKNOWN, verdict
            assert any("n2 does not record at level full" in witness.what for witness in verdict.witnesses)


def test_the_rest_is_judged_and_can_be_invalid(write: Write, tmp_path: Path) -> None:
    events = _unstamped(story().events, 2)
    twice = [event for event in events if isinstance(event, DeliveredBatch) and event.process == process(0)][-3]
    write([*events, twice], is_told=False)
    for path in files_of(tmp_path, process(2)):
        path.unlink()
    assert outcomes_on(history_of(tmp_path))[Promise.NO_DUPLICATES] is Outcome.INVALID


def test_a_lost_stamp_of_a_node_that_stamps_is_invalid(write: Write, tmp_path: Path) -> None:
    write(_unstamped(story().finished(), 2))
    verdict = verdicts_on(history_of(tmp_path))[Promise.INTEGRITY]
    assert verdict.outcome is Outcome.INVALID
    assert "100 bytes of n2 were delivered without its stamp" in verdict.sentence


def test_one_node_at_level_control_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events = _unstamped(story().finished(), 2)
    write_history(tmp_path, [e for e in events if getattr(e, "process", None) != process(2)], monkeypatch)
    mine: list[Event] = [event for event in events if getattr(event, "process", None) == process(2)]
    write_history(tmp_path, mine, monkeypatch, full=False)
    verdict = verdicts_on(history_of(tmp_path))[Promise.VIRTUAL_SYNCHRONY]
    assert verdict.outcome is Outcome.UNKNOWN
    assert verdict.sentence == "n2 was recorded at level control, without messages"


# Clocks


def test_a_delivery_waits_for_its_submission_whatever_the_clocks_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_history(tmp_path, story().finished(), monkeypatch, skews=(3_600 * 10**9, 0, 60 * 10**9))
    events = history_of(tmp_path)
    seen: set[MessageId] = set()
    for event in events:
        if isinstance(event, Submitted):
            seen.update(submission.message for submission in event.messages)
        elif isinstance(event, DeliveredBatch):
            assert {delivered.message for delivered in event.messages} <= seen
    assert set(outcomes_on(events).values()) <= KEPT


def test_a_delivery_before_its_own_submission_is_still_invalid(write: Write, tmp_path: Path) -> None:
    told = Story(1)
    sent = told.send(0)
    told.deliver(sent, at=(0,))
    told.events[-2:] = reversed(told.events[-2:])
    write(told.finished())
    verdict = verdicts_on(history_of(tmp_path))[Promise.INTEGRITY]
    assert verdict.outcome is Outcome.INVALID and "before it was submitted" in verdict.sentence


# cluster.jsonl


def test_cluster_events_come_back_and_a_torn_last_line_is_left_out(tmp_path: Path) -> None:
    append_cluster_event(tmp_path / "new", "healed", at=5)
    append_cluster_event(tmp_path / "new", "crashed", process="n2'5")
    with (tmp_path / "new" / CLUSTER_FILE).open("a") as file:
        file.write('{"event": "end')
    healed, crashed = read_cluster_events(tmp_path / "new")
    assert (healed.at, healed.processes, crashed.processes) == (5, None, ("n2'5",))
    assert read_cluster_events(tmp_path) == []


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("hello", "line 2 is not JSON"),
        ("[1]", "line 2: "),
        ('{"event": "exploded", "at": 1}', "exploded"),
        ('{"event": "ended"}', "at is missing"),
        ('{"event": "ended", "at": "soon"}', "at is not a number of nanoseconds"),
        ('{"event": "crashed", "at": 1}', "process is missing"),
        ('{"event": "crashed", "at": 1, "process": 3}', "a process is named by a string"),
        ('{"event": "saturated", "at": 1, "senders": [], "begins": 1}', "neither true nor false"),
        ('{"event": "crashed", "at": 1, "process": "n9"}', "speaks of n9, which has no trace in the folder"),
    ],
)
def test_a_line_that_says_nothing_is_named(line: str, words: str, write: Write, tmp_path: Path) -> None:
    write(story().events, is_told=False)
    (tmp_path / CLUSTER_FILE).write_text(f'{{"event": "healed", "at": 1}}\n{line}\n')
    with pytest.raises(TraceError) as caught:
        read_live(tmp_path)
    assert words in str(caught.value) and CLUSTER_FILE in str(caught.value)


def test_a_harness_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="process is missing"):
        append_cluster_event(tmp_path, "crashed")
    assert not (tmp_path / CLUSTER_FILE).exists()


def test_without_a_list_those_are_alive_who_run(write: Write, tmp_path: Path) -> None:
    told = story()
    told.crash(1)
    told.change(0, 2)
    write(told.finished())
    path = tmp_path / CLUSTER_FILE
    path.write_text(path.read_text().replace(', "alive": ["n0\'1", "n2\'1"]', ""))
    (healed,) = (event for event in history_of(tmp_path) if isinstance(event, Healed))
    assert healed.alive == (process(0), process(2))


# Folders


def test_folders_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="holds no traces"):
        traces_in(tmp_path)
    with pytest.raises(TraceError, match="there are no live traces"):
        read_live(tmp_path)
    new_trace(tmp_path / "below", process(0)).close()
    assert traces_in(tmp_path) == [tmp_path]
    with pytest.raises(TraceError, match="nothing was recorded in them yet"):
        read_live(tmp_path)
    with pytest.raises(TraceError, match="is the trace of one process alone"):
        traces_in(files_of(tmp_path, process(0))[0])


def test_the_same_part_twice_is_refused(write: Write, tmp_path: Path) -> None:
    write(story().events, is_told=False)
    (path, *_) = files_of(tmp_path, process(0))
    (tmp_path / path.name).write_bytes(path.read_bytes())
    with pytest.raises(TraceError, match="claim to be the same part"):
        read_live(tmp_path)


def test_times_are_those_of_the_wall_clock(write: Write, tmp_path: Path) -> None:
    write(story().events, is_told=False)
    events = history_of(tmp_path)
    assert events[0].at == BEGIN
    assert events[-1].at == Instant(BEGIN + LATE)
