"""The section on latency: how long from submission to delivery, by service and size. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from typing import Any

from ordercast.model.service import Service
from ordercast.pipeline.page.html import Block, Figure, PageTable, Section, Side, Text
from ordercast.pipeline.page.plot import Plot, Series, Shape
from ordercast.pipeline.page.scales import Axis, number_text, size_text, time_text, unit_of
from ordercast.pipeline.report.messages import BUCKETS_PER_DECADE, EACH, LAST, OWN, SIZE_MAX, SIZES
from ordercast.pipeline.report.tables import Tables

Row = dict[str, Any]
SHOWN_FROM = 0.01  # the share of deliveries at which the curves begin: some take no time at all
IMMEDIATE_NS = 1000  # below this nothing went over a network
TITLE = "Delivery latency"


def service_name(service: int | None) -> str:
    return "all services" if service is None else Service(service).name.lower()


def size_name(size_max: int | None) -> str:
    if size_max is None:
        return "all sizes"
    return f"> {size_text(SIZES[-1])}" if size_max == SIZE_MAX else f"≤ {size_text(size_max)}"


def latency_rows(tables: Tables, scope: str) -> list[Row]:
    """Return the rows of one scope, by service and size; the sums come after what they sum up."""
    rows = [row for row in tables.latency.to_pylist() if row["scope"] == scope]
    return sorted(rows, key=lambda row: (_last(row["service"]), _last(row["size_max"])))


def _last(value: int | None) -> float:
    return float("inf") if value is None else value


def latency_section(tables: Tables, *, is_live: bool) -> Section:
    rows = [row for row in latency_rows(tables, EACH) if row["count"]]
    if not rows:
        return Section(TITLE, [Text(_why_none(tables), is_missing=True)])
    clocks = "clocks of different hosts are compared" if is_live else "virtual time"
    lead = f"From submission to delivery, every delivery by every process counted; {clocks}."
    blocks: list[Block] = [Side([_spread(tables), _by_size(rows)]), _table(tables, rows)]
    return Section(TITLE, [*_doubts(tables, rows), *blocks], lead)


def _why_none(tables: Tables) -> str:
    if not sum(tables.runs["delivered"].to_pylist()):
        return "No delivery is in the traces: record live nodes at trace level full to see latencies."
    return "No submission is in the traces that a delivery could be compared with."


def _doubts(tables: Tables, rows: list[Row]) -> Iterator[Text]:
    total = rows[-1]
    unmatched = sum(tables.runs["delivered"].to_pylist()) - total["count"]
    if unmatched:
        yield Text(f"{unmatched:,} deliveries are left out: when their messages were submitted is not in the traces.")
    if total["negative"]:
        yield Text(
            f"{total['negative']:,} deliveries seem to come before their submission: the hosts' clocks differ by "
            f"{time_text(-total['min_ns'])} or more. Trust the column of the sender, which uses one clock."
        )


def _spread(tables: Tables) -> Block:
    """The share of deliveries that took no longer, by service."""
    by_service: dict[int, list[tuple[int, int]]] = {}
    for row in tables.latency_histogram.to_pylist():
        by_service.setdefault(row["service"], []).append((row["bucket"], row["count"]))
    curves = {service: _curve(sorted(buckets)) for service, buckets in sorted(by_service.items())}
    lowest = min(_begin(curve) for curve in curves.values())
    unit, name = unit_of([point[0] for curve in curves.values() for point in curve])
    series = [
        Series(service_name(service), [(at / unit, share) for at, share in curve if at >= lowest], colour=service)
        for service, curve in curves.items()
    ]
    x = Axis(f"latency, {name}", is_log=True)
    plot = Plot("Share of deliveries by latency", x, Axis("deliveries, %", low=0, high=100), series, width=560)
    return Figure(plot, "A curve tells how many deliveries took at most so long: further left is faster.")


def _end(bucket: int) -> float:
    return float(10 ** ((bucket + 1) / BUCKETS_PER_DECADE))


def _curve(buckets: list[tuple[int, int]]) -> list[tuple[float, float]]:
    """Latency in nanoseconds, and the per cent that took at most so long."""
    total = sum(count for _, count in buckets)
    below = accumulate(count for _, count in buckets)
    return [(_end(bucket), 100 * so_far / total) for (bucket, _), so_far in zip(buckets, below, strict=True)]


def _begin(curve: list[tuple[float, float]]) -> float:
    """Where it leaves the ground: a few deliveries that take no time at all must not stretch the axis."""
    at = [at for at, share in curve if share >= 100 * SHOWN_FROM and at > IMMEDIATE_NS]
    return at[0] if at else curve[-1][0]


def _by_size(rows: list[Row]) -> Block:
    sized = [row for row in rows if row["size_max"] is not None]
    classes = sorted({row["size_max"] for row in sized})
    if len(classes) == 1:
        return Text(
            f"All messages are of one class of sizes ({size_name(classes[0])}): there is nothing to compare.", True
        )
    unit, name = unit_of([row["percentiles"][0] for row in sized])
    series = []
    for service in sorted({row["service"] for row in sized}):
        mine = [row for row in sized if row["service"] == service]
        points = [(float(classes.index(row["size_max"])), row["percentiles"][0] / unit) for row in mine]
        notes = [_told(row) for row in mine]
        series.append(Series(service_name(service), points, Shape.LINE_AND_DOTS, service, notes=notes))
    x = Axis("size of the message", names=[size_name(bound) for bound in classes])
    plot = Plot("Median latency by size", x, Axis(f"median latency, {name}", low=0), series, width=560)
    return Figure(plot, "Bytes as they were carried. Rest the pointer on a dot for its numbers.")


def _told(row: Row) -> str:
    half, _, high, _ = row["percentiles"]
    kind = f"{service_name(row['service'])}, {size_name(row['size_max'])}"
    return f"{kind}: median {time_text(half)}, 99 % {time_text(high)}, {row['count']:,} deliveries"


def _table(tables: Tables, rows: list[Row]) -> PageTable:
    own, last = (
        {(row["service"], row["size_max"]): row for row in latency_rows(tables, scope)} for scope in (OWN, LAST)
    )
    columns = ("service", "size", "deliveries", "median", "90 %", "99 %", "99.9 %", "longest", "mean")
    more = ("own, median", "last, median", "last, 99 %")
    cells = []
    for row in rows:
        if row["service"] is None and len({one["service"] for one in rows}) == 2:
            continue  # there is one service, whose sum is the sum of all
        key = row["service"], row["size_max"]
        spread = [*row["percentiles"], row["max_ns"], row["mean_ns"]]
        others = [_percentile(own, key, 0), _percentile(last, key, 0), _percentile(last, key, 2)]
        words = (service_name(row["service"]), size_name(row["size_max"]), number_text(row["count"]))
        cells.append([*words, *(time_text(value) for value in [*spread, *others])])
    caption = "Own: at the process that sent it. Last: until every process that delivers it has done so."
    return PageTable((*columns, *more), cells, left=("service", "size"), caption=caption)


def _percentile(rows: dict[Any, Row], key: Any, place: int) -> float | None:
    return rows[key]["percentiles"][place] if key in rows else None
