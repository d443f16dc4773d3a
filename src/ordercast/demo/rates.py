"""How fast it goes: counters that many add to, and rates of the last moments."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

SPAN_S = 2.0  # over which a rate of now is taken
SAMPLES_MAX = 400  # of latency, for a median of now


@dataclass(slots=True)
class Tally:
    """Counts what all clients together sent and got."""

    sent: int = 0  # messages
    delivered: int = 0  # messages, each as often as it came to a client
    confirmed: int = 0  # commands
    refused: int = 0
    reads: int = 0  # linearised ones
    command_ns: list[int] = field(default_factory=list)  # one at a time, from call to confirmation
    message_ns: list[int] = field(default_factory=list)  # one at a time, from sending to its place in the order
    _samples: deque[tuple[float, int, int]] = field(default_factory=deque)

    def sample(self) -> None:
        """A few times a second, for the rates of now."""
        at = time.monotonic()
        self._samples.append((at, self.sent, self.confirmed))
        while len(self._samples) > 2 and at - self._samples[1][0] >= SPAN_S:
            self._samples.popleft()

    def now(self) -> tuple[float, float]:
        """Messages and commands a second, of the last moments."""
        if not self._samples:
            return 0.0, 0.0
        began, sent, confirmed = self._samples[0]
        span = max(time.monotonic() - began, 0.1)
        return (self.sent - sent) / span, (self.confirmed - confirmed) / span

    def recent_command_ms(self) -> float | None:
        return median_ms(self.command_ns[-SAMPLES_MAX:])


def median_ms(samples: Sequence[int]) -> float | None:
    return median(samples) / 1e6 if samples else None


@dataclass(frozen=True, slots=True)
class Reached:
    """The rates of the demo's fastest seconds, and its latencies in steady traffic."""

    messages_per_second: float  # sent by all; each was delivered to every member of its group
    deliveries_per_second: float  # to clients
    commands_per_second: float  # confirmed, of all replicas
    command_ms: float | None  # median, one at a time at each replica
    message_ms: float | None
