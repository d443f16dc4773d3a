"""`ordercast trace show`: the timeline of a recorded run, or what became of one message, drawn in space and time."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from rich.text import Text

from ordercast.checker.verdict import message_text
from ordercast.cli.drawing import draw_timeline, time_text
from ordercast.cli.terminal import output, write_json
from ordercast.cli.timeline import Entry, EntryKind, Timeline
from ordercast.model.configuration import ConfigurationKind
from ordercast.model.errors import UsageError
from ordercast.model.ids import (
    ConfigurationId,
    Incarnation,
    Instant,
    NodeId,
    ProcessId,
    node_of,
    process_id_from,
    process_text,
)
from ordercast.model.quantities import duration_from
from ordercast.trace.folder import read_live
from ordercast.trace.parquet import read_events
from ordercast.trace.records import Crashed, DeliveredBatch, Departed, Ended, Event, Installed, Started, Submitted

SENT, DELIVERED, MISSING = "●", "▼", "✗"
AROUND_NS = 20_000_000  # before and after a message, unless somebody asks for more or less
_LIFE = re.compile(r"\bn(\d+)'(\d+)")
_MARKS = {
    EntryKind.LIFE: "○",
    EntryKind.STATE: "·",
    EntryKind.VIEW: "◆",
    EntryKind.TRANSITIONAL: "◇",
    EntryKind.ALARM: "!",
    EntryKind.DELIVERED: "-",
}


@dataclass(slots=True)
class Row:
    """Something that happened at about the same time at some processes."""

    at: int
    mark: str
    processes: list[ProcessId]
    text: str
    is_of_message: bool = field(default=False)


class Lives:
    """How processes of live nodes are called here: by which life of their node it is, and not by the time it began."""

    def __init__(self, processes: Iterable[ProcessId]) -> None:
        self._called: dict[ProcessId, ProcessId] = {}
        lives: Counter[NodeId] = Counter()
        for process in sorted(set(processes)):
            node = node_of(process)
            lives[node] += 1
            self._called[process] = process_id_from(node, Incarnation(lives[node]))

    def called(self, process: ProcessId) -> ProcessId:
        return self._called.get(process, process)

    def text(self, text: str) -> str:
        return _LIFE.sub(self._short, text)

    def _short(self, found: re.Match[str]) -> str:
        try:
            process = process_id_from(NodeId(int(found[1])), Incarnation(int(found[2])))
        except ValueError:
            return found[0]  # somebody's words
        return process_text(self.called(process))


def show(run: Path, message: str | None, around: str | None, as_json: bool) -> int:
    if around is not None and message is None:
        raise UsageError("--around is for the time around one message: name it with --message")
    if not run.exists():
        raise UsageError(f"{run} is not there: name a run-….parquet, or a folder of live traces")
    if run.is_dir() and (runs := sorted(run.glob("run-*.parquet"))) and not any(run.rglob("live-*")):
        raise UsageError(f"{run} is a folder of runs: name one of them, such as {runs[0]}")
    is_live = run.is_dir()
    events = list(read_live(run).events()) if is_live else read_events(run)
    around_ns = AROUND_NS if around is None else duration_from(around)
    timeline = Timeline(with_messages=True, is_live=is_live)
    for event in events:
        timeline.observe(event)
    lives = Lives(_processes(events) if is_live else ())
    start = min((entry.at for entry in timeline.entries), default=0) if is_live else 0
    if message is None:
        rows = [_row(entry) for entry in timeline.entries]
    else:
        rows = rows_around(events, timeline.entries, message, around_ns, lives)
    if as_json:
        write_json({"message": message, "rows": [_document(row) for row in rows]})
    elif message is None:
        draw_timeline(output(), [_called(entry, lives, start) for entry in timeline.entries])
    else:
        rows = [_called(row, lives, start) for row in rows]
        processes = sorted({process for row in rows for process in row.processes})
        for line in picture(rows, processes):
            output().print(line, soft_wrap=True)
    return 0


def _processes(events: Iterable[Event]) -> Iterator[ProcessId]:
    for event in events:
        if isinstance(event, Installed):
            yield from event.configuration.members
        elif isinstance(process := getattr(event, "process", None), int):
            yield ProcessId(process)


EntryT = TypeVar("EntryT", Entry, Row)


def _called(one: EntryT, lives: Lives, start: int) -> EntryT:
    """Return it with the time since the run began, and lives by their numbers."""
    one.at, one.text = Instant(one.at - start), lives.text(one.text)
    one.processes = [lives.called(process) for process in one.processes]
    return one


def rows_around(
    events: Sequence[Event], entries: Iterable[Entry], message: str, around_ns: int, lives: Lives
) -> list[Row]:
    """What became of a message, also at those who never delivered it, and everything else from so long before it was
    sent to so long after that."""
    own = list(_of_message(events, message, lives))
    if not own:
        known = next((event.messages[0].message for event in events if isinstance(event, Submitted)), None)
        example = "" if known is None else f", such as {lives.text(message_text(known))}"
        raise UsageError(f"there is no message {message!r} in this run: name one as witnesses do{example}")
    own = sorted([*own, *_without(events, own, message)], key=lambda row: row.at)
    first, last = own[0].at - around_ns, own[-1].at + around_ns
    others = [_row(entry) for entry in entries if first <= entry.at <= last]
    return sorted([*own, *others], key=lambda row: row.at)


def _of_message(events: Iterable[Event], message: str, lives: Lives) -> Iterable[Row]:
    wanted = lives.text(message)
    for event in events:
        if isinstance(event, Submitted):
            if any(lives.text(message_text(each.message)) == wanted for each in event.messages):
                yield Row(event.at, SENT, [event.process], f"sends {message}", is_of_message=True)
        elif isinstance(event, DeliveredBatch):
            for each in event.messages:
                if each.message is not None and lives.text(message_text(each.message)) == wanted:
                    text = f"delivers {message} in view {event.configuration}, at {each.number}.{each.slot}"
                    yield Row(event.at, DELIVERED, [event.process], text, is_of_message=True)


def _without(events: Sequence[Event], own: Sequence[Row], message: str) -> Iterator[Row]:
    """Yield a row for each who was in a view in which the message was sent or delivered, and went on to another one
    without it, or had not delivered it when the record ended."""
    delivered = {process for row in own if row.mark == DELIVERED for process in row.processes}
    shared = _views_of(events, own)
    here: dict[ProcessId, ConfigurationId] = {}
    for event in events:
        if isinstance(event, Crashed | Departed):
            here.pop(event.process, None)
        if not isinstance(event, Installed) or event.configuration.kind is not ConfigurationKind.REGULAR:
            continue
        if here.get(event.process) in shared and event.process not in delivered:
            delivered.add(event.process)  # told once
            text = f"goes on to view {event.configuration.id} without having delivered {message}"
            yield Row(event.at, MISSING, [event.process], text, is_of_message=True)
        here[event.process] = event.configuration.id
    last = events[-1]
    if isinstance(last, Ended) and not any(isinstance(event, Started) and event.promises.prunes for event in events):
        waiting = sorted(process for process, view in here.items() if view in shared and process not in delivered)
        if waiting:
            yield Row(last.at, MISSING, waiting, f"has not delivered {message} by the end", is_of_message=True)


def _views_of(events: Iterable[Event], own: Sequence[Row]) -> set[ConfigurationId]:
    """Return the regular views in which processes were when they sent a message, or delivered it."""
    moments = {(row.at, process) for row in own for process in row.processes}
    here: dict[ProcessId, ConfigurationId] = {}
    found = set()
    for event in events:
        if isinstance(event, Installed) and event.configuration.kind is ConfigurationKind.REGULAR:
            here[event.process] = event.configuration.id
        elif isinstance(event, Submitted | DeliveredBatch) and (event.at, event.process) in moments:
            found |= {here[event.process]} if event.process in here else set()
    return found


def _row(entry: Entry) -> Row:
    return Row(entry.at, _MARKS.get(entry.kind, "✗"), list(entry.processes), entry.text)


def picture(rows: Sequence[Row], processes: Sequence[ProcessId]) -> Iterable[Text]:
    """Time goes down, each process has a column. Between a message's sending and its last delivery stands a line."""
    width = max((len(process_text(process)) for process in processes), default=1)
    yield Text("              ").append("  ".join(f"{process_text(process):^{width}}" for process in processes), "bold")
    own = [number for number, row in enumerate(rows) if row.is_of_message]
    for number, row in enumerate(rows):
        line = Text(f"{time_text(row.at)} ", "dim")
        is_under_way = bool(own) and own[0] < number < own[-1]
        for process in processes:
            mark = row.mark if process in row.processes else "│" if is_under_way else " "
            line.append(f"{mark:^{width}}  ", "bold" if row.is_of_message else "")
        yield line.append(row.text, "bold" if row.is_of_message else "dim")


def _document(row: Row) -> dict[str, Any]:
    return {"at_ns": row.at, "processes": [process_text(each) for each in row.processes], "text": row.text}
