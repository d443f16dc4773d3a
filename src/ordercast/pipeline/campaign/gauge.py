"""What a campaign measures of one run, from its events as they come. Pure.

Within a window of virtual time, or while everybody always has something to send. The first tenth of a saturated stretch
is left out: queues fill, the engine wakes. Times are virtual, so every machine measures the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from statistics import fmean, pstdev, quantiles

from ordercast.model.ids import SECOND, ProcessId, node_of
from ordercast.model.notes import Visited
from ordercast.trace.records import DeliveredBatch, Event, MessageId, Noted, Saturated, Submitted

SETTLING = 0.1  # the share of a saturated stretch that is left out


@dataclass(frozen=True, slots=True)
class Measure:
    start_ns: int
    end_ns: int
    saturated: bool = False


@dataclass(slots=True)
class Gauge:
    measure: Measure
    by_sender: bool = False  # latency and intervals of each host's messages too, where hosts have rates of their own
    _start: int | None = None
    _end: int | None = None
    _visits: dict[tuple[ProcessId, int], list[int]] = field(default_factory=dict)  # by process and configuration
    _submitted: dict[MessageId, int] = field(default_factory=dict)
    _delivered: dict[MessageId, list[int]] = field(default_factory=dict)
    _heard: dict[tuple[ProcessId, int], list[int]] = field(default_factory=dict)  # by receiver and sending host
    _deliveries: dict[ProcessId, list[tuple[int, int, int]]] = field(default_factory=dict)  # time, messages, bytes

    def __post_init__(self) -> None:
        if not self.measure.saturated:
            self._start, self._end = self.measure.start_ns, self.measure.end_ns

    def observe(self, event: Event) -> None:
        if isinstance(event, Saturated) and self.measure.saturated:
            if event.begins:
                self._start = event.at
            else:
                self._end = event.at
        if self._start is None or event.at < self._start or (self._end is not None and event.at > self._end):
            return
        if isinstance(event, Noted):
            if isinstance(event.note, Visited):
                self._visits.setdefault((event.process, event.note.ring.seq), []).append(event.at)
        elif isinstance(event, Submitted):
            for message in event.messages:
                self._submitted[message.message] = event.at
        elif isinstance(event, DeliveredBatch):
            self._deliver(event)

    def _deliver(self, event: DeliveredBatch) -> None:
        size = 0
        for delivery in event.messages:
            size += delivery.size
            if delivery.message is not None:
                self._delivered.setdefault(delivery.message, []).append(event.at)
                if self.by_sender:
                    sender = node_of(delivery.message.process)
                    self._heard.setdefault((event.process, sender), []).append(event.at)
        self._deliveries.setdefault(event.process, []).append((event.at, len(event.messages), size))

    def measures(self) -> dict[str, float]:
        """By name; what could not be measured is not there."""
        return {**self._rotation(), **self._latency(), **self._throughput(), **self._senders()}

    def _stretch(self) -> tuple[int, int] | None:
        if self._start is None or self._end is None or self._end <= self._start:
            return None
        settling = int((self._end - self._start) * SETTLING) if self.measure.saturated else 0
        return self._start + settling, self._end

    def _rotation(self) -> dict[str, float]:
        start, end = self._stretch() or (0, 0)
        gaps = [
            later - earlier
            for visits in self._visits.values()
            for earlier, later in pairwise(visits)
            if start <= earlier and later <= end
        ]
        if len(gaps) < 2:
            return {}
        return {"rotation_us": fmean(gaps) / 1e3, "rotation_p99_us": _percentile(gaps) / 1e3}

    def _latency(self) -> dict[str, float]:
        """Mean over the members; until the last member."""
        waits = self._waits()
        if len(waits) < 2:
            return {}
        last = [wait for _, _, wait in waits]
        return {
            "latency_us": fmean(wait for _, wait, _ in waits) / 1e3,
            "latency_last_us": fmean(last) / 1e3,
            "latency_last_p99_us": _percentile(last) / 1e3,
            "latency_last_max_us": max(last) / 1e3,
        }

    def _waits(self) -> list[tuple[int, float, int]]:
        """The sending host of each message, its mean wait and that of the last member. Messages whose life is not whole
        in the window are left out; queues that are always full have no latency worth the name."""
        if self.measure.saturated:
            return []
        members = max((len(times) for times in self._delivered.values()), default=0)
        return [
            (node_of(message.process), fmean(times) - self._submitted[message], max(times) - self._submitted[message])
            for message, times in self._delivered.items()
            if message in self._submitted and len(times) == members
        ]

    def _senders(self) -> dict[str, float]:
        """For each host that sends: the latency of its messages, and mean and deviation of the intervals between their
        deliveries, over all members."""
        if not self.by_sender:
            return {}
        waits, gaps = dict[int, list[float]](), dict[int, list[int]]()
        for sender, wait, _ in self._waits():
            waits.setdefault(sender, []).append(wait)
        for (_, sender), times in self._heard.items():
            gaps.setdefault(sender, []).extend(later - earlier for earlier, later in pairwise(times))
        found = {f"n{sender}_latency_us": fmean(some) / 1e3 for sender, some in waits.items()}
        for sender, some in gaps.items():
            if some:
                found[f"n{sender}_interval_us"] = fmean(some) / 1e3
                found[f"n{sender}_interval_deviation_us"] = pstdev(some) / 1e3
        return found

    def _throughput(self) -> dict[str, float]:
        stretch = self._stretch()
        if stretch is None or not self._deliveries:
            return {}
        start, end = stretch
        seconds = (end - start) / SECOND
        messages, size = [], []
        for deliveries in self._deliveries.values():
            inside = [(count, weight) for at, count, weight in deliveries if start <= at <= end]
            messages.append(sum(count for count, _ in inside))
            size.append(sum(weight for _, weight in inside))
        return {"messages_per_s": fmean(messages) / seconds, "bytes_per_s": fmean(size) / seconds}


def _percentile(values: list[int]) -> float:
    """Return what 99 of 100 do not exceed; never more than the largest."""
    return quantiles(values, n=100, method="inclusive")[98]
