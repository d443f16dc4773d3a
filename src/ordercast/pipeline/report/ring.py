"""The sections of a report on a ring: token rotation, retransmissions, flow control. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ordercast.pipeline.page.html import Block, Fact, Figure, PageTable, Section, Side, Text
from ordercast.pipeline.page.plot import Mark, Plot, Series, Shape
from ordercast.pipeline.page.scales import Axis, number_text, time_text, unit_of
from ordercast.pipeline.report.course import Course, Row, marked
from ordercast.pipeline.report.source import Sources
from ordercast.pipeline.report.tables import Tables
from ordercast.pipeline.report.token import BACKLOG, ORDERED, ROTATION
from ordercast.trace.parquet import RunInfo

LOG_ABOVE = 20  # a spread of this factor needs a logarithmic axis
NO_VISITS = "No visit of the token is in the traces: record live nodes at trace level full to see this."


def ring_sections(tables: Tables, sources: Sources) -> list[Section]:
    return [rotation_section(tables), retransmission_section(tables), flow_section(tables, sources.infos())]


def ring_facts(tables: Tables) -> list[Fact]:
    _, total = token_rows(tables)
    facts = []
    if total is not None and total[f"{ROTATION}_count"]:
        half, _, high, _ = total[f"{ROTATION}_percentiles"]
        facts.append(Fact(time_text(half), "token rotation, median", f"99 %: {time_text(high)}"))
    if total is not None and total["sent"]:
        facts.append(Fact(f"{total['retransmitted'] / total['sent']:.2%}", "packets sent again"))
    return facts


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
    blocks: list[Block] = [Figure(plot, marked(course))]
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


def _flow_table(total: Row, window: int | None, visit_max: int | None) -> PageTable:
    rows = []
    for name, key, limit in (("ordered in a rotation", ORDERED, window), ("backlog at a visit", BACKLOG, None)):
        half, ninety, high, _ = total[f"{key}_percentiles"]
        numbers = (half, ninety, high, total[f"{key}_max"])
        rows.append([name, *map(number_text, numbers), "–" if limit is None else number_text(limit)])
    if visit_max is not None:
        rows.append(["sent in a visit", "–", "–", "–", "–", number_text(visit_max)])
    columns = ("packets", "median", "90 %", "99 %", "most", "limit")
    return PageTable(columns, rows, left=("packets",))
