"""The sending half of a link (Figure 4.1 of the paper): what waits, what was sent and is not acknowledged, what is to
be sent again.

Packets sent again pass a full window, never the rate. When the last packet is not acknowledged in time the other side
is told of it: nothing else would show that the tail is lost.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ordercast.model.errors import WireError
from ordercast.model.ids import Instant
from ordercast.order.links.codec import LINK_HEAD_SIZE, Ranges
from ordercast.order.links.config import LinkConfig
from ordercast.order.links.packing import Body, NumberedBody, Packer
from ordercast.order.links.receiver import NEVER
from ordercast.order.links.regulator import Open, Regulator
from ordercast.order.links.round_trip import RoundTrip

EMPTY: Final[Body] = (b"", False)  # for the sake of what rides on it


class LinkSender:
    """Numbers bodies and keeps each until it is acknowledged."""

    def __init__(self, config: LinkConfig, path: RoundTrip, regulator: Regulator, now: Instant) -> None:
        self._config = config
        self._path = path
        self.regulator = regulator
        self.packer = Packer(config.body_max, config.payload_max)
        self.high = 0  # the number given last
        self.aru = 0  # acknowledged up to here
        self.resent = 0
        self.is_hopeless = False  # a packet was asked for as often as may be
        self.leaves_calmly = False  # what has just left: nobody waits for it
        self.moved_at = now  # when something was acknowledged, or began to wait for it
        self.tail_due = NEVER
        self._tail_wait = config.tail_ns
        self._arrived = 0  # packets that the other side said it has
        self._store: dict[int, Body] = {}  # what is not acknowledged, by number
        self._sent_at: dict[int, Instant] = {}  # likewise, the last time
        self._asked: dict[int, int] = {}  # how often the other side has asked for some of it
        self._resend: dict[int, None] = {}  # numbers, in the order in which they were asked for
        self._ready_at = NEVER  # when the rate lets the next packet go
        self._carry_at = NEVER  # an empty packet is numbered then, for the sake of its rider
        self._must_carry = False  # as soon as window and rate allow it
        self._is_calm = True  # nobody waits for anything that waits here
        self._overhead = LINK_HEAD_SIZE + config.rider_size

    @property
    def under_way(self) -> int:
        """Packets that were sent and, as far as is known, have not come."""
        return self.high - self._arrived

    @property
    def is_acknowledged(self) -> bool:
        """Whether nothing is kept."""
        return not self._store

    @property
    def is_eager(self) -> bool:
        """Whether there is something that leaves as soon as it may."""
        return bool(self._resend or self._must_carry or self.packer)

    @property
    def kept(self) -> int:
        """Packets that are not acknowledged."""
        return len(self._store)

    @property
    def next_deadline(self) -> Instant:
        return min(self.tail_due, self._ready_at, self._carry_at)

    def put(self, payloads: Iterable[bytes], *, is_urgent: bool, is_calm: bool) -> None:
        """Let payloads wait to be sent."""
        self.packer.put(payloads, is_urgent)
        self._is_calm = self._is_calm and is_calm

    def carry(self, by: Instant) -> None:
        """Send a numbered packet by then, an empty one if there is no other."""
        self._carry_at = min(self._carry_at, by)

    # What the other side says

    def check(self, aru: int, beyond: int) -> None:
        """Raise a WireError when packets are acknowledged that were never sent."""
        if aru + beyond > self.high:
            raise WireError(f"packet {aru + beyond} is acknowledged, and {self.high} was the last")

    def acknowledge(self, aru: int, beyond: int, round_trip: int, now: Instant) -> None:
        """Forget what came. An acknowledgement that was overtaken by a later one says nothing new."""
        if aru + beyond > self._arrived:
            self.regulator.acknowledged(aru + beyond - self._arrived, round_trip, now)
            self._arrived = aru + beyond
        if aru <= self.aru:
            return
        store, sent_at = self._store, self._sent_at
        for number in range(self.aru + 1, aru + 1):
            del store[number], sent_at[number]
        if self._asked:
            self._asked = {number: times for number, times in self._asked.items() if number > aru}
            self._resend = {number: None for number in self._resend if number > aru}
        self.aru, self.moved_at = aru, now
        self._tail_wait = self._config.tail_ns
        if not self._store:
            self.tail_due = NEVER

    def ask(self, ranges: Ranges, now: Instant) -> None:
        """Send again what is missing there. A packet that went out less than a round trip ago cannot be meant, nor one
        that is forgotten."""
        trip = self._path.least * 7 // 8
        for first, last in ranges:
            for number in range(max(first, self.aru + 1), last + 1):
                if now - self._sent_at[number] >= trip and number not in self._resend:
                    self._ask_one(number, now)

    def _ask_one(self, number: int, now: Instant) -> None:
        self._asked[number] = self._asked.get(number, 0) + 1
        limit = self._config.nacks_max
        if limit and self._asked[number] >= limit:
            self.is_hopeless = True
        self._resend[number] = None
        self.regulator.lost(self._sent_at[number], now)

    # What leaves

    def packets(self, now: Instant) -> list[NumberedBody]:
        """Return what leaves now, with its number: what was asked for, then what is new."""
        self._ready_at = NEVER
        self.leaves_calmly = False
        if self._carry_at <= now:
            self._carry_at, self._must_carry = NEVER, True
        leaving: list[NumberedBody] = []
        while self._resend:
            number = next(iter(self._resend))
            body = self._store[number]
            if not self._may_leave(len(body[0]), now):
                return leaving
            del self._resend[number]
            self._sent_at[number] = now
            self.resent += 1
            leaving.append((number, body))
        if isinstance(self.regulator, Open):
            self.leaves_calmly = self._is_calm and not leaving
            return leaving + self._all_new(self.regulator.window - self.under_way, now)
        while (self.packer or self._must_carry) and self._may_send_new(now):
            body = self.packer.take() if self.packer else EMPTY
            self.regulator.left(len(body[0]) + self._overhead, now)
            leaving += self._numbered([body], now)
        return leaving

    def _all_new(self, room: int, now: Instant) -> list[NumberedBody]:
        """Return all that there is room for: nobody has to be asked for each packet."""
        room = min(self._config.window - len(self._store), room)
        bodies = self.packer.take_many(room)
        self._is_calm = self._is_calm or not self.packer
        if not bodies and self._must_carry and room > 0:
            bodies, self.leaves_calmly = [EMPTY], False
        return self._numbered(bodies, now) if bodies else []

    def _may_send_new(self, now: Instant) -> bool:
        has_room = len(self._store) < self._config.window and self.regulator.has_room(self.under_way)
        return has_room and self._may_leave(self._config.body_max, now, is_measured=False)

    def _numbered(self, bodies: list[Body], now: Instant) -> list[NumberedBody]:
        """Give bodies their numbers, and keep them."""
        if not self._store:
            self.moved_at = now
        numbers = range(self.high + 1, self.high + 1 + len(bodies))
        self.high += len(bodies)
        leaving = list(zip(numbers, bodies, strict=True))
        self._store.update(leaving)
        self._sent_at.update(dict.fromkeys(numbers, now))
        self._carry_at, self._must_carry = NEVER, False
        if self.leaves_calmly:
            self.tail_due = min(self.tail_due, Instant(now + self._config.calm_ns + self._config.tail_ns))
        else:
            self._tail_wait = self._config.tail_ns
            self.tail_due = Instant(now + self._tail_wait)
        return leaving

    def _may_leave(self, size: int, now: Instant, is_measured: bool = True) -> bool:
        """Whether the rate lets a packet go now; if so and its size is known, it has gone."""
        ready_at = self.regulator.ready_at(size + self._overhead, now)
        if ready_at > now:
            self._ready_at = ready_at
            return False
        if is_measured:
            self.regulator.left(size + self._overhead, now)
        return True

    def probed(self, now: Instant) -> None:
        """The other side was told of the last packet; it will be again, later each time."""
        self._tail_wait = min(2 * self._tail_wait, self._config.tail_max_ns)
        self.tail_due = Instant(now + self._tail_wait)

    def check_invariants(self) -> None:
        assert list(self._store) == list(range(self.aru + 1, self.high + 1)), "what is not acknowledged is kept"
        assert self._sent_at.keys() == self._store.keys(), "of what is kept it is known when it left"
        assert self._resend.keys() <= self._asked.keys() <= self._store.keys(), "what is sent again is kept"
        assert not self._store or self.tail_due != NEVER, "the tail will be announced"
        assert len(self._store) <= self._config.window, "no more is under way than the window allows"
