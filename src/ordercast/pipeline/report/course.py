"""The sections over time: throughput, token rotation, retransmissions, flow control. Pure.

Several runs lie over each other, each from its own start: what is counted is divided by the runs that lasted so long.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ordercast.pipeline.page.html import Block, Figure, Section, Side, Table, Text
from ordercast.pipeline.page.plot import Mark, Plot, Point, Series, Shape
from ordercast.pipeline.page.scales import Axis, number_text, time_text, unit_of
from ordercast.pipeline.report.tables import Tables
from ordercast.pipeline.report.token import BACKLOG, ORDERED, ROTATION
from ordercast.trace.parquet import RunInfo

Row = dict[str, Any]
MARKS_MAX = 40  # more view changes than this would hide the data
LOG_ABOVE = 20  # a spread of this factor needs a logarithmic axis
NO_VISITS = "No visit of the token is in the traces: record live nodes at trace level full to see this."


class Course:
    """What all plots over time share: the axis, the runs that are there, the marks of view changes."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        durations = tables.runs["duration_ns"].to_pylist()
        self.longest: int = max(durations)
        self.unit, self.unit_name = unit_of([self.longest])
        self.count = 1 + self.longest // tables.bucket_ns
        self.runs = [sum(1 for duration in durations if duration >= n * tables.bucket_ns) for n in range(self.count)]

    @property
    def axis(self) -> Axis:
        what = "time from the start" if len(self.tables.runs) == 1 else "time from the start of each run"
        return Axis(f"{what}, {self.unit_name}", low=0, high=self.longest / self.unit)

    @property
    def marks(self) -> list[Mark]:
        """View changes, of a single run."""
        changed = [row for row in self.tables.views.to_pylist() if row["size"] > 1]
        if len(self.tables.runs) > 1 or len(changed) > MARKS_MAX:
            return []
        return [Mark(row["first_installed"] / self.unit, note=f"view of {row['size']}") for row in changed]

    def points(self, value: Callable[[int], float | None]) -> list[Point | None]:
        """One per stretch of time, in its middle; None where there is no value."""
        result: list[Point | None] = []
        for n in range(self.count):
            found = value(n)
            at = min((n + 0.5) * self.tables.bucket_ns, float(self.longest)) / self.unit
            result.append(None if found is None else (at, found))
        return result

    def rate(self, counts: Mapping[int, float], n: int) -> float:
        """Per second, of the mean run. The last stretch is shorter than the others."""
        end = min((n + 1) * self.tables.bucket_ns, self.longest)
        seconds: float = max(1, end - n * self.tables.bucket_ns) / 1e9
        return counts.get(n, 0) / max(1, self.runs[n]) / seconds


# Throughput


def throughput_section(tables: Tables) -> Section:
    rows = tables.throughput.to_pylist()
    if not rows:
        return Section("Throughput", [Text("No message is in the traces: there is no throughput to show.", True)])
    course = Course(tables)
    names = ("submitted", "delivered", "submitted_bytes", "delivered_bytes")
    sums = {name: _summed(rows, name) for name in names}
    processes = {row["bucket"]: row["deliverers"] for row in tables.deliverers.to_pylist()}
    unit = 1e6 if max(sums["delivered_bytes"].values(), default=0) / tables.bucket_ns * 1e9 >= 1e6 else 1e3
    unit_name = "MB/s" if unit == 1e6 else "kB/s"

    def delivered(name: str, n: int) -> float:
        """At the mean process."""
        per_run = processes.get(n, 0) / max(1, course.runs[n])
        return course.rate(sums[name], n) / per_run if per_run else 0.0

    messages = [
        Series("submitted, all together", course.points(lambda n: course.rate(sums["submitted"], n)), colour=1),
        Series("delivered, each process", course.points(lambda n: delivered("delivered", n)), colour=0),
    ]
    carried = [
        Series(
            "submitted, all together", course.points(lambda n: course.rate(sums["submitted_bytes"], n) / unit), colour=1
        ),
        Series("delivered, each process", course.points(lambda n: delivered("delivered_bytes", n) / unit), colour=0),
    ]
    lead = (
        "What was handed to the ring, by all processes together, and what came out of it at the mean process that "
        f"delivered anything; per {time_text(tables.bucket_ns)}."
    )
    plots = [
        Plot("Messages", course.axis, Axis("messages/s", low=0), messages, course.marks, width=560),
        Plot("Bytes", course.axis, Axis(unit_name, low=0), carried, course.marks, width=560),
    ]
    return Section("Throughput", [Side([Figure(plot, _marked(course)) for plot in plots])], lead)


