"""What plots over time share, and the section on throughput. Pure.

Several runs lie over each other, each from its own start: what is counted is divided by the runs that lasted so long.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ordercast.pipeline.page.html import Figure, Section, Side, Text
from ordercast.pipeline.page.plot import Mark, Plot, Point, Series
from ordercast.pipeline.page.scales import Axis, time_text, unit_of
from ordercast.pipeline.report.tables import Tables

Row = dict[str, Any]
MARKS_MAX = 40  # more view changes than this would hide the data


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
        "What was handed to the engine, by all processes together, and what came out of it at the mean process that "
        f"delivered anything; per {time_text(tables.bucket_ns)}."
    )
    plots = [
        Plot("Messages", course.axis, Axis("messages/s", low=0), messages, course.marks, width=560),
        Plot("Bytes", course.axis, Axis(unit_name, low=0), carried, course.marks, width=560),
    ]
    return Section("Throughput", [Side([Figure(plot, marked(course)) for plot in plots])], lead)


def marked(course: Course) -> str:
    return "Dotted lines are new views." if course.marks else ""


def _summed(rows: Sequence[Row], name: str) -> dict[int, float]:
    """Over the services, by stretch of time."""
    result: dict[int, float] = {}
    for row in rows:
        result[row["bucket"]] = result.get(row["bucket"], 0) + row[name]
    return result
