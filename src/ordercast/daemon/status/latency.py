"""How long messages of this node take from the engine's hands to their delivery here, by service, in buckets. Pure.

One message of a service is watched at a time, so that the cost does not grow with the messages: a node delivers its own
messages of one service in the order in which it submitted them, so counting both sides says which delivery is the
watched one. Messages are counted by batches and packets, not one by one. Engines that prune deliver to a node only what
it wants, its own messages not excepted, and are not measured.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ordercast.model.ids import SECOND, Instant
from ordercast.model.service import SERVED, SERVICE_MAX, Service

BOUNDS_S = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
_BOUNDS_NS = tuple(round(bound * SECOND) for bound in BOUNDS_S)


@dataclass(frozen=True, slots=True)
class LatencyStatus:
    """What was measured of a service since the node started."""

    service: str
    measured: int  # messages that were watched
    sum_ns: int
    buckets: tuple[int, ...]  # how many took at most the bound of the same place; one more: all others

    def quantile_s(self, part: float) -> float | None:
        """The bound of the bucket in which this part of the messages ends; None beyond the last bound."""
        wanted, seen = part * self.measured, 0
        for bound, count in zip(BOUNDS_S, self.buckets, strict=False):
            seen += count
            if seen >= wanted:
                return bound
        return None


@dataclass(slots=True)
class _Watch:
    """One service: how many were submitted and delivered, and which one is watched since when."""

    submitted: int = 0
    delivered: int = 0
    watched: int = 0  # it is the so-manieth of this node; 0: none is
    since: int = 0
    sum_ns: int = 0
    buckets: list[int] = field(default_factory=lambda: [0] * (len(_BOUNDS_NS) + 1))


class DeliveryLatency:
    def __init__(self) -> None:
        self._watches = [_Watch() for _ in range(SERVICE_MAX + 1)]

    def submitted(self, service: int, count: int, now: Callable[[], Instant]) -> None:
        """So many messages were given to the engine; the clock is asked only when the last of them is watched. To be
        told before the engine delivers any of them."""
        watch = self._watches[service]
        watch.submitted += count
        if not watch.watched:
            watch.watched, watch.since = watch.submitted, now()

    def delivered(self, services: Sequence[int], at: Instant) -> None:
        """Messages of this node, of these services, were delivered here."""
        first = services[0]
        if services.count(first) == len(services):
            self._count(first, len(services), at)
            return
        for service in set(services):
            self._count(service, services.count(service), at)

    def _count(self, service: int, count: int, at: Instant) -> None:
        watch = self._watches[service]
        watch.delivered += count
        if watch.watched and watch.delivered >= watch.watched:
            lasted = max(0, at - watch.since)
            watch.buckets[bisect_left(_BOUNDS_NS, lasted)] += 1
            watch.sum_ns += lasted
            watch.watched = 0

    def told(self) -> tuple[LatencyStatus, ...]:
        """Tell of each service of which something was measured, the weakest first."""
        return tuple(
            LatencyStatus(service.name.lower(), sum(watch.buckets), watch.sum_ns, tuple(watch.buckets))
            for service in Service
            if service in SERVED and any((watch := self._watches[service]).buckets)
        )


def histogram_lines(name: str, help: str, told: Sequence[LatencyStatus]) -> list[str]:
    """The histogram as Prometheus reads it: buckets are cumulative there."""
    lines = [f"# HELP {name} {help}", f"# TYPE {name} histogram"]
    for each in told:
        seen = 0
        for bound, count in zip((*BOUNDS_S, "+Inf"), each.buckets, strict=True):
            seen += count
            lines.append(f'{name}_bucket{{service="{each.service}",le="{bound}"}} {seen}')
        lines.append(f'{name}_sum{{service="{each.service}"}} {each.sum_ns / SECOND!r}')
        lines.append(f'{name}_count{{service="{each.service}"}} {each.measured}')
    return lines
