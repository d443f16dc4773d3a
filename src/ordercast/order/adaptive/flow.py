"""How many packets this process may send now, and whether to wait so that messages share them."""

from __future__ import annotations

from dataclasses import dataclass

from ordercast.model.ids import Instant
from ordercast.order.adaptive.merge import Merge
from ordercast.order.adaptive.slots import Place

LEAST = 16  # packets that everybody may have on their way
PART = 4  # a good burst has this part of a share; so much of the window is acknowledged soon
READS = 16  # how many packets are read at once is a moving average over about so many reads, in parts of one in so many
CROWDED = READS * 3 // 2  # so many parts are one packet and a half: hosts that are not busy read about one
SAMPLES = 8  # how long packets take is a moving average over about so many
NOWHERE: Place = 1 << 62
BEGINNING = Instant(0)


def share_left(merge: Merge, window: int, backlog_max: int) -> int:
    """A share of the window by weight, less what is not known to be everywhere; and no more than all may keep."""
    return _left(
        merge, _share(merge, window), backlog_max, [stream.held + len(stream.early) for stream in merge.streams]
    )


def burst_left(merge: Merge, window: int, backlog_max: int, wanted: int) -> int:
    """How many packets may go out now. Few large bursts cost less than many small ones, so none may as long as what is
    left is little beside what is wanted, or what is wanted is little and so much is on its way that all will soon
    acknowledge it."""
    share, counts = _share(merge, window), [stream.held + len(stream.early) for stream in merge.streams]
    left, mine = _left(merge, share, backlog_max, counts), counts[merge.me]
    if not mine:
        return left
    good = min(merge.line.newest.block, share // PART)
    if wanted >= good and left >= good:
        return left
    is_crowded = mine >= good and sum(counts) >= window // PART
    return left if left >= wanted and not is_crowded else 0


def _left(merge: Merge, share: int, backlog_max: int, counts: list[int]) -> int:
    return max(0, min(share - counts[merge.me], backlog_max - sum(counts)))


def _share(merge: Merge, window: int) -> int:
    newest = merge.line.newest
    return max(LEAST, window * newest.weights[merge.me] // newest.period)


@dataclass(slots=True)
class Pace:
    """How long it takes until packets of this process are ordered, and how many wait when it reads. Where both are much
    hosts are busy, and fewer packets with more messages in them serve everybody better. Time alone would not tell a
    busy host from a long way, on which nothing is gained by waiting."""

    slow_ns: int
    mean_ns: int = 0
    crowd: int = READS * READS  # parts of packets that are read at once, times the reads that count
    place: Place = NOWHERE  # of a packet that is not ordered yet
    sent_at: Instant = BEGINNING

    @property
    def is_slow(self) -> bool:
        return self.mean_ns >= self.slow_ns and self.crowd >= READS * CROWDED

    def read(self, packets: int) -> None:
        """So many packets had come when this process looked."""
        self.crowd += packets * READS - self.crowd // READS

    def sent(self, place: Place, now: Instant) -> None:
        """A packet that others have yet to order went out at this place; one is watched at a time."""
        if self.place == NOWHERE:
            self.place, self.sent_at = place, now

    def ordered(self, now: Instant) -> None:
        """The packet that was watched is ordered. A pause counts little more than what is slow."""
        taken = min(now - self.sent_at, 2 * self.slow_ns)
        self.mean_ns += (taken - self.mean_ns) // SAMPLES
        self.place = NOWHERE
