"""All-Ack: symmetric and not adaptive. As `timestamps`, but nobody sends nulls, and only messages move the order: its
latency is the time until the slowest sender sends again. (Paper 004, section 6.2.1; Figures 7(b) and 8(b))

When no message has come for long a run is at its end, and whoever is waited for says so: otherwise it had none.
"""

from __future__ import annotations

from ordercast.order.baselines.timestamps import Timestamps


class AllAck(Timestamps):
    name = "all-ack"

    @property
    def tick_ns(self) -> int:
        return self.baseline.close_ns // 4

    def _tick(self) -> None:
        if self._now - self._awaited_at >= self.baseline.close_ns:
            self._say_null()
