"""What people write for numbers: durations, sizes, chances and ranges of them. Pure.

Each function takes the text and returns the number, or raises a UsageError that says what was written, why it cannot be
read and what to write instead.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal

from ordercast.model.errors import UsageError
from ordercast.model.ids import MICROSECOND, MILLISECOND, SECOND

_NUMBER = re.compile(r"(\d+(?:\.\d+)?)\s*([a-zA-Zµ%]*)")
_TIME_UNITS = {"ns": 1, "us": MICROSECOND, "µs": MICROSECOND, "ms": MILLISECOND, "s": SECOND}
_SIZE_UNITS = {"": 1, "b": 1, "k": 1 << 10, "kb": 1 << 10, "kib": 1 << 10, "m": 1 << 20, "mb": 1 << 20, "mib": 1 << 20}


def duration_from(text: str, default_unit: str = "") -> int:
    """`80ms`, `0.3s`, `50us` as nanoseconds."""
    number, unit = _number_and_unit(text) or ("", "")
    factor = _TIME_UNITS.get(unit or default_unit)
    if not number or factor is None:
        raise UsageError(f"{text!r} is not a duration: write a number and a unit, such as 80ms, 0.3s or 50us")
    return int(Decimal(number) * factor)


def size_from(text: str) -> int:
    """`400`, `4K`, `1M` as bytes."""
    number, unit = _number_and_unit(text) or ("", "")
    factor = _SIZE_UNITS.get(unit.lower())
    if not number or factor is None:
        raise UsageError(f"{text!r} is not a size: write bytes, such as 400, 4K or 1M")
    return int(Decimal(number) * factor)


def chance_from(text: str) -> float:
    """`0.05` or `5%`; at least 0 and below 1."""
    number, unit = _number_and_unit(text) or ("", "?")
    chance = Decimal(number or 1) / (100 if unit == "%" else 1)
    if unit not in ("", "%") or not 0 <= chance < 1:
        raise UsageError(f"{text!r} is not a chance: write a number of at least 0 and below 1, such as 0.05 or 5%")
    return float(chance)


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


def duration_text(duration_ns: int) -> str:
    """The shortest exact form that `duration_from` reads."""
    for unit, factor in (("s", SECOND), ("ms", MILLISECOND), ("us", MICROSECOND)):
        if duration_ns >= factor and duration_ns % (factor // 1000) == 0:
            return f"{(Decimal(duration_ns) / factor).normalize():f}{unit}"
    return f"{duration_ns}ns"


def _number_and_unit(text: str) -> tuple[str, str] | None:
    match = _NUMBER.fullmatch(text.strip())
    return (match[1], match[2]) if match else None
