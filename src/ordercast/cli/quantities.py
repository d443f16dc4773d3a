"""What people write on the command line for numbers: durations, sizes, chances and ranges of them. Pure.

Each function takes the text and returns the number, or raises a UsageError that says what was written, why it cannot be
read and what to write instead.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from ordercast.model.errors import UsageError
from ordercast.model.quantities import chance_from, duration_from, duration_text, size_from

__all__ = ["chance_from", "delays_from", "duration_from", "duration_text", "range_from", "seeds_from", "size_from"]


def range_from(text: str, bound_from: Callable[[str], int]) -> tuple[int, int]:
    """`MIN..MAX`, or one value for both."""
    low_text, dots, high_text = text.partition("..")
    if dots and not (low_text.strip() and high_text.strip()):
        raise UsageError(f"{text!r} is not a range: write MIN..MAX with both ends")
    low = bound_from(low_text)
    high = bound_from(high_text) if dots else low
    if high < low:
        raise UsageError(f"the range {text!r} falls: write the smaller end first")
    return low, high


def delays_from(text: str) -> tuple[int, int]:
    """`0.05..0.4` in milliseconds, or with units: `50us..400us`."""
    return range_from(text, lambda bound: duration_from(bound, default_unit="ms"))


def seeds_from(text: str) -> range:
    """`A..B`, both included."""
    low, high = range_from(text, _seed_from)
    return range(low, high + 1)


def _seed_from(text: str) -> int:
    if not re.fullmatch(r"\d+", text.strip()) or int(text) >= 1 << 63:
        raise UsageError(f"{text!r} is not a seed: write a whole number of at least 0 and below 2^63, as in 1..500")
    return int(text)
