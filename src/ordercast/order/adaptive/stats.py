"""What the adaptive engine counts of its own work, for status and metrics."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class AdaptiveStats:
    marks: int = 0  # statements of this process that were multicast
    asks: int = 0  # requests of this process
    answers: int = 0  # packets sent again in another's place
    relayed: int = 0  # marks passed on in another's place
    distributions: int = 0  # adopted
