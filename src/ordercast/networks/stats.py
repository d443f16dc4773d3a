"""What the layer counts of itself, as plain numbers that rise; for status displays."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class NetworksStats:
    alarms: list[int]  # how often each network was marked
    expired: int = 0  # tokens that went up because they had waited long enough
    late_copies: int = 0  # copies of tokens that had gone up
