"""How often each member should have a slot. Packets go in, weights come out.

`demand` counts what members sent and what they say is waiting: under saturation everybody sends exactly by its weight,
so that what was sent alone would confirm any weights for ever. Members that have packets waiting want alike: what waits
is bounded by a queue, and would be little beside what a busy member sent before. `window` is the paper's: the last
packets of all, so many for each member, and a little for everybody; `fixed` goes by the configuration. `steady` is
`demand`, and the office of the book-keeper moves to whoever has the steadiest round trips (`trips.py`).
(Deviations, D6)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from ordercast.model.ids import SECOND, Instant, ProcessId, node_of
from ordercast.order.adaptive.config import AdaptiveConfig

LOOKS = 20  # the counts are of so many looks
GAP_FACTOR_MAX = 32  # distributions that follow each other come at most so many times more slowly
LONG_AGO = Instant(-SECOND)
WINDOW_FACTOR = 50  # packets for each member in the paper's window (`N`)
FLOOR = 1  # and what everybody has beside (`eps`)
HURRY = 10  # with packets that wait they come so many times faster


def weights_from(demands: Sequence[int], period: int) -> tuple[int, ...]:
    """Return one slot for everybody, and the rest by demand, largest remainders first."""
    members, total = len(demands), sum(demands)
    spare = period - members
    if not total or spare <= 0:
        return (1,) * members
    weights = [1 + demand * spare // total for demand in demands]
    order = sorted(range(members), key=lambda member: (-(demands[member] * spare % total), member))
    for member in order[: period - sum(weights)]:
        weights[member] += 1
    return tuple(weights)


def levelled(demands: Sequence[int]) -> list[int]:
    """Return as much for everybody who differs from the busiest member by no more than chance does."""
    most = max(demands)
    return [most if (most - demand) ** 2 <= most + demand and demand else demand for demand in demands]


def difference(one: Sequence[int], other: Sequence[int]) -> float:
    """Return the part of the order that would change hands."""
    first, second = sum(one), sum(other)
    return sum(abs(a * second - b * first) for a, b in zip(one, other, strict=True)) / (2 * first * second)


@dataclass(slots=True)
class Policy:
    """What a process knows of the senders' rates. It outlives configurations."""

    config: AdaptiveConfig
    counts: dict[ProcessId, deque[int]] = field(default_factory=dict)  # packets, look by look
    last: deque[ProcessId] = field(default_factory=deque)  # policy "window": who sent the last packets
    last_at: Instant = LONG_AGO  # when a distribution was announced
    quiet_at: Instant = LONG_AGO  # since when none was, or the gap was last shortened
    factor: int = 1  # of the shortest time between two
    looked: int = 0  # looks until now, in `adapt_ns` since time began

    def sent(self, process: ProcessId, packets: int, now: Instant) -> None:
        if now // self.config.adapt_ns != self.looked:
            self.look(now)
        if process not in self.counts:
            self.counts[process] = deque([0], LOOKS)
        self.counts[process][-1] += packets
        if self.config.policy == "window":
            self.last.extend([process] * packets)

    def begin(self, members: Sequence[ProcessId]) -> None:
        """Keep the counts of those who are in the configuration, and let its first distribution follow at once."""
        self.last_at = LONG_AGO
        self.counts = {process: self.counts.get(process, deque([0], LOOKS)) for process in members}
        if self.config.policy == "window":  # it begins full, as if all had sent alike
            self.last = deque([*members] * WINDOW_FACTOR, WINDOW_FACTOR * len(members))

    @property
    def is_idle(self) -> bool:
        """Whether nobody has sent anything lately."""
        return not any(map(any, self.counts.values()))

    def look(self, now: Instant) -> None:
        """Time has passed: the oldest counts are forgotten."""
        looks = now // self.config.adapt_ns
        if looks == self.looked:
            return
        passed, self.looked = [0] * min(LOOKS, looks - self.looked), looks
        for counts in self.counts.values():
            counts.extend(passed)

    def wanted(
        self, members: Sequence[ProcessId], waiting: Sequence[int], weights: Sequence[int], now: Instant
    ) -> tuple[int, ...] | None:
        """Return the weights that should be announced now; None when these may stay."""
        period = self.config.period_of(len(members))
        wanted = weights_from(self._demands(members, waiting), period)
        if self.config.policy == "fixed":
            shares = dict(self.config.shares)
            wanted = tuple(shares.get(node_of(process), 1) for process in members)
        if difference(wanted, weights) <= self.config.threshold or not self._may(waiting, now):
            return None
        self._announced(now)
        return wanted

    def may_announce(self, now: Instant) -> bool:
        """Whether a distribution may be announced for its next book-keeper alone; it is, then."""
        if not self._may((), now):
            return False
        self._announced(now)
        return True

    def _announced(self, now: Instant) -> None:
        self.last_at = self.quiet_at = now
        self.factor = min(2 * self.factor, GAP_FACTOR_MAX)

    def _demands(self, members: Sequence[ProcessId], waiting: Sequence[int]) -> list[int]:
        if self.config.policy == "window":
            return [self.last.count(process) + FLOOR for process in members]
        sent = [sum(self.counts.get(process, ())) for process in members]
        demands = [one + more for one, more in zip(sent, waiting, strict=True)]
        most = max([demand for demand, more in zip(demands, waiting, strict=True) if more], default=0)
        return levelled([most if more else demand for demand, more in zip(demands, waiting, strict=True)])

    def _may(self, waiting: Sequence[int], now: Instant) -> bool:
        while self.factor > 1 and now - self.quiet_at >= SECOND:
            self.factor //= 2
            self.quiet_at = Instant(self.quiet_at + SECOND)
        if sum(1 for packets in waiting if packets) >= 2:
            return now - self.last_at >= self.config.gap_ns // HURRY
        return now - self.last_at >= self.config.gap_ns * self.factor
