"""What the ring counts of its own work: a few additions per token visit, for status and metrics."""

from __future__ import annotations

from dataclasses import dataclass

from ordercast.model.ids import Instant
from ordercast.order.engine import EngineStats

SMOOTHING = 16  # the rotation time is a moving average over about so many visits


@dataclass(slots=True)
class RingStats(EngineStats):
    """`packets_requested` is as it stood on the tokens forwarded here."""

    visits: int = 0
    limited_visits: int = 0  # visits on which flow control let this process send less than it had
    rotation_ns: int = 0  # smoothed time between two visits while the token does not rest
    last_visit_at: int = 0

    def visited(
        self, now: Instant, sent: int, retransmitted: int, requested: int, wanted: int, *, is_resting: bool
    ) -> None:
        if self.visits and not is_resting:
            self.rotation_ns += (now - self.last_visit_at - self.rotation_ns) // SMOOTHING
        self.last_visit_at = now
        self.visits += 1
        self.packets_sent += sent
        self.packets_retransmitted += retransmitted
        self.packets_requested += requested
        self.limited_visits += sent < wanted
