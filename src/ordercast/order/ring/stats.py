"""What the ring counts of its own work: a few additions per token visit, for status and metrics."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class RingStats:
    visits: int = 0  # of the token
    packets_sent: int = 0  # new ones of this process
    packets_retransmitted: int = 0  # sent again by this process on request
    packets_requested: int = 0  # asked for by this process and others, as they stood on the tokens forwarded here
    limited_visits: int = 0  # visits on which flow control let this process send less than it had
    rotation_ns: int = 0  # smoothed time between two visits while the token does not rest
    last_visit_at: int = 0
