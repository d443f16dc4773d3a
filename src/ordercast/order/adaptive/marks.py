"""Voice: what this process has told the others of itself, and when it has to say more.

Marks are urgent when others wait for them: places that have to be given up, a safe packet that has to be acknowledged,
a new distribution. Else they are said in time: after the last packet, for what was received, as a sign of life.
"""

from __future__ import annotations

from dataclasses import dataclass

from ordercast.model.ids import MILLISECOND, Instant
from ordercast.order.adaptive.codec import Mark
from ordercast.order.adaptive.config import AdaptiveConfig
from ordercast.order.adaptive.merge import Merge
from ordercast.order.adaptive.slots import Place

CLOSES = 2  # how often a sender says which packet was its last
BEATS = 3  # if no packet of anybody has come for so many times as long as usual,
BEATS_NS = 40 * MILLISECOND  # as long as that is at most so long
RHYTHM = 8  # the usual time between two is a moving average over about so many
WAITING_MAX = 0xFFFFFFFF
LONG_AGO = Instant(0)
NEVER = Instant(1 << 62)


@dataclass(slots=True)
class Voice:
    config: AdaptiveConfig
    sign_ns: int  # signs of life are not farther apart
    ack_every: int  # packets after which what was received is acknowledged
    members: int
    tick: int = 0
    aru: Place = 0  # as told to all, or to the one who tells all
    stable: Place = 0
    waiting: int = 0
    is_behind: bool = False
    is_due: bool = True  # something has to be said now; everybody speaks when a configuration begins
    received: int = 0  # packets since
    heard: int = 0  # packets of others since this process's own last
    beat_at: Instant = LONG_AGO  # when the last packet of anybody was sent or came
    beat_ns: int = BEATS_NS  # how long it usually takes until the next
    said_at: Instant = LONG_AGO  # anything was multicast
    urgent_from: Instant = LONG_AGO  # no urgent mark before
    close_at: Instant = NEVER
    closes: int = 0  # how often the last packet was named
    ack_at: Instant = NEVER
    gathered_at: Instant = NEVER  # all should have been told by then of what one was told
    waits_until: Instant = NEVER  # an urgent mark that had to keep its distance

    def sent(self, aru: Place, now: Instant, patience: int = 0) -> None:
        """Packets were multicast, with this aru in them. The last is named when it should have been acknowledged, if
        all do that at once: that takes so long at most."""
        self.aru = max(self.aru, aru)
        self.said_at = now
        self._beat(now)
        self.close_at, self.closes = Instant(now + max(patience, self._close_ns())), 0
        self.received, self.heard, self.ack_at = 0, 0, NEVER

    def came(self, packets: int, covers_mine: bool, now: Instant) -> None:
        """New packets of another came. If their sender knows this process's last packet, whoever lacks that cannot
        deliver these, and asks: it need not be named."""
        self._beat(now)
        self.received += packets
        self.heard += packets
        if covers_mine:
            self.close_at = NEVER

    def _beat(self, now: Instant) -> None:
        passed = now - self.beat_at
        self.beat_ns += ((passed if passed < 2 * BEATS_NS else 2 * BEATS_NS) - self.beat_ns) // RHYTHM
        self.beat_at = now

    def _close_ns(self) -> int:
        """Return when to name the last packet. Where packets follow each other soon the next one shows what is
        missing, and naming each would cost everybody as much as the packet itself."""
        due = BEATS * self.beat_ns
        return max(due, self.config.close_ns) if due <= BEATS_NS else self.config.close_ns

    def is_time(self, now: Instant) -> bool:
        """Whether something has to be told to all."""
        return self._tell_at() <= now

    def deadline(self) -> Instant:
        """Return when something has to be said."""
        said_until = Instant(self.said_at + self.sign_ns)
        return min(said_until, self.close_at, self.gathered_at, self.waits_until, self.ack_at)

    def _tell_at(self) -> Instant:
        return min(Instant(self.said_at + self.sign_ns), self.close_at, self.gathered_at, self.waits_until)

    def look(self, merge: Merge, now: Instant, *, tells: bool) -> None:
        """See whether something was received that has to be acknowledged soon, or, by the one who tells all what others
        have received, whether there is more to tell; and whether others may still lack this process's last packet."""
        is_known = merge.highest <= self.aru or merge.aru <= self.aru
        if is_known and not (tells and min(merge.safe, merge.highest) > self.stable):
            self.ack_at = NEVER
        elif self.received >= self.ack_every:
            self.is_due = True
        elif self.ack_at == NEVER:
            # Between two packets of a sender with a rhythm: all members do it then, and nobody waits for it.
            self.ack_at = Instant(now + self.config.ack_ns - min(self.beat_ns, self.config.ack_ns) // 2)
        if self.close_at != NEVER and merge.streams[merge.me].place <= merge.safe:
            self.close_at = NEVER
        if self.gathered_at != NEVER and merge.safe >= min(self.aru, merge.asked_safe):
            self.gathered_at = NEVER

    def may_be_urgent(self, now: Instant) -> bool:
        """Whether an urgent mark keeps its distance from the last; if not, it is due then."""
        if now >= self.urgent_from:
            return True
        self.waits_until = self.urgent_from
        return False

    def owes_stable(self, merge: Merge) -> bool:
        """All have acknowledged a safe packet, and only this process knows."""
        return min(merge.asked_safe, merge.safe) > self.stable

    def gathered(self, merge: Merge, at: Instant) -> None:
        """One member was told what was received; it tells all, and this process does if it has not by then."""
        self.aru, self.ack_at = max(self.aru, merge.aru), NEVER
        self.gathered_at = min(self.gathered_at, at)

    def said(self, merge: Merge, now: Instant, *, is_behind: bool) -> None:
        """A mark was multicast."""
        self.aru, self.stable, self.is_behind = max(self.aru, merge.aru), merge.safe, is_behind
        self.is_due, self.received, self.said_at = False, 0, now
        self.urgent_from = Instant(now + self.config.mark_ns * self.members)
        self.ack_at = self.gathered_at = self.waits_until = NEVER
        if self.close_at <= now:
            self.closes += 1
            later = self.config.ack_ns + self.config.close_ns  # when all should have acknowledged it
            self.close_at = Instant(now + later) if self.closes < CLOSES else NEVER

    def mark(self, merge: Merge, waiting: int, *, is_behind: bool) -> Mark:
        """Return the next statement of this process."""
        self.tick += 1
        self.waiting = waiting
        me = merge.me
        last, known = merge.streams[me].last, merge.known(me)
        return Mark(me, self.tick, last, known, merge.aru, merge.safe, min(waiting, WAITING_MAX), is_behind)
