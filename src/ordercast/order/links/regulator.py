"""How much of a link may be under way, and when the next packet may leave. A link asks its regulator; `Open` has a
window alone. Regulators with a rate are the business of engines whose links cross a network that others use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from ordercast.model.ids import Instant


class Regulator(Protocol):
    """What a link asks and tells. Sizes are bytes of whole packets."""

    @property
    def rate(self) -> int:
        """Bits per second at which packets leave; 0: as fast as they come, or unknown."""

    def has_room(self, under_way: int) -> bool:
        """Whether one more packet may be sent for the first time while so many are under way."""

    def ready_at(self, size: int, now: Instant) -> Instant:
        """When a packet may leave, of whatever kind; not after `now`: at once."""

    def left(self, size: int, now: Instant) -> None:
        """Know that a packet left."""

    def acknowledged(self, packets: int, round_trip: int, now: Instant) -> None:
        """Know that so many more packets came to the other side; `round_trip` is 0 where unknown."""

    def lost(self, sent_at: Instant, now: Instant) -> None:
        """Know that the other side lacks a packet that was sent at that moment."""


@dataclass(slots=True)
class Open:
    """No rate, and a window that stays as it is."""

    window: int

    @property
    def rate(self) -> int:
        return 0

    def has_room(self, under_way: int) -> bool:
        return under_way < self.window

    def ready_at(self, size: int, now: Instant) -> Instant:
        return now

    def left(self, size: int, now: Instant) -> None:
        pass

    def acknowledged(self, packets: int, round_trip: int, now: Instant) -> None:
        pass

    def lost(self, sent_at: Instant, now: Instant) -> None:
        pass
