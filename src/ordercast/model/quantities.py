"""Durations, sizes, rates and chances as people write them, on the command line and in configuration files. Pure.

Each function takes the text and returns the number, or raises a UsageError that says what was written, why it cannot be
read and what to write instead.
"""

from __future__ import annotations

import re
from decimal import Decimal

from ordercast.model.errors import UsageError
from ordercast.model.ids import MICROSECOND, MILLISECOND, SECOND

_NUMBER = re.compile(r"(\d+(?:\.\d+)?)\s*([a-zA-Zµ%]*)", flags=re.ASCII)
_TIME_UNITS = {"ns": 1, "us": MICROSECOND, "µs": MICROSECOND, "ms": MILLISECOND, "s": SECOND}
_TIME_UNITS |= {"min": 60 * SECOND, "h": 3600 * SECOND, "d": 24 * 3600 * SECOND}
_SIZE_UNITS = {"": 1, "b": 1} | {
    unit + end: 1 << shift for unit, shift in (("k", 10), ("m", 20), ("g", 30)) for end in ("", "b", "ib")
}

_RATE_UNITS = {"bit": 1, "kbit": 10**3, "mbit": 10**6, "gbit": 10**9}


def duration_from(text: str, default_unit: str = "") -> int:
    """`80ms`, `0.3s`, `50us`, `10min`, `24h`, `7d` as nanoseconds."""
    number, unit = number_and_unit(text) or ("", "")
    factor = _TIME_UNITS.get(unit or default_unit)
    if not number or factor is None:
        raise UsageError(f"{text!r} is not a duration: write a number and a unit, such as 80ms, 0.3s or 50us")
    return int(Decimal(number) * factor)


def size_from(text: str) -> int:
    """`400`, `4K`, `1M`, `32MiB` as bytes."""
    number, unit = number_and_unit(text) or ("", "")
    factor = _SIZE_UNITS.get(unit.lower())
    if not number or factor is None:
        raise UsageError(f"{text!r} is not a size: write bytes, such as 400, 4K or 1M")
    return int(Decimal(number) * factor)


def bit_rate_from(text: str) -> int:
    """`10mbit`, `1.5mbit`, `9600bit` as bits per second."""
    number, unit = number_and_unit(text) or ("", "")
    factor = _RATE_UNITS.get(unit.lower())
    if not number or factor is None:
        raise UsageError(f"{text!r} is not a rate: write bits per second, such as 500kbit, 10mbit or 1gbit")
    return int(Decimal(number) * factor)


def bit_rate_text(rate: int) -> str:
    """The shortest exact form that `bit_rate_from` reads."""
    for unit, factor in (("gbit", 10**9), ("mbit", 10**6), ("kbit", 10**3)):
        if rate >= factor and rate % (factor // 1000) == 0:
            return f"{(Decimal(rate) / factor).normalize():f}{unit}"
    return f"{rate}bit"


def chance_from(text: str) -> float:
    """`0.05` or `5%`; at least 0 and below 1."""
    number, unit = number_and_unit(text) or ("", "?")
    chance = Decimal(number or 1) / (100 if unit == "%" else 1)
    if unit not in ("", "%") or not 0 <= chance < 1:
        raise UsageError(f"{text!r} is not a chance: write a number of at least 0 and below 1, such as 0.05 or 5%")
    return float(chance)


def duration_text(duration_ns: int) -> str:
    """The shortest exact form that `duration_from` reads."""
    for unit, factor in (("s", SECOND), ("ms", MILLISECOND), ("us", MICROSECOND)):
        if duration_ns >= factor and duration_ns % (factor // 1000) == 0:
            return f"{(Decimal(duration_ns) / factor).normalize():f}{unit}"
    return f"{duration_ns}ns"


def size_text(size: int) -> str:
    """For people: `32 MiB`, `459.6 KiB`; rounded when it does not come out even."""
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= factor:
            number = size / factor
            return f"{number:.0f} {unit}" if number >= 100 or size % factor == 0 else f"{number:.1f} {unit}"
    return f"{size} bytes"


def number_and_unit(text: str) -> tuple[str, str] | None:
    match = _NUMBER.fullmatch(text.strip())
    return (match[1], match[2]) if match else None
