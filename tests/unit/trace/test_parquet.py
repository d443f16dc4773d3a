"""What is written is read back exactly, or an error says why not; nothing is ever half written."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings

from ordercast.model.errors import UsageError
from ordercast.model.ids import Instant
from ordercast.sim.run import simulate
from ordercast.sim.swarm import hostile_options
from ordercast.trace.arrow import TraceError
from ordercast.trace.client_records import Calm, ClientEvent
from ordercast.trace.client_rows import CLIENTS
from ordercast.trace.columns import COLUMNS, RowKind
from ordercast.trace.parquet import RunInfo, evidence_path, read_info, read_run, run_path, runs_in, write_run
from ordercast.trace.records import Ended, Event
from ordercast.trace.replica_records import ReplicaEvent
from ordercast.trace.replica_rows import REPLICAS
from ordercast.trace.runs import RUN_COLUMNS
from tests.property_sizes import scaled

from .event_strategies import CLIENT_HISTORIES, HISTORIES, REPLICA_HISTORIES

INFO = RunInfo(7, 7, {"nodes": 3, "services": ["agreed"]}, "ordercast sim --seed 7", "abc")


@pytest.fixture(scope="module")
def history() -> list[Event]:
    return simulate(hostile_options(2), 2, keep_events=True).events


@settings(max_examples=scaled(60), deadline=None)
@given(HISTORIES)
def test_any_history_comes_back_as_it_was(events: list[Event]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = write_run(Path(folder), INFO, events)
        run = read_run(path)
    assert run.events == events
    assert run.info == INFO


@settings(max_examples=scaled(60), deadline=None)
@given(CLIENT_HISTORIES, REPLICA_HISTORIES)
def test_what_clients_and_replicas_saw_comes_back_as_it_was(
    clients: list[ClientEvent], replicas: list[ReplicaEvent]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        run = read_run(write_run(Path(folder), INFO, [], clients, replicas))
    assert (run.clients, run.replicas) == (clients, replicas)
    assert run.info.evidence == [*["clients"][: len(clients)], *["replicas"][: len(replicas)]]


def test_evidence_that_is_missing_or_of_another_run_is_refused(tmp_path: Path) -> None:
    clients: list[ClientEvent] = [Calm(Instant(1)), Ended(Instant(2))]
    path = write_run(tmp_path, INFO, [], clients)
    other = write_run(tmp_path, replace(INFO, run=8), [], clients)
    evidence_path(other, CLIENTS).replace(evidence_path(path, CLIENTS))
    with pytest.raises(TraceError, match="not of the same run"):
        read_run(path)
    evidence_path(path, CLIENTS).unlink()
    with pytest.raises(TraceError, match=r"clients-7.parquet cannot be read"):
        read_run(path)


def test_a_simulated_history_comes_back_as_it_was(history: list[Event], tmp_path: Path) -> None:
    assert read_run(write_run(tmp_path, INFO, history)).events == history


def test_rows_are_sorted_by_process_and_each_process_keeps_its_order(history: list[Event], tmp_path: Path) -> None:
    rows = pq.read_table(write_run(tmp_path, INFO, history)).select(["process", "idx", "n"]).to_pylist()
    places = [(row["process"], row["idx"]) for row in rows]
    assert places == sorted(places)
    assert len(set(places)) == len(places)
    assert all(
        earlier["n"] <= later["n"] for earlier, later in pairwise(rows) if earlier["process"] == later["process"]
    )


def test_spark_can_read_the_types_and_numbers_are_kept_as_differences(history: list[Event], tmp_path: Path) -> None:
    metadata = pq.read_metadata(write_run(tmp_path, INFO, history))
    types = {str(field.type) for field in metadata.schema.to_arrow_schema()}
    assert types <= {
        "int8",
        "int16",
        "int32",
        "int64",
        "bool",
        "string",
        "list<element: int64>",
        "list<element: string>",
    }
    group = metadata.row_group(0)
    chunks = {group.column(n).path_in_schema: group.column(n) for n in range(group.num_columns)}
    assert all(chunk.compression == "ZSTD" for chunk in chunks.values())
    for name in ("run", "process", "idx", "n", "t", "number", "counter", "size"):
        assert "DELTA_BINARY_PACKED" in chunks[name].encodings


def test_the_same_run_may_be_recorded_again_but_no_other_in_its_place(tmp_path: Path) -> None:
    write_run(tmp_path, INFO, [])
    write_run(tmp_path, INFO, [Ended(Instant(1))])
    assert len(read_run(run_path(tmp_path, 7)).events) == 1
    with pytest.raises(TraceError, match="holds another run"):
        write_run(tmp_path, RunInfo(7, 7, {"nodes": 4}), [])
    assert len(read_run(run_path(tmp_path, 7)).events) == 1


@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), pa.ArrowInvalid("broken"), KeyboardInterrupt()]
)
def test_a_failure_while_writing_leaves_what_was_there(
    error: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_run(tmp_path, INFO, [Ended(Instant(1))])

    def half(table: object, file: Any, **_: object) -> None:
        file.write(b"PAR1 and then nothing")
        raise error

    monkeypatch.setattr(pq, "write_table", half)
    with pytest.raises(KeyboardInterrupt if isinstance(error, KeyboardInterrupt) else TraceError):
        write_run(tmp_path, INFO, [])
    assert [path.name for path in tmp_path.iterdir()] == ["run-7.parquet"]
    assert read_run(run_path(tmp_path, 7)).events == [Ended(Instant(1))]


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _text(path: Path) -> None:
    path.write_text("hello")


def _foreign(path: Path) -> None:
    pq.write_table(pa.table({"a": [1]}), path)


def _older(path: Path) -> None:
    table = pq.read_table(path)
    pq.write_table(table.replace_schema_metadata({**table.schema.metadata, b"ordercast.format": b"1"}), path)


def _without_column(path: Path) -> None:
    pq.write_table(pq.read_table(path).drop_columns(["number"]), path)


def _without_row(path: Path) -> None:
    pq.write_table(pq.read_table(path).slice(1), path)


def _unknown_kind(path: Path) -> None:
    table = pq.read_table(path)
    kinds = pa.array([99] * len(table), pa.int8())
    pq.write_table(table.set_column(list(COLUMNS).index("kind"), "kind", kinds), path)


def _damaged_page(path: Path) -> None:
    data = bytearray(path.read_bytes())
    chunk = pq.read_metadata(path).row_group(0).column(list(COLUMNS).index("digest"))
    data[chunk.data_page_offset + chunk.total_compressed_size // 2] ^= 0xFF
    path.write_bytes(bytes(data))


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (_cut, "cut short or not a Parquet file"),
        (_empty, "cut short or not a Parquet file"),
        (_text, "cut short or not a Parquet file"),
        (_foreign, "not a trace of Ordercast"),
        (_older, "has trace format 1, this Ordercast reads format 2"),
        (_without_column, "column number is missing"),
        (_without_row, "events are missing"),
        (_unknown_kind, "99"),
        (_damaged_page, "cannot be read"),
    ],
)
def test_an_unreadable_file_is_named_with_the_reason(
    damage: Callable[[Path], None], words: str, history: list[Event], tmp_path: Path
) -> None:
    path = write_run(tmp_path, INFO, history)
    damage(path)
    with pytest.raises(TraceError) as caught:
        read_run(path)
    assert words in str(caught.value)
    assert str(path) in str(caught.value)
    assert isinstance(caught.value, UsageError)


def test_folders_without_traces_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="no folder"):
        runs_in(tmp_path / "missing")
    with pytest.raises(TraceError, match=r"holds no traces .*: record one with --trace of `ordercast sim`, `up` or"):
        runs_in(tmp_path)
    with pytest.raises(TraceError, match="cannot be read"):
        read_info(tmp_path / "run-1.parquet")


def test_runs_are_listed_by_number_and_unfinished_ones_are_not(tmp_path: Path) -> None:
    for number in (10, 2, 1):
        write_run(tmp_path, RunInfo(number), [])
    (tmp_path / ".run-3.parquet.1.unfinished").write_bytes(b"")
    assert [path.name for path in runs_in(tmp_path)] == ["run-1.parquet", "run-2.parquet", "run-10.parquet"]


def test_every_column_and_kind_is_in_the_reference() -> None:
    text = (Path(__file__).parents[3] / "docs/reference/trace-records.md").read_text()
    lists = {"processes": "list of int64", "names": "list of string", "numbers": "list of uint32"}
    tables = (COLUMNS, RUN_COLUMNS, CLIENTS.columns, REPLICAS.columns)
    for name, column in (named for table in tables for named in table.items()):
        shown = lists.get(column.type, column.type)
        assert f"| `{name}` | {shown} | {column.meaning} |" in text
    for kind in RowKind:
        assert f"| {int(kind)} | {kind.name.lower().replace('_', ' ')} |" in text