def _marked(course: Course) -> str:
    return "Dotted lines are new views." if course.marks else ""


def _summed(rows: Sequence[Row], name: str) -> dict[int, float]:
    """Over the services, by stretch of time."""
    result: dict[int, float] = {}
    for row in rows:
        result[row["bucket"]] = result.get(row["bucket"], 0) + row[name]
    return result


# The token


def token_rows(tables: Tables) -> tuple[dict[int, Row], Row | None]:
    """By stretch of time, and of all of it."""
    rows = tables.token.to_pylist()
    total = next((row for row in rows if row["bucket"] is None and row["visits"]), None)
    return {row["bucket"]: row for row in rows if row["bucket"] is not None}, total


def rotation_section(tables: Tables) -> Section:
    rows, total = token_rows(tables)
    if total is None or not total[f"{ROTATION}_count"]:
        return Section("Token rotation", [Text(NO_VISITS, is_missing=True)])
    spread = [row[f"{ROTATION}_percentiles"] for row in rows.values() if row[f"{ROTATION}_count"]]
    unit, name = unit_of([one[2] for one in spread])
    plot = _spread_plot(Course(tables), rows, ROTATION, "Time of a rotation", f"rotation, {name}", unit)
    half, ninety, high, most = total[f"{ROTATION}_percentiles"]
    lead = (
        f"{total['visits']:,} visits of the token. A rotation took {time_text(half)} in the median, "
        f"{time_text(ninety)} at 90 %, {time_text(high)} at 99 %, {time_text(most)} at 99.9 %, "
        f"{time_text(total[f'{ROTATION}_max'])} at most. On an idle ring the token rests, which makes it longer."
    )
    return Section("Token rotation", [Figure(plot, "The band reaches from the median to 99 %.")], lead)


def _spread_plot(
    course: Course, rows: dict[int, Row], name: str, title: str, label: str, unit: float, marks: Sequence[Mark] = ()
) -> Plot:
    """Median as a line, up to 99 % as a band."""

    def part(n: int, place: int) -> float | None:
        row = rows.get(n)
        return row[f"{name}_percentiles"][place] / unit if row and row[f"{name}_count"] else None

    middle = course.points(lambda n: part(n, 0))
    high = course.points(lambda n: part(n, 2))
    found = [point[1] for point in (*middle, *high) if point is not None]
    lowest = min(found)
    is_log = lowest > 0 and max(found) / lowest > LOG_ABOVE
    band = [
        None if low is None or top is None else (low[0], low[1], top[1]) for low, top in zip(middle, high, strict=True)
    ]
    series = [
        Series("median to 99 %", band, Shape.BAND, 0),
        Series("median", middle, Shape.LINE, 0),
    ]
    y = Axis(label, is_log=is_log, low=None if is_log else 0)
    return Plot(title, course.axis, y, series, [*course.marks, *marks], width=1060, height=280)


def retransmission_section(tables: Tables) -> Section:
    title = "Retransmissions"
    rows, total = token_rows(tables)
    if total is None:
        return Section(title, [Text(NO_VISITS, is_missing=True)])
    if not total["retransmitted"] and not total["requested"]:
        sentence = f"None: {total['sent']:,} packets were sent, nobody asked for one of them again."
        return Section(title, [Text(sentence, is_missing=True)])
    course = Course(tables)
    series = [
        Series(f"packets {name}", course.points(lambda n, key=key: _rate_of(course, rows, n, key)), colour=colour)  # type: ignore[misc]
        for name, key, colour in (("asked for", "requested", 1), ("sent again", "retransmitted", 3))
    ]
    share = total["retransmitted"] / max(1, total["sent"])
    lead = (
        f"{total['retransmitted']:,} packets were sent again, {share:.2%} of {total['sent']:,} that were sent; "
        f"{total['requested']:,} were asked for (a packet may be asked for at several visits)."
    )
    plot = Plot(
        "Packets asked for and sent again", course.axis, Axis("packets/s", low=0), series, course.marks, 1060, 260
    )
    blocks: list[Block] = [Figure(plot, _marked(course))]
    return Section(title, blocks, lead)


