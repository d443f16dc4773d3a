"""Time in a structure: ordered ticks, and no clock. A structure in which something ends with time counts the commands
TICK, each of which says which one it is. While anything waits for its end, a replica that has seen no tick for
`TICK_S` by its own clock says the next number; the first that comes counts, the same number again does not. So a tick
is never shorter than that by the clock of whoever said it, all copies have the same time, and while there is no primary
component time stands still: nobody could have asked for more of it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import ceil

from ordercast.model.errors import UsageError, WireError
from ordercast.replicated.machine import Origin
from ordercast.replicated.structures.base import NO, YES
from ordercast.replicated.structures.fields import U64, Reader

TICK = 0xF2
TICK_S = 0.25
TICKS_MAX = 1 << 40


class Timed(ABC):
    """What a structure has in which something ends with time."""

    ticks = 0  # so far

    @property
    @abstractmethod
    def awaits_tick(self) -> bool:
        """Something ends with time."""

    @abstractmethod
    def expire(self, position: int) -> bytes:
        """End what is over now. What the result of the tick says of it."""

    def tick(self, fields: Reader, origin: Origin) -> bytes:
        number = fields.number(U64)
        fields.end()
        if number != self.ticks + 1:
            return NO
        self.ticks = number
        return YES + self.expire(origin.position)


def span_in(fields: Reader) -> int:
    """Read how many ticks something is to last: no more than somebody can ask for (`ticks_of`), so that its end is a
    number of 64 bits."""
    span = fields.number(U64)
    if span > TICKS_MAX + 1:
        raise WireError(f"a time of {span:,} ticks, at most {TICKS_MAX:,}")
    return span


def tick_command(number: int) -> bytes:
    return bytes([TICK]) + U64.pack(number)


def ticks_of(seconds: float) -> int:
    """Return ticks that last at least so long: the first of them may come at once."""
    if not isinstance(seconds, int | float) or not 0 < seconds < TICKS_MAX * TICK_S:
        raise UsageError(f"{seconds!r} is no time: give seconds above 0, such as 30 or 0.5")
    return ceil(seconds / TICK_S) + 1
