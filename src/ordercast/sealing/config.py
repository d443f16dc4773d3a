"""Times of the sealing layer."""

from __future__ import annotations

from dataclasses import dataclass

from ordercast.model.ids import MILLISECOND, SECOND
from ordercast.sealing.own import GENERATION_BITS

DAY = 24 * 3600 * SECOND


@dataclass(frozen=True, slots=True)
class SealingConfig:
    presence_ns: int = SECOND  # between two presences
    eager_ns: int = 100 * MILLISECOND  # while somebody is heard who does not yet name this life
    answer_ns: int = 20 * MILLISECOND  # the shortest time between two
    forget_ns: int = 60 * SECOND  # after which who is not heard is not present any more
    away_ns: int = DAY  # so long a change of keys waits for who was heard
    deaf_ns: int = 5 * SECOND  # who is heard for so long and does not hear this process is told of
    warn_ns: int = 60 * SECOND  # between two sentences about the same
    generation_bits: int = GENERATION_BITS
