"""The judges of `ordercast verify`, without Spark: runs of the simulator, and traces that are not whole.

Every history of the checkers' own tests goes through the same comparison: see `tests/unit/checker/conftest.py`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

pytest.importorskip("numpy")

from bench.long_traces import Shape, long_run

from ordercast.checker import Outcome, combined
from ordercast.model.configuration import ChangeReason
from ordercast.model.ids import ConfigurationId
from ordercast.model.notes import (
    Distributed,
    Evidence,
    Ignored,
    Marked,
    Moved,
    NetworkState,
    NetworkTurned,
    Note,
    Occurred,
    Occurrence,
    Opened,
    PacketDropped,
    Release,
    TokenReleased,
    Visited,
)
from ordercast.model.promises import Promise
from ordercast.order.ring.promised import PROMISED as RING_PROMISES
from ordercast.pipeline.verify.job import _judge_large
from ordercast.pipeline.verify.judging import judge
from ordercast.sim.run import simulate
from ordercast.sim.swarm import SATURATED_FIRST, hostile_options
from ordercast.trace.columns import RowKind
from ordercast.trace.folder import compact, read_live
from ordercast.trace.note_rows import NOTE_ROWS
from ordercast.trace.parquet import RunInfo, read_run, write_run
from ordercast.trace.records import Ended, Event, Noted
from tests.unit.checker.histories import Story, process, without_delivery
from tests.unit.pipeline.agreement import assert_agreement, in_turn, reference
from tests.unit.trace.live_traces import write_history


def story() -> Story:
    told = Story(3)
    told.change(0, 1, 2)
    told.round(0, 1, 2, count=20)
    told.change(0, 1)
    told.round(0, 1, count=5)
    told.crash(2)
    return told


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """A valid run on disk."""
    return write_run(tmp_path, RunInfo(1), story().finished())


def outcome(path: Path) -> Outcome:
    """By both judges, who agree."""
    one, parts = judge(str(path)), _judge_large(str(path), in_turn, 20)
    assert combined(one.verdicts).outcome is combined(parts.verdicts).outcome
    return combined(one.verdicts).outcome


def rewritten(path: Path, change: Callable[[pa.Table], pa.Table]) -> Path:
    pq.write_table(change(pq.read_table(path, partitioning=None)), path)
    return path


@pytest.mark.parametrize("seed", [1, 2, 3, SATURATED_FIRST])
def test_a_hostile_run_is_cleared_and_has_the_same_verdicts(seed: int, tmp_path: Path) -> None:
    events = simulate(hostile_options(seed), seed, keep_events=True).events
    judged = judge(str(write_run(tmp_path, RunInfo(seed), events)))
    assert judged.how == "columns"
    assert judged.verdicts == reference(events)
    assert_agreement(events)


def test_a_fault_has_the_checkers_own_witnesses(tmp_path: Path) -> None:
    told = story()
    broken = without_delivery(told.finished(), 1, next(iter(told.submissions)))
    path = write_run(tmp_path, RunInfo(1), broken)
    judged = judge(str(path))
    assert judged.how == "checkers"
    assert judged.verdicts == reference(broken)
    assert outcome(path) is Outcome.INVALID


def test_a_valid_run_is_valid_in_parts(trace: Path) -> None:
    assert outcome(trace) is Outcome.VALID


def test_a_file_that_was_cut_is_unknown(trace: Path) -> None:
    trace.write_bytes(trace.read_bytes()[:-200])
    judged = judge(str(trace))
    assert {verdict.outcome for verdict in judged.verdicts} == {Outcome.UNKNOWN}
    assert "cut short" in judged.verdicts[0].sentence
    assert outcome(trace) is Outcome.UNKNOWN


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda table: table.slice(0, len(table) - 3), id="last rows"),
        pytest.param(lambda table: table.slice(3), id="first rows"),
        pytest.param(lambda table: pa.concat_tables([table.slice(0, 30), table.slice(31)]), id="a row"),
        pytest.param(lambda table: pa.concat_tables([table, table.slice(20, 10)]), id="rows twice"),
        pytest.param(lambda table: table.filter(pc.not_equal(table["process"], table["process"][-1])), id="a process"),
        pytest.param(lambda table: pa.concat_tables([table, table]), id="two runs in one file"),
        pytest.param(lambda table: table.slice(0, 0), id="all"),
    ],
)
def test_a_trace_that_lacks_something_is_unknown(trace: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    assert outcome(rewritten(trace, change)) is Outcome.UNKNOWN


def test_a_record_that_was_cut_short_is_unknown(tmp_path: Path) -> None:
    told = story()
    events: list[Event] = [*told.events, Ended(told.now, complete=False)]
    assert outcome(write_run(tmp_path, RunInfo(1), events)) is Outcome.UNKNOWN
    assert outcome(write_run(tmp_path, RunInfo(1), told.events)) is Outcome.UNKNOWN


def test_a_folder_of_live_traces_is_one_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_history(tmp_path, simulate(hostile_options(2), 2, keep_events=True).events, monkeypatch)
    judged = judge(str(tmp_path))
    assert judged.verdicts == reference(list(read_live(tmp_path).events()))
    compacted = judge(str(compact(read_live(tmp_path), tmp_path / "runs")))
    assert compacted.how == "columns"
    assert compacted.verdicts == judged.verdicts


NOTES: dict[RowKind, Note] = {
    RowKind.MOVED: Moved("Operational", "Gather", ChangeReason.MERGE, "because"),
    RowKind.VISITED: Visited(ConfigurationId(16, process(0)), 1, 2, 3, 4, 5, 6, 7),
    RowKind.IGNORED: Ignored("Join", "old"),
    RowKind.DROPPED: PacketDropped("malformed"),
    RowKind.OCCURRED: Occurred(Occurrence.MERGE_HELD, 2, process(1)),
    RowKind.NETWORK_TURNED: NetworkTurned(1, NetworkState.FAULTY, Evidence.TOKENS, process(1), "fewer"),
    RowKind.DISTRIBUTED: Distributed(ConfigurationId(16, process(0)), 3, 800, process(1), (3, 1)),
    RowKind.MARKED: Marked(ConfigurationId(16, process(0)), 9, 8, 7, 6, 5),
    RowKind.TOKEN_RELEASED: TokenReleased(ConfigurationId(16, process(0)), 9, 8, Release.ALL, 3),
    RowKind.OPENED: Opened(ConfigurationId(16, process(0)), 4, ("a", "b")),
}


def test_notes_of_every_kind_are_passed_over_by_every_judge(tmp_path: Path) -> None:
    """Kinds come from one table: a judge that lists them by hand calls a trace unsound when there is a new one."""
    assert set(NOTES) == set(NOTE_ROWS) and {type(note) for note in NOTES.values()} == set(Note.__args__)
    events = story().finished()
    for at, note in enumerate(NOTES.values()):
        events.insert(8 + 3 * at, Noted(events[8].at, process(at % 2), note))
    path = write_run(tmp_path, RunInfo(1), events)
    assert read_run(path).events == events
    one = judge(str(path))
    assert (one.how, one.verdicts) == ("columns", reference(events))
    assert_agreement(events)
    assert outcome(path) is Outcome.VALID


def test_notes_of_every_kind_do_not_hide_what_is_wrong(tmp_path: Path) -> None:
    told = story()
    broken = without_delivery(told.finished(), 1, next(iter(told.submissions)))
    for at, note in enumerate(NOTES.values()):
        broken.insert(8 + 3 * at, Noted(broken[8].at, process(at % 2), note))
    assert outcome(write_run(tmp_path, RunInfo(1), broken)) is Outcome.INVALID


def test_another_file_is_unknown(tmp_path: Path) -> None:
    path = tmp_path / "run-1.parquet"
    pq.write_table(pa.table({"a": [1]}), path)
    assert outcome(path) is Outcome.UNKNOWN


def test_the_long_run_of_the_benchmark_is_valid(tmp_path: Path) -> None:
    path = tmp_path / "run-1.parquet"
    assert long_run(path, Shape(batch=3, rounds=10, rings=3)) == pq.read_metadata(path).num_rows
    judged = judge(str(path))
    assert judged.how == "columns"
    expected = dict.fromkeys(RING_PROMISES, Outcome.VALID) | {Promise.FAIRNESS: Outcome.NOT_EXERCISED}
    assert {verdict.promise: verdict.outcome for verdict in judged.verdicts} == expected
    assert outcome(path) is Outcome.VALID
