"""Something waits to be sent and nothing may be sent: noticed after a second, with the reason.

Applications that are behind, a member that does not receive, retransmissions: each stops the senders for good reason,
and each looks from outside like a cluster that is well, since the token goes round and nobody fails.
"""

from __future__ import annotations

from dataclasses import dataclass

from ordercast.model.ids import NOBODY, SECOND, Instant, process_text
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


def sentence(facts: Facts, stall: Stall, now: Instant) -> str:
    size, seconds = facts.outbox.size, stall.lasts(now) / SECOND
    return f"{size} bytes wait to be sent, and nothing could be sent for {seconds:.1f} s: {_why(facts, now)}"


def _why(facts: Facts, now: Instant) -> str:
    ring, memory = facts.installed, facts.installed.memory
    silence = now - facts.stats.last_visit_at
    if facts.is_behind:
        return "the application of this process does not take its deliveries"
    if memory.behind:
        members = "an application of another member does not take its deliveries"
        if memory.behind > 1:
            members = f"applications of {memory.behind} other members do not take their deliveries"
        return f"{members}, look for flow.is_behind in their status"
    if memory.aru_id != NOBODY and memory.forwarded_seq - memory.forwarded_aru >= facts.config.backlog_max:
        return f"{process_text(memory.aru_id)} has not received packet {memory.forwarded_aru + 1}"
    if silence > STALL_NS // 2:
        return f"the token was here {silence / SECOND:.1f} s ago"
    return f"packets that are sent again take all of the window of ring {ring.id}"