def _rate_of(course: Course, rows: dict[int, Row], n: int, name: str) -> float:
    return course.rate({n: rows[n][name]}, n) if n in rows else 0.0


def flow_section(tables: Tables, infos: Mapping[int, RunInfo]) -> Section:
    title = "Flow control"
    rows, total = token_rows(tables)
    if total is None or not total["sent"]:
        why = NO_VISITS if total is None else "No packet was sent: flow control had nothing to do."
        return Section(title, [Text(why, is_missing=True)])
    course = Course(tables)
    window, visit_max = _setting(infos, "window"), _setting(infos, "visit_max")
    ordered = _spread_plot(
        course,
        rows,
        ORDERED,
        "Packets that the ring ordered in a rotation",
        "packets",
        1,
        _level(window, "window", total[f"{ORDERED}_max"]),
    )
    backlog = _spread_plot(course, rows, BACKLOG, "Packets sent and not yet known to be with all", "packets", 1)
    none = Text("At no visit was there a packet of which the token did not know that all have it: no backlog.", True)
    share = total["sending_visits"] / total["visits"]
    mean = total["sent"] / max(1, total["sending_visits"])
    lead = f"In {share:.0%} of the visits something was sent, {mean:.1f} packets in the mean."
    blocks: list[Block] = [
        Side([_banded(ordered), _banded(backlog) if total[f"{BACKLOG}_max"] else none]),
        Side([Figure(_visit_plot(tables, visit_max)), _flow_table(total, window, visit_max)]),
    ]
    return Section(title, blocks, lead)


def _banded(plot: Plot) -> Figure:
    return Figure(replace(plot, width=560), "The band reaches from the median to 99 %.")


def _setting(infos: Mapping[int, RunInfo], name: str) -> int | None:
    """Return a setting of the ring, when all runs have the same."""
    found = {info.options.get("ring", {}).get(name) for info in infos.values()}
    value = found.pop() if len(found) == 1 else None
    return value if isinstance(value, int) else None


def _level(value: int | None, name: str, largest: float) -> list[Mark]:
    """Return the level to draw; None when it is so far away that the data would be squeezed."""
    return [Mark(value, f"{name} {value}", is_level=True)] if value is not None and largest * 4 >= value else []


def _visit_plot(tables: Tables, visit_max: int | None) -> Plot:
    """Most visits send a packet or two and a few very many: both axes are bent, that all are seen."""
    bars = [(row["sent"] - 0.49, row["sent"] + 0.51, float(row["visits"])) for row in tables.visit_sizes.to_pylist()]
    notes = [f"{row['sent']} packets in {row['visits']:,} visits" for row in tables.visit_sizes.to_pylist()]
    largest = max(bar[1] for bar in bars)
    marks = [Mark(visit_max, f"visit_max {visit_max}")] if visit_max is not None and largest * 4 >= visit_max else []
    x = Axis("packets sent in a visit", is_log=True, low=0.51, high=max([largest, *(mark.at + 0.5 for mark in marks)]))
    series = [Series("", bars, Shape.BARS, 2, notes=notes)]
    y = Axis("visits", is_log=True, low=0.5)  # a bar of one visit is one to be seen
    return Plot("How much a visit sends", x, y, series, marks, width=560, height=280)


def _flow_table(total: Row, window: int | None, visit_max: int | None) -> Table:
    rows = []
    for name, key, limit in (("ordered in a rotation", ORDERED, window), ("backlog at a visit", BACKLOG, None)):
        half, ninety, high, _ = total[f"{key}_percentiles"]
        numbers = (half, ninety, high, total[f"{key}_max"])
        rows.append([name, *map(number_text, numbers), "–" if limit is None else number_text(limit)])
    if visit_max is not None:
        rows.append(["sent in a visit", "–", "–", "–", "–", number_text(visit_max)])
    columns = ("packets", "median", "90 %", "99 %", "most", "limit")
    return Table(columns, rows, left=("packets",))
