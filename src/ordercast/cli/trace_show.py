"""`ordercast trace show`: the timeline of a recorded run, or what became of one message, drawn in space and time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.text import Text

from ordercast.checker.verdict import message_text
from ordercast.cli.drawing import draw_timeline, time_text
from ordercast.cli.terminal import output, write_json
from ordercast.cli.timeline import Entry, EntryKind, Timeline
from ordercast.model.errors import UsageError
from ordercast.model.ids import ProcessId, process_text
from ordercast.model.quantities import duration_from
from ordercast.trace.folder import read_live
from ordercast.trace.parquet import read_events
from ordercast.trace.records import DeliveredBatch, Event, Submitted

SENT, DELIVERED = "●", "▼"
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


def show(run: Path, message: str | None, around: str, as_json: bool) -> int:
    if not run.exists():
        raise UsageError(f"{run} is not there: name a run-….parquet, or a folder of live traces")
    events = list(read_live(run).events()) if run.is_dir() else read_events(run)
    around_ns = duration_from(around)
    timeline = Timeline(with_messages=True)
    for event in events:
        timeline.observe(event)
    if message is None:
        rows = [_row(entry) for entry in timeline.entries]
    else:
        rows = rows_around(events, timeline.entries, message, around_ns)
    if as_json:
        write_json({"message": message, "rows": [_document(row) for row in rows]})
    elif message is None:
        draw_timeline(output(), timeline.entries)
    else:
        processes = sorted({process for row in rows for process in row.processes})
        for line in picture(rows, processes):
            output().print(line, soft_wrap=True)
    return 0


def rows_around(events: Sequence[Event], entries: Iterable[Entry], message: str, around_ns: int) -> list[Row]:
    """What became of a message, and everything else from so long before it was sent to so long after the last process
    has delivered it."""
    own = list(_of_message(events, message))
    if not own:
        known = next((event.messages[0].message for event in events if isinstance(event, Submitted)), None)
        example = "" if known is None else f", such as {message_text(known)}"
        raise UsageError(f"there is no message {message!r} in this run: name one as witnesses do{example}")
    first, last = own[0].at - around_ns, own[-1].at + around_ns
    others = [_row(entry) for entry in entries if first <= entry.at <= last]
    return sorted([*own, *others], key=lambda row: row.at)


def _of_message(events: Iterable[Event], message: str) -> Iterable[Row]:
    for event in events:
        if isinstance(event, Submitted):
            if any(message_text(each.message) == message for each in event.messages):
                yield Row(event.at, SENT, [event.process], f"sends {message}", is_of_message=True)
        elif isinstance(event, DeliveredBatch):
            for each in event.messages:
                if each.message is not None and message_text(each.message) == message:
                    text = f"delivers {message} in view {event.configuration}, at {each.number}.{each.slot}"
                    yield Row(event.at, DELIVERED, [event.process], text, is_of_message=True)


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
