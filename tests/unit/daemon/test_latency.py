"""How long messages take, by service, in buckets."""

from __future__ import annotations

from collections.abc import Callable

from ordercast.daemon.status.latency import BOUNDS_S, DeliveryLatency, histogram_lines
from ordercast.model.ids import MILLISECOND, SECOND, Instant
from ordercast.model.service import Service


def at(ms: float) -> Callable[[], Instant]:
    return lambda: Instant(int(ms * MILLISECOND))


def test_the_message_that_is_watched_is_found_among_others() -> None:
    latency = DeliveryLatency()
    latency.submitted(Service.SAFE, 3, at(0))  # the third is watched
    latency.submitted(Service.SAFE, 2, at(5))
    latency.delivered([Service.SAFE, Service.SAFE], at(1)())
    assert latency.told() == ()
    latency.delivered([Service.SAFE], at(7)())
    (told,) = latency.told()
    assert (told.service, told.measured, told.sum_ns) == ("safe", 1, 7 * MILLISECOND)
    assert told.buckets[BOUNDS_S.index(0.01)] == 1
    assert told.quantile_s(0.5) == 0.01


def test_services_in_one_packet_are_told_apart() -> None:
    latency = DeliveryLatency()
    latency.submitted(Service.AGREED, 1, at(0))
    latency.submitted(Service.SAFE, 1, at(1))
    latency.delivered([Service.AGREED, Service.SAFE], at(3)())
    assert [(each.service, each.sum_ns) for each in latency.told()] == [
        ("agreed", 3 * MILLISECOND),
        ("safe", 2 * MILLISECOND),
    ]


def test_the_clock_is_not_asked_while_a_message_is_watched() -> None:
    latency, asked = DeliveryLatency(), []

    def now() -> Instant:
        asked.append(1)
        return Instant(0)

    for _ in range(1000):
        latency.submitted(Service.AGREED, 1, now)
    assert len(asked) == 1


def test_prometheus_gets_cumulative_buckets_and_the_last_is_everything() -> None:
    latency = DeliveryLatency()
    for ms in (0.4, 3, 9000):
        latency.submitted(Service.AGREED, 1, at(0))
        latency.delivered([Service.AGREED], at(ms)())
    lines = histogram_lines("x_seconds", "Help", latency.told())
    assert lines[:2] == ["# HELP x_seconds Help", "# TYPE x_seconds histogram"]
    assert 'x_seconds_bucket{service="agreed",le="0.0005"} 1' in lines
    assert 'x_seconds_bucket{service="agreed",le="0.005"} 2' in lines
    assert 'x_seconds_bucket{service="agreed",le="5.0"} 2' in lines
    assert 'x_seconds_bucket{service="agreed",le="+Inf"} 3' in lines
    assert lines[-1] == 'x_seconds_count{service="agreed"} 3'
    assert lines[-2] == f'x_seconds_sum{{service="agreed"}} {(400_000 + 3 * MILLISECOND + 9 * SECOND) / SECOND!r}'
    (told,) = latency.told()
    assert told.quantile_s(0.99) is None
