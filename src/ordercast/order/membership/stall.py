"""Something waits to be sent and nothing may be sent: noticed after a second, with the reason.

Applications that are behind, a member that does not receive, retransmissions: each stops the senders for good reason,
and each looks from outside like a cluster that is well, since the token goes round and nobody fails.
"""

from __future__ import annotations

from dataclasses import dataclass

from ordercast.model.ids import SECOND, Instant
from ordercast.order.membership.step import Facts

STALL_NS = SECOND


@dataclass(slots=True)
class Stall:
    """Watches whether a process that has something to send sends."""

    since: Instant | None = None  # something waits, and nothing was sent since then
    is_told: bool = False
    _sent: int = 0  # packets that were sent before that

    def goes_on(self, facts: Facts, now: Instant, *, is_installed: bool) -> bool:
        """Something waits and nothing was sent since I last looked."""
        sent = facts.stats.packets_sent
        is_waiting = is_installed and bool(facts.outbox)
        if is_waiting and sent == self._sent and self.since is not None:
            return True
        self._sent = sent
        self.since = now if is_waiting else None
        return False

    def forgive(self, now: Instant) -> None:
        """The time until now does not count: this process did not run."""
        if self.since is not None:
            self.since = now

    def lasts(self, now: Instant) -> int:
        return now - self.since if self.since is not None else 0
