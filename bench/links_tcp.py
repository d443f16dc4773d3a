"""A connection as TCP makes one, for comparison with links on simulated paths: bytes in order or not at all.

Selective acknowledgements, loss by three later segments or by time, a tail loss probe and a timeout as Linux computes
them (200 ms at least), delayed acknowledgements, a window halved by loss. One message is one segment.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ordercast.model.ids import MILLISECOND

HEADERS = 52  # bytes of IP and TCP, with time stamps
RTO_MIN_NS = 200 * MILLISECOND
RTO_MAX_NS = 120_000 * MILLISECOND
DELAYED_ACK_NS = 40 * MILLISECOND
FIRST_WINDOW = 10
DUPLICATES = 3
NEVER = 1 << 62


@dataclass(frozen=True)
class Segment:
    number: int  # 0: it acknowledges alone
    payload: bytes
    aru: int
    sacked: frozenset[int]

    def __len__(self) -> int:
        return HEADERS + len(self.payload)


@dataclass(slots=True)
class _Sent:
    payload: bytes
    at: int
    times: int = 1


@dataclass
class Connection:
    """One end."""

    window: float = FIRST_WINDOW
    threshold: float = 1e9
    trip: int = 0
    variance: int = 0
    next_deadline: int | None = None
    _queue: list[bytes] = field(default_factory=list)
    _high: int = 0
    _acked: int = 0
    _sent: dict[int, _Sent] = field(default_factory=dict)
    _sacked: set[int] = field(default_factory=set)
    _newest: int = 0  # when the segment was sent that came last
    _resend: list[int] = field(default_factory=list)
    _recover: int = 0  # a loss up to here has been answered by a smaller window
    _timeout_at: int = NEVER
    _probe_at: int = NEVER
    _backoff: int = 1
    _aru: int = 0
    _held: dict[int, bytes] = field(default_factory=dict)
    _ack_at: int = NEVER
    _unacknowledged: int = 0

    @property
    def waiting(self) -> int:
        """Messages that were not sent yet."""
        return len(self._queue)

    def send(self, payload: bytes) -> None:
        self._queue.append(payload)

    def receive(self, segment: Segment, now: int) -> list[bytes]:
        """Take a segment; return what goes up now."""
        self._acknowledge(segment, now)
        if not segment.number:
            return []
        self._unacknowledged += 1
        is_next = segment.number == self._aru + 1 and not self._held
        self._ack_at = min(self._ack_at, now + DELAYED_ACK_NS) if is_next and self._unacknowledged < 2 else now
        if segment.number > self._aru:
            self._held[segment.number] = segment.payload
        ready = []
        while self._aru + 1 in self._held:
            self._aru += 1
            ready.append(self._held.pop(self._aru))
        return ready

    def _acknowledge(self, segment: Segment, now: int) -> None:
        fresh = [n for n in self._sent if n <= segment.aru or (n in segment.sacked and n not in self._sacked)]
        for number in fresh:
            self._newest = max(self._newest, self._sent[number].at)
            if self._sent[number].times == 1:
                self._measure(now - self._sent[number].at)
        if fresh:
            self._grow(len(fresh))
            self._backoff = 1
        for number in [n for n in self._sent if n <= segment.aru]:
            del self._sent[number]
            self._sacked.discard(number)
        self._acked = max(self._acked, segment.aru)
        self._sacked |= {n for n in segment.sacked if n in self._sent}
        self._find_losses()
        if fresh:
            self._arm(now)

    def _measure(self, trip: int) -> None:
        if not self.trip:
            self.trip, self.variance = trip, trip // 2
        self.variance += (abs(trip - self.trip) - self.variance) // 4
        self.trip += (trip - self.trip) // 8

    def _grow(self, count: int) -> None:
        if self._acked >= self._recover:
            self.window += count if self.window < self.threshold else count / self.window

    def _find_losses(self) -> None:
        for number, sent in self._sent.items():
            above = sum(1 for one in self._sacked if one > number)
            is_overtaken = sent.at + self.trip // 4 < self._newest or (above >= DUPLICATES and sent.times == 1)
            if is_overtaken and number not in self._sacked and number not in self._resend:
                self._resend.append(number)
                if number > self._recover:
                    self.window = self.threshold = max(2.0, self.window / 2)
                    self._recover = self._high

    @property
    def _rto(self) -> int:
        usual = self.trip + max(4 * self.variance, RTO_MIN_NS) if self.trip else 1000 * MILLISECOND
        return min(usual * self._backoff, RTO_MAX_NS)

    def _arm(self, now: int) -> None:
        """Set the timeout, and the probe of a tail before it."""
        self._timeout_at = now + self._rto if self._sent else NEVER
        alone = RTO_MIN_NS if len(self._sent) == 1 else 2 * MILLISECOND
        probe = now + 2 * self.trip + alone if self.trip and self._sent else NEVER
        self._probe_at = probe if probe < self._timeout_at else NEVER

    def flush(self, now: int) -> list[Segment]:
        """Return what leaves now."""
        self._wake(now)
        out = []
        self._resend = [number for number in self._resend if number in self._sent and number not in self._sacked]
        while self._resend and self._under_way < self.window:
            number = self._resend.pop(0)
            sent = self._sent[number]
            sent.at, sent.times = now, sent.times + 1
            out.append(self._segment(number, sent.payload))
        while self._queue and self._under_way < self.window:
            self._high += 1
            self._sent[self._high] = _Sent(self._queue.pop(0), now)
            out.append(self._segment(self._high, self._sent[self._high].payload))
            self._arm(now)
        if not out and self._ack_at <= now:
            out.append(self._segment(0, b""))
        if out:
            self._ack_at, self._unacknowledged = NEVER, 0
        due = min(self._timeout_at, self._probe_at, self._ack_at)
        self.next_deadline = due if due < NEVER else None
        return out

    def _wake(self, now: int) -> None:
        if self._timeout_at <= now:
            self.threshold, self.window = max(2.0, self.window / 2), 1.0
            self._backoff *= 2
            self._resend = [number for number in sorted(self._sent) if number not in self._sacked]
            self._recover = self._high
            self._arm(now)
            self._probe_at = NEVER
        elif self._probe_at <= now:
            self._resend.append(max(self._sent))
            self._probe_at = NEVER

    @property
    def _under_way(self) -> int:
        return len(self._sent) - len(self._sacked) - len(self._resend)

    def _segment(self, number: int, payload: bytes) -> Segment:
        return Segment(number, payload, self._aru, frozenset(self._held))
