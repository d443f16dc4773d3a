"""Regulators for links over networks that others use: a leaky bucket with a window, and what sets their sizes.

`Fixed` is the paper's: a rate and a burst that somebody configured, right where a line is one's own. `Fair` finds its
window as TCP does, one packet more per round trip and half of it after a loss, and spreads it over the round trip:
beside others it gets its part, and a path that loses packets by itself it takes for a full one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ordercast.model.errors import UsageError
from ordercast.model.ids import MILLISECOND, SECOND, Instant
from ordercast.order.links.config import LinkConfig
from ordercast.order.links.regulator import Regulator

BREATH_NS: Final = MILLISECOND  # who must wait for the rate waits at least so long: a timer for each packet is too many
BURST: Final = 16_384  # bytes, wherever nothing else is said,
LATE_NS: Final = 10 * MILLISECOND  # or what leaves in this time, if that is more: a timer that comes late costs no rate
FIRST_WINDOW: Final = 10  # packets
LEAST_WINDOW: Final = 4
QUEUED: Final = 1.5  # a round trip so many times the shortest: what is sent more would wait in a queue of the path
PACING: Final = 1.25  # packets may leave so much faster than the window in a round trip
_UNITS: Final = {"kbit": 1_000, "mbit": 1_000_000, "gbit": 1_000_000_000}


@dataclass(slots=True)
class Bucket:
    """A leaky bucket: bytes leave at a rate, and no more than a burst of them at a time."""

    rate: int  # bits per second
    burst: int = BURST
    _empty_at: int = 0  # when all that left will have leaked out

    def ready_at(self, now: Instant) -> Instant:
        """Return when the next packet may leave."""
        ready = self._empty_at - max(self.burst * 8 * SECOND // self.rate, LATE_NS)
        return now if ready <= now else Instant(max(ready, now + BREATH_NS))

    def left(self, size: int, now: Instant) -> None:
        self._empty_at = max(self._empty_at, now) + size * 8 * SECOND // self.rate


class Fixed:
    """A rate and a window that stay as they are."""

    def __init__(self, rate: int, window: int, burst: int = BURST) -> None:
        self.window = window
        self._bucket = Bucket(rate, burst)

    @property
    def rate(self) -> int:
        """Bits per second."""
        return self._bucket.rate

    def has_room(self, under_way: int) -> bool:
        return under_way < self.window

    def ready_at(self, size: int, now: Instant) -> Instant:
        return self._bucket.ready_at(now)

    def left(self, size: int, now: Instant) -> None:
        self._bucket.left(size, now)

    def acknowledged(self, packets: int, round_trip: int, now: Instant) -> None:
        pass

    def lost(self, sent_at: Instant, now: Instant) -> None:
        pass


class Fair:
    """A window that grows by a packet per round trip, and is halved by a loss, once for all packets that were under way
    then. Until the first loss, or until round trips show that packets wait on the path, it doubles in each. Who sends
    so little that the window never kept a packet back may go on sending as much as anybody who begins."""

    def __init__(self, window: int, packet_size: int) -> None:
        self._window_max = window
        self._packet_size = packet_size
        self._window = float(FIRST_WINDOW)
        self._doubles_below = float(window)
        self._halved_at = -1
        self._round_trip = 0  # smooth; 0: unknown
        self._shortest = 0  # likewise, of all
        self._is_full = False  # the window was what kept packets back, since the last acknowledgement
        self._was_full = False  # likewise, since it was halved
        self._bucket = Bucket(SECOND, BURST)

    @property
    def window(self) -> int:
        return int(self._window)

    @property
    def rate(self) -> int:
        """Bits per second that the window is worth; 0 where the round trip is unknown."""
        if not self._round_trip:
            return 0
        return int(self._window * self._packet_size * 8 * SECOND / self._round_trip)

    def has_room(self, under_way: int) -> bool:
        has_room = under_way < self._window
        if not has_room:
            self._is_full = self._was_full = True
        return has_room

    def ready_at(self, size: int, now: Instant) -> Instant:
        return self._bucket.ready_at(now) if self._round_trip else now

    def left(self, size: int, now: Instant) -> None:
        self._bucket.left(size, now)

    def acknowledged(self, packets: int, round_trip: int, now: Instant) -> None:
        if round_trip:
            self._round_trip += (round_trip - self._round_trip) // 8 if self._round_trip else round_trip
            self._shortest = min(round_trip, self._shortest or round_trip)
            if self._round_trip > QUEUED * self._shortest:
                self._doubles_below = min(self._doubles_below, self._window)
        if self._is_full:
            grown = packets if self._window < self._doubles_below else packets / self._window
            self._window = min(self._window + grown, float(self._window_max))
            self._is_full = False
        self._bucket.rate = max(int(self.rate * PACING), self._packet_size * 8)

    def lost(self, sent_at: Instant, now: Instant) -> None:
        if sent_at > self._halved_at:
            least = LEAST_WINDOW if self._was_full else min(self._window, FIRST_WINDOW)
            self._window = self._doubles_below = max(self._window / 2, float(least))
            self._halved_at, self._was_full = now, False


def regulator_from(text: str, config: LinkConfig) -> Regulator:
    """Return the regulator that a setting names, for links with this configuration."""
    rate = rate_from(text)
    return Fair(config.window, config.packet_size) if rate is None else Fixed(rate, config.window)


def rate_from(text: str) -> int | None:
    """Return the bits per second that a setting names, as in `30mbit`; None for `fair`."""
    if text == "fair":
        return None
    for unit, factor in _UNITS.items():
        number = text.removesuffix(unit)
        if number != text and number.isascii() and number.isdecimal() and int(number) > 0:
            return int(number) * factor
    raise UsageError(f'rate must be "fair" or a number with a unit, as in "30mbit" ({", ".join(_UNITS)}), not {text!r}')
