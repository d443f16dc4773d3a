"""One process of a live trace: its files in order, what they hold, and what they lack.

The files are read twice: `survey_of` looks at whole columns to learn how the life ended and what is missing,
`events_of` gives the events, with wall-clock times. Neither holds more than one batch. Whoever wants columns alone
reads them once, with the survey (`surveyed`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from ordercast.model.ids import Instant, ProcessId, node_of, process_text
from ordercast.trace.arrow import TraceError, reason_of, rows_of
from ordercast.trace.columns import RowKind
from ordercast.trace.from_rows import events_from
from ordercast.trace.journal import submissions_after, was_given_up
from ordercast.trace.live_file import FULL, is_finished, journal_path, read_batches, read_info, whole_batches
from ordercast.trace.merge import START, Stream
from ordercast.trace.note_rows import NOTE_ROWS
from ordercast.trace.records import Ended, Event, Submitted

_LEFT_OUT = pa.array([int(kind) for kind in NOTE_ROWS if kind is not RowKind.OPENED], pa.int8())  # that judges trees
_VIEWS = (int(RowKind.REGULAR_VIEW), int(RowKind.TRANSITIONAL_VIEW))


@dataclass(slots=True)
class LiveLife:
    """What is known of a process without having read its events one by one. Times are those of the wall clock."""

    name: str
    process: ProcessId
    is_full: bool
    files: list[tuple[Path, int]]  # each with the offset of its wall clock
    digest: str  # which digest its messages have
    missing: str | None = None  # what of its middle is not there
    started_at: int | None = None  # None: it never came so far as to record anything
    last_at: int = 0
    has_departed: bool = False
    is_ended: bool | None = None  # the writer's last word: closed (True), given up (False), none
    members: set[ProcessId] = field(default_factory=set)  # of its views
    submitted: dict[Stream, int] = field(default_factory=dict)
    submitted_count: int = 0
    rescued: list[Submitted] = field(default_factory=list)  # submissions that are in its journal alone
    surveyed_n: int = 0  # so many events were there; a process that runs writes on

    @property
    def text(self) -> str:
        """`n2`, or `n2 (berlin)` when that is its name."""
        text = process_text(self.process)
        return text if self.name == f"n{node_of(self.process)}" else f"{text} ({self.name})"


def survey_of(paths: dict[int, Path]) -> LiveLife | None:
    """Survey the files of one process, by number. None when not one of them came so far as to say whose it is."""
    life = life_of(paths)
    for _ in () if life is None else surveyed(life, whole_batches):
        pass
    return life


def surveyed(
    life: LiveLife, read: Callable[[Path], Iterator[pa.RecordBatch]] = read_batches
) -> Iterator[tuple[pa.RecordBatch, int]]:
    """Every batch with the offset of its clock; the life is surveyed when all have been read."""
    n = 0
    for path, offset in life.files:
        for batch in read(path):
            n = _survey_batch(life, batch, offset, n)
            yield batch, offset
    life.surveyed_n = n
    _rescue(life)


def _as_surveyed(
    life: LiveLife, read: Callable[[Path], Iterator[pa.RecordBatch]]
) -> Iterator[tuple[Path, pa.RecordBatch, int]]:
    """Give the rows that the survey saw, in batches, each with its file and the offset of its clock."""
    for path, offset in life.files:
        for batch in read(path):
            if pc.max(batch["n"]).as_py() >= life.surveyed_n:
                batch = batch.filter(pc.less(batch["n"], life.surveyed_n))
            if batch.num_rows:
                yield path, batch, offset


def life_of(paths: dict[int, Path]) -> LiveLife | None:
    """The life before its survey."""
    numbers = sorted(paths)
    infos = {number: info for number in numbers if (info := read_info(paths[number])) is not None}
    if not infos:
        return None
    info = next(iter(infos.values()))
    for other in infos.values():
        if (other.process, other.name, other.level) != (info.process, info.name, info.level):
            raise TraceError(f"{paths[other.number]} is of another process than its name says: remove it")
    files = [(paths[number], known.wall_offset_ns) for number, known in infos.items()]
    life = LiveLife(info.name, info.process, info.level == FULL, files, info.digest)
    life.missing = _missing_file(paths, numbers)
    return life


def _rescue(life: LiveLife) -> None:
    """What its journal has beyond its files, if it was killed."""
    path, offset = life.files[-1]
    journal = journal_path(path.parent, life.name, life.process)
    if was_given_up(journal):
        life.is_ended = False
    for found in submissions_after(journal, life.process, life.submitted_count):
        life.rescued.append(replace(found, at=Instant(found.at + offset)))
        life.last_at = max(life.last_at, life.rescued[-1].at)
        _, sender, counter = found.messages[0].message
        life.submitted[life.process, sender] = counter


def _missing_file(paths: dict[int, Path], numbers: list[int]) -> str | None:
    for expected, number in enumerate(numbers, 1):
        if number != expected:
            return f"file {expected} of it is not there (files_max removes the oldest)"
    for number in numbers[:-1]:
        if not is_finished(paths[number]):
            return f"file {number} of it is cut off"
    return None


def _survey_batch(life: LiveLife, batch: pa.RecordBatch, offset: int, n: int) -> int:
    """Returns the number that the next event must have."""
    kinds = set(batch["kind"].unique().to_pylist())
    first, last = pc.min_max(batch["n"]).as_py().values()
    if first != n and life.missing is None:
        life.missing = f"events {n} to {first - 1} of it are not there"
    times = pc.min_max(batch["t"]).as_py()
    if RowKind.STARTED in kinds:
        life.started_at = times["min"] + offset
        life.submitted[life.process, START] = 1
    life.last_at = max(life.last_at, times["max"] + offset)
    life.has_departed |= RowKind.DEPARTED in kinds
    if RowKind.ENDED in kinds:
        life.is_ended = batch.filter(pc.equal(batch["kind"], int(RowKind.ENDED)))["flag"][0].as_py()
    if kinds.intersection(_VIEWS):
        views = batch.filter(pc.is_in(batch["kind"], pa.array(_VIEWS, pa.int8())))
        life.members.update(map(ProcessId, pc.unique(pc.list_flatten(views["members"])).to_pylist()))
    if RowKind.SUBMITTED in kinds:
        _survey_submitted(life, pa.table(batch.filter(pc.equal(batch["kind"], int(RowKind.SUBMITTED)))))
    return int(last) + 1


def _survey_submitted(life: LiveLife, table: pa.Table) -> None:
    life.submitted_count += len(table) - table["digest"].null_count
    highest = table.select(["sender", "counter"]).group_by("sender").aggregate([("counter", "max")])
    for sender, counter in zip(highest["sender"].to_pylist(), highest["counter_max"].to_pylist(), strict=True):
        if sender is not None:
            stream = (life.process, sender)
            life.submitted[stream] = max(counter, life.submitted.get(stream, 0))


def events_of(life: LiveLife) -> Iterator[Event]:
    """In its own order. The end of the writer's work is no event of the cluster and is left out."""
    for path, batch, offset in _as_surveyed(life, read_batches):
        for event in _events_from(path, batch, offset):
            if not isinstance(event, Ended):
                yield event
    yield from life.rescued


