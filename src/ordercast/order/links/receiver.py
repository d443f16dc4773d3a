"""The receiving half of a link (Figure 4.2 of the paper, its off-by-ones corrected): which packets came, which are
missing, what goes up now, when to acknowledge and when to ask.

With `next` the number expected next and `aru` the highest up to which all came: a packet beyond `next` makes those from
`next` on before it missing, an announcement those from `next` up to what it says. Missing packets are asked for after a
short time, in which they may come by themselves, and again for as long as they are missing.
"""

from __future__ import annotations

from dataclasses import dataclass

from ordercast.model.errors import WireError
from ordercast.model.ids import Duration, Instant
from ordercast.order.links.codec import BEYOND_MAX, HORIZON, RANGES_MAX, Ranges
from ordercast.order.links.config import LinkConfig
from ordercast.order.links.packing import PartStore, payloads_of
from ordercast.order.links.round_trip import RoundTrip

NEVER = Instant((1 << 63) - 1)
STATUSES_MAX = 8  # packets that ask, at a time


@dataclass(slots=True)
class _Gap:
    """A number that is missing."""

    noticed: Instant
    due: Instant  # when it is asked for, or again
    asked: int = 0


class LinkReceiver:
    """Takes numbered packets in whatever order they come, passes payloads up at once or in order."""

    def __init__(self, config: LinkConfig, path: RoundTrip, now: Instant) -> None:
        self._config = config
        self._path = path
        self.next = 1
        self.aru = 0
        self.duplicates = 0
        self.asked = 0  # numbers, each as often as it was asked for
        self.is_hopeless = False  # a packet was asked for as often as may be
        self.moved_at = now  # when aru moved, or the first gap was noticed
        self.ack_due = NEVER
        self._unacknowledged = 0
        self._missing: dict[int, _Gap] = {}  # ascending: numbers are added in order
        self._nack_due = NEVER
        self._held: dict[int, list[bytes]] = {}  # payloads by number, until all before them came
        self._parts = PartStore(config.payload_max)

    @property
    def beyond(self) -> int:
        """How many packets above aru came."""
        return min(self.next - 1 - self.aru - len(self._missing), BEYOND_MAX)

    @property
    def missing(self) -> list[int]:
        return list(self._missing)

    @property
    def kept(self) -> int:
        """How many packets and begun payloads wait here for others."""
        return len(self._held) + len(self._parts)

    @property
    def next_deadline(self) -> Instant:
        return min(self.ack_due, self._nack_due)

    # Packets

    def check(self, number: int) -> None:
        """Raise a WireError for a number that lies further ahead than any window."""
        if number > self.aru + HORIZON:
            raise WireError(f"packet {number} is further ahead than a window")

    def parsed(self, number: int, body: bytes, is_part: bool) -> list[bytes]:
        """Return the payloads of a numbered packet, none for a part; WireError for what cannot be true."""
        if not is_part:
            return payloads_of(body)
        if self._is_new(number):
            self._parts.check(number, body)
        return []

    def take(
        self, number: int, payloads: list[bytes], part: bytes | None, now: Instant, *, is_calm: bool = False
    ) -> list[bytes]:
        """Take a packet that was parsed; return the payloads that go up now. `is_calm`: nobody waits for it."""
        self._owe(now, wait=self._config.calm_ns if is_calm else self._config.ack_ns)
        if not self._is_new(number):
            self.duplicates += 1
            return []
        self._arrive(number, now)
        if part is not None and (whole := self._parts.add(number, part)) is not None:
            payloads = [whole]
        return self._in_order(number, payloads) if self._config.is_ordered else payloads

    @property
    def is_in_turn(self) -> bool:
        """Whether everything came that was sent, as far as is known."""
        return not self._missing

    def take_run(self, count: int, now: Instant) -> None:
        """Take so many packets in their turn, whose payload goes up now."""
        assert not self._missing and not self._held, "nothing waits for what is missing"
        self._owe(now, self._config.ack_ns, count)
        self.next += count
        self.aru, self.moved_at = self.next - 1, now

    def _is_new(self, number: int) -> bool:
        return number >= self.next or number in self._missing

    def announce(self, high: int, now: Instant) -> None:
        """Know that packets up to this number were sent."""
        if high >= self.next:
            self._lack(high + 1, now)
            self.next = high + 1

    def _arrive(self, number: int, now: Instant) -> None:
        if number >= self.next:
            self._lack(number, now)
            self.next = number + 1
        else:
            self._fill(number, now)
        aru = next(iter(self._missing)) - 1 if self._missing else self.next - 1
        if aru > self.aru:
            self.aru, self.moved_at = aru, now

    def _lack(self, end: int, now: Instant) -> None:
        """What was expected and lies before `end` is missing."""
        if self.next == end:
            return
        if not self._missing:
            self.moved_at = now
        due = Instant(now + self.first_wait)
        for number in range(self.next, end):
            self._missing[number] = _Gap(now, due)
        self._nack_due = min(self._nack_due, due)

    def _fill(self, number: int, now: Instant) -> None:
        gap = self._missing.pop(number)
        late = Duration(now - gap.noticed)
        if not gap.asked or (gap.asked == 1 and late < self.first_wait + self._path.least):
            self._path.was_late(late)
        else:
            self._path.was_lost()
        if not self._missing:
            self._nack_due = NEVER

    def _in_order(self, number: int, payloads: list[bytes]) -> list[bytes]:
        """Return what goes up now that this packet came: nothing, or it and what waited for it."""
        self._held[number] = payloads
        ready = []
        passed = number if number <= self.aru else self.aru + 1
        while passed <= self.aru:
            ready += self._held.pop(passed)
            passed += 1
        return ready

    # Acknowledging and asking

    @property
    def first_wait(self) -> int:
        """How long a missing packet may take to come by itself."""
        config, path = self._config, self._path
        usual = max(path.smooth // config.nack_share, path.reordering + path.reordering // 4)
        return min(max(usual, config.nack_min_ns), config.nack_max_ns)

    def _again(self, asked: int) -> int:
        """How long to wait before asking once more."""
        trip = self._path.smooth + self.first_wait
        config = self._config
        return max(trip, min(config.again_min_ns << min(asked - 1, 30), config.again_max_ns))

    def _owe(self, now: Instant, wait: int, packets: int = 1) -> None:
        self._unacknowledged += packets
        if self._unacknowledged >= self._config.ack_every:
            self.ack_due = now
        else:
            self.ack_due = min(self.ack_due, Instant(now + wait))

    def owe_now(self, now: Instant) -> None:
        """Acknowledge at once: the other side asks for it."""
        self.ack_due = now

    def acknowledged(self) -> None:
        """A packet left, and every packet acknowledges."""
        self._unacknowledged = 0
        self.ack_due = NEVER

    def due(self, now: Instant) -> Ranges:
        """Return what is to be asked for now, each number that is missing at its own time."""
        if now < self._nack_due:
            return ()
        ranges: list[tuple[int, int]] = []
        self._nack_due = NEVER
        for number, gap in self._missing.items():
            if gap.due <= now:
                if ranges and ranges[-1][1] == number - 1:
                    ranges[-1] = ranges[-1][0], number
                elif len(ranges) < STATUSES_MAX * RANGES_MAX:
                    ranges.append((number, number))
                else:
                    gap.due = Instant(now + self._config.nack_min_ns)
                    self._nack_due = min(self._nack_due, gap.due)
                    continue
                self._ask(gap, now)
            self._nack_due = min(self._nack_due, gap.due)
        return tuple(ranges)

    def _ask(self, gap: _Gap, now: Instant) -> None:
        limit = self._config.nacks_max
        if limit and gap.asked >= limit:
            self.is_hopeless = True
        gap.asked += 1
        self.asked += 1
        gap.due = Instant(now + self._again(gap.asked))

    def check_invariants(self) -> None:
        lowest = min(self._missing, default=self.next)
        assert self.aru == lowest - 1, "aru lies before the lowest packet that is missing"
        assert all(number < self.next for number in self._missing), "nothing is missing that is still expected"
        assert list(self._missing) == sorted(self._missing), "what is missing ascends"
        assert not self._missing or self._nack_due != NEVER, "what is missing will be asked for"
        assert all(number > self.aru for number in self._held), "what is in order has gone up"
