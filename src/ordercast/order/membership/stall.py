"""Something waits to be sent and nothing may be sent: noticed after a second, with the reason.

Applications that are behind, a member that does not receive, retransmissions: each stops the senders for good reason,
and each looks from outside like a cluster that is well, since the token goes round and nobody fails.
"""

from __future__ import annotations

from dataclasses import dataclass

from ordercast.model.effects import Alarm, AlarmKind
from ordercast.model.ids import SECOND, Duration, Instant
from ordercast.order.membership.step import Facts, Step
from ordercast.order.membership.timers import Timer

STALL_NS = SECOND


@dataclass(slots=True)
class Stall:
    """Watches whether a process that has something to send sends."""

    since: Instant | None = None  # something waits, and nothing was sent since then
    is_told: bool = False
    _sent: int = 0  # packets that were sent before that

    def watch(self, step: Step, *, is_installed: bool) -> None:
        """Something that waits while nothing may be sent is an alarm after a while, and so is its end. Looked at when
        something is submitted, and every second as long as something waits: a ring under load must not pay for it."""
        facts, now = step.facts, step.now
        lasted = self.lasts(now)
        if self.goes_on(facts, now, is_installed=is_installed):
            if not self.is_told and lasted >= STALL_NS:
                self.is_told = True
                step.alarm(Alarm(AlarmKind.STALLED, self.sentence(facts, now), facts.me, Duration(lasted)))
        elif self.is_told:
            self.is_told = False
            end = "packets are sent again" if is_installed else "a new ring is formed"
            text = f"{end} after {lasted / SECOND:.1f} s in which nothing could be sent"
            step.alarm(Alarm(AlarmKind.STALL_ENDED, text, facts.me, Duration(lasted)))
        if facts.outbox.is_waiting and not (self.is_told or facts.timers.is_armed(Timer.STALL)):
            facts.timers.arm(Timer.STALL, (self.since or now) + STALL_NS)

    def sentence(self, facts: Facts, now: Instant) -> str:
        size, seconds, why = facts.outbox.size, self.lasts(now) / SECOND, facts.parts.why_stalled(facts, now)
        return f"{size} bytes wait to be sent, and nothing could be sent for {seconds:.1f} s: {why}"

    def goes_on(self, facts: Facts, now: Instant, *, is_installed: bool) -> bool:
        """Something waits and nothing was sent since I last looked."""
        sent = facts.stats.packets_sent
        is_waiting = is_installed and facts.outbox.is_waiting
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
