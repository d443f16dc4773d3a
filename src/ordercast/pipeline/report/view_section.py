"""The sections on membership: who was in which view when, why views changed, and how long that took. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ordercast.model.configuration import ChangeReason
from ordercast.model.ids import ProcessId, node_of, process_text
from ordercast.pipeline.page.html import Block, Figure, PageTable, Section, Text
from ordercast.pipeline.page.plot import Plot, Series, Shape
from ordercast.pipeline.page.scales import Axis, number_text, time_text, unit_of
from ordercast.pipeline.page.strips import Stretch, Strips
from ordercast.pipeline.report.tables import Tables, featured_run
from ordercast.trace.columns import RowKind, unsigned

Row = dict[str, Any]
ViewId = tuple[int, int]
CHANGES_SHOWN = 40
DOTS_MAX = 3000
NODES_MAX = 64
ALONE_COLOUR = 7
LOG_ABOVE = 20


def reason_name(reason: int) -> str:
    return ChangeReason(reason).name.lower().replace("_", " ")


def _process(number: int) -> ProcessId:
    return ProcessId(unsigned(number))


class Names:
    """Names the processes of a run: `n1`, and `n1'2` for the second life that was seen of it. Live incarnations are
    long numbers, which nobody can tell apart."""

    def __init__(self, tables: Tables, run: int) -> None:
        self._names: dict[int, str] = {}
        lives: dict[int, int] = {}
        for row in tables.lives.to_pylist():  # sorted by process: a node's lives in the order in which they were lived
            if row["run"] == run:
                node = node_of(_process(row["process"]))
                lives[node] = lives.get(node, 0) + 1
                self._names[row["process"]] = f"n{node}" if lives[node] == 1 else f"n{node}'{lives[node]}"

    def text(self, processes: Sequence[int]) -> str:
        return ", ".join(self._names.get(process) or process_text(_process(process)) for process in processes)


# Who was where


def membership_section(tables: Tables) -> Section:
    title = "Membership"
    if not tables.timeline.num_rows:
        return Section(title, [Text("No view is in the traces.", is_missing=True)])
    strips = membership_strips(tables)
    changed = _shared_changes(tables)
    blocks: list[Block] = [
        Figure(strips, "A colour is a view that several share, brown one with nobody else; thin grey: between views.")
    ]
    mine = [row for row in changed if row["run"] == featured_run(tables.runs, tables.views)]
    if mine:
        blocks.append(_change_table(mine, Names(tables, mine[0]["run"])))
    lead = ""
    if len(tables.runs) > 1:
        run = featured_run(tables.runs, tables.views)
        lead = f"Of run {run}, which has the most view changes of {len(tables.runs):,} runs: who was in which view."
    return Section(title, blocks, lead)


def membership_strips(tables: Tables) -> Strips:
    rows = tables.timeline.to_pylist()
    run = rows[0]["run"]
    lives = {row["process"]: row for row in tables.lives.to_pylist() if row["run"] == run}
    end = next(row["duration_ns"] for row in tables.runs.to_pylist() if row["run"] == run)
    unit, unit_name = unit_of([end])
    colours, names = _colours(rows), Names(tables, run)
    nodes: dict[int, list[Stretch]] = {}
    for process, events in _by_process(rows):
        known_end = lives[process]["last_ns"] if process in lives else end
        stretches = nodes.setdefault(node_of(_process(process)), [])
        stretches += _stretches(events, known_end, unit, colours, names)
    shown = sorted(nodes)[:NODES_MAX]
    axis = Axis(f"time from the start, {unit_name}", low=0, high=end / unit)
    return Strips("Who was in which view", axis, [(f"n{node}", nodes[node]) for node in shown])


def _by_process(rows: list[Row]) -> Iterator[tuple[int, list[Row]]]:
    processes: dict[int, list[Row]] = {}
    for row in rows:
        processes.setdefault(row["process"], []).append(row)
    yield from processes.items()


def _colours(rows: list[Row]) -> dict[ViewId, int]:
    """One after the other, in the order in which views were installed; the same for those who are alone."""
    views = sorted((row["t"], _view(row), len(row["members"])) for row in rows if row["kind"] == RowKind.REGULAR_VIEW)
    colours: dict[ViewId, int] = {}
    shared = 0
    for _, view, size in views:
        if view not in colours:
            colours[view] = ALONE_COLOUR if size == 1 else shared % ALONE_COLOUR
            shared += size > 1
    return colours


def _view(row: Row) -> ViewId:
    return row["configuration_seq"], row["configuration_rep"]


def _stretches(events: list[Row], end: int, unit: float, colours: dict[ViewId, int], names: Names) -> Iterator[Stretch]:
    """Return the stretches of one life: in a view from its installation until it is left, between views until the
    next."""
    for event, after in zip(events, [*events[1:], None], strict=True):
        until = end if after is None else after["t"]
        span = event["t"] / unit, max(event["t"], until) / unit
        if event["kind"] == RowKind.REGULAR_VIEW:
            members = names.text(event["members"])
            count = len(event["members"])
            note = f"{members}; {reason_name(event['reason'])}; {time_text(until - event['t'])}"
            yield Stretch(*span, colours[_view(event)], f"{count} members" if count > 1 else "alone", note)
        elif event["kind"] in (RowKind.STARTED, RowKind.MOVED):
            yield Stretch(*span, None, note=f"between views for {time_text(until - event['t'])}")


def _shared_changes(tables: Tables) -> list[Row]:
    return [row for row in tables.views.to_pylist() if row["size"] > 1]


def _change_table(rows: list[Row], names: Names) -> PageTable:
    cells = []
    for row in rows[:CHANGES_SHOWN]:
        members = names.text(row["members"])
        place = f"{row['installed_by']} of {row['size']}"
        at = time_text(row["first_installed"])
        cells.append([at, members, reason_name(row["reason"]), place, time_text(row["duration_ns"])])
    columns = ("installed at", "members", "reason", "installed by", "took")
    caption = "" if len(rows) <= CHANGES_SHOWN else f"The first {CHANGES_SHOWN} of {len(rows):,} views."
    return PageTable(columns, cells, left=("reason",), wide=("members",), caption=caption)


# Why, and how long


def change_section(tables: Tables) -> Section:
    title = "View changes"
    changed = _shared_changes(tables)
    if not changed:
        return Section(title, [Text("No view that several processes share was installed.", is_missing=True)])
    lead = (
        "From the moment when the first process leaves its view to the moment when the last has installed the new one. "
        "Views of a process alone are left out."
    )
    return Section(title, [Figure(_duration_plot(changed), _dot_note(changed)), _reason_table(tables)], lead)


def _dot_note(changed: list[Row]) -> str:
    return f"{DOTS_MAX:,} of {len(changed):,} changes are drawn." if len(changed) > DOTS_MAX else "A dot is one change."


def _duration_plot(changed: list[Row]) -> Plot:
    reasons = sorted({row["reason"] for row in changed})
    step = max(1, -(-len(changed) // DOTS_MAX))
    drawn = changed[::step]
    unit, name = unit_of([row["duration_ns"] for row in drawn])
    series = []
    for place, reason in enumerate(reasons):
        mine = [row for row in drawn if row["reason"] == reason]
        points = [
            (place + _aside(number, len(mine)), max(1, row["duration_ns"]) / unit) for number, row in enumerate(mine)
        ]
        notes = [f"run {row['run']}, {row['size']} members, {time_text(row['duration_ns'])}" for row in mine]
        series.append(Series("", points, Shape.DOTS, place % ALONE_COLOUR, notes=notes))
    found = [row["duration_ns"] for row in drawn if row["duration_ns"] > 0]
    is_log = bool(found) and max(found) / min(found) > LOG_ABOVE
    y = Axis(f"duration, {name}", is_log=is_log, low=None if is_log else 0)
    x = Axis("why the old view ended", names=[reason_name(reason) for reason in reasons])
    return Plot("How long a view change takes", x, y, series, width=1060, height=300)


def _aside(number: int, count: int) -> float:
    """Dots of one reason lie beside each other, the same way every time."""
    if count == 1:
        return 0.0
    width = min(0.7, 0.03 * count)
    return width * ((number * 0.618034) % 1 - 0.5)


def _reason_table(tables: Tables) -> PageTable:
    rows = sorted((row for row in tables.view_reasons.to_pylist() if not row["alone"]), key=lambda row: -row["count"])
    cells = []
    for row in rows:
        half, ninety, high, _ = row["percentiles"]
        times = (half, ninety, high, row["max_ns"], row["mean_ns"])
        cells.append([ChangeReason(row["reason"]).text, number_text(row["count"]), *map(time_text, times)])
    columns = ("reason", "changes", "median", "90 %", "99 %", "longest", "mean")
    return PageTable(columns, cells, left=("reason",))
