"""How far a number from the network may lie above mine.

Counters rise in small steps: one that leaps was forged, or damaged on its way. Whatever lies beyond a bound here is
neither stored nor forwarded, so that no number comes near the one at which everybody refuses it (`NUMBER_MAX`).

Ring seqs are refused beyond their bound. Bounds are measured from each process's own number, so two processes may
differ on what lies within: what a Join may say is less than what a ring may have that was formed from it; and a ring
seq that keeps being told although it is refused raises the bound, by one leap at a time. A process that was led far up
is so taken back within seconds; and with ten forged rings a second it takes twelve years to the end of all numbers.

The Lamport clock of a ring that stands alone is bounded and never refused: nothing is decided by it, and a token must
not get lost for its sake. In a network of rings it is the first number of every place in the order, and must not fall
along a ring: a token whose clock leaps is refused there, as a ring seq is.
"""

from __future__ import annotations

from ordercast.model.ids import ConfigurationId, Duration, Instant
from ordercast.wire.codec import NUMBER_MAX
from ordercast.wire.messages import Announcement, CommitToken, Join, WireMessage

RING_SEQ_MAX = 1 << 56  # rings formed a thousand times a second do not get there in half a million years
RING_SEQ_LEAP = 1 << 24  # four million rings; who was away for more waits a second for each leap
JOIN_NUMBER_LEAP = 1 << 16
CLOCK_LEAP = 1 << 32
CLOCK_MAX = NUMBER_MAX - CLOCK_LEAP  # it stands still there: a day of full load away from where it would be refused


def stored_ring_seq(stored: bytes) -> int | None:
    """The ring seq of an earlier life; None when nobody can go on from it."""
    ring_seq = int.from_bytes(stored, "big")
    return ring_seq if ring_seq <= RING_SEQ_MAX - RING_SEQ_LEAP else None


def believed_clock(mine: int, told: int, *, is_new: bool) -> int:
    """What I take over of a clock. Who is new to a ring may be far behind those who have counted for long."""
    bound = CLOCK_MAX if is_new or mine + CLOCK_LEAP > CLOCK_MAX else mine + CLOCK_LEAP
    return told if told <= bound else bound


class Reach:
    """The highest number that is believed: a distance from mine, and what patience has added."""

    __slots__ = ("_leap", "_limit", "_patience", "_raised", "_raised_at")

    def __init__(self, leap: int, limit: int, patience: Duration) -> None:
        self._leap = leap
        self._limit = limit  # nothing above it is ever believed
        self._patience = patience  # how long something unbelievable must go on to raise the bound
        self._raised = 0  # up to here it was raised; not a distance, or each raise would count at every ring again
        self._raised_at: Instant | None = None

    def includes(self, number: int, mine: int, now: Instant, more: int = 0) -> bool:
        highest = max(mine + self._leap, self._raised)
        if number <= min(highest + more, self._limit):
            return True
        if self._raised_at is None:
            self._raised_at = now
        elif now - self._raised_at >= self._patience:
            self._raised = highest + self._leap
            self._raised_at = now
        return False


class Horizon:
    """The highest ring seq, and in a network of rings the highest tick, that are believed."""

    __slots__ = ("_clocks", "_rings")

    def __init__(self, patience: Duration) -> None:
        self._rings = Reach(RING_SEQ_LEAP, RING_SEQ_MAX, patience)
        self._clocks = Reach(CLOCK_LEAP, CLOCK_MAX, patience)

    def believes(self, message: WireMessage, mine: int, now: Instant) -> bool:
        """The ring seq that I might take over from this message, or propose because of it, can be true."""
        match message:
            case Join():
                return self._rings.includes(message.ring_seq, mine, now)
            case CommitToken() | Announcement():
                return self.believes_ring(message.ring, mine, now)
            case _:
                return True  # of my ring, or ignored

    def believes_ring(self, ring: ConfigurationId, mine: int, now: Instant) -> bool:
        """There can be such a ring."""
        return self._rings.includes(ring.seq, mine, now, RING_SEQ_LEAP)

    def believes_clock(self, tick: int, mine: int, now: Instant) -> bool:
        """A token of a ring in a network of rings can have come so far."""
        return self._clocks.includes(tick, mine, now)


class Numbering:
    """The Join numbers of one sender: an older opinion that arrives late is told from the newest.

    A number that is below the newest, or leaps above it, is believed only if such numbers keep coming for a while, not
    falling, and none that continues the newest. So a forged number costs its alleged sender that while, not its life.
    """

    __slots__ = ("_doubted", "_doubted_at", "_newest")

    def __init__(self, number: int) -> None:
        self._newest = number
        self._doubted = 0  # the last that was not believed
        self._doubted_at: Instant | None = None  # when the first of these came

    def believes(self, number: int, now: Instant, patience: Duration) -> bool:
        if not self._newest <= number <= self._newest + JOIN_NUMBER_LEAP:
            is_first = self._doubted_at is None
            if is_first or not self._doubted <= number <= self._doubted + JOIN_NUMBER_LEAP:
                self._doubted_at = now
            self._doubted = number
            assert self._doubted_at is not None
            if now - self._doubted_at < patience:
                return False
        self._newest = number
        self._doubted_at = None
        return True