def evidence_of(life: LiveLife, until: int, count: Callable[[int], None]) -> Iterator[Event]:
    """Give the events by which something is judged. Notes explain, and a quiet day has nothing but notes: they are
    looked at as columns, and `count` is told how many were left out up to the end of the run."""
    for path, batch, offset in _as_surveyed(life, whole_batches):
        is_note = pc.is_in(batch["kind"], value_set=_LEFT_OUT)
        count(pc.sum(pc.and_(is_note, pc.less_equal(batch["t"], until - offset))).as_py() or 0)
        if pc.all(is_note).as_py():
            continue
        first, last = pc.min_max(batch["n"]).as_py().values()
        if last - first + 1 != pc.count_distinct(batch["n"]).as_py():
            raise _unsound(path, ValueError("events are missing or numbered twice"))
        for event in _events_from(path, batch.filter(pc.invert(is_note)), offset, is_whole=False):
            if not isinstance(event, Ended):
                yield event
    yield from life.rescued


def _events_from(path: Path, batch: pa.RecordBatch, offset: int, *, is_whole: bool = True) -> list[Event]:
    try:
        times = pc.add(batch["t"], pa.scalar(offset, pa.int64()))
        table = pa.table(batch).set_column(batch.schema.get_field_index("t"), "t", times)
        return events_from(rows_of(table), pc.min(batch["n"]).as_py() if is_whole else None)
    except (ValueError, KeyError, TypeError, AttributeError, pa.ArrowException) as error:
        raise _unsound(path, error) from error


def _unsound(path: Path, error: Exception) -> TraceError:
    return TraceError(f"{path} is not a sound trace ({reason_of(error)}): remove it, then it counts as missing")
