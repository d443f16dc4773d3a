"""What people write for numbers is read, and what cannot be read is refused with a hint."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.cli.quantities import (
    chance_from,
    delays_from,
    duration_from,
    duration_text,
    range_from,
    seeds_from,
    size_from,
)
from ordercast.model.errors import UsageError


@pytest.mark.parametrize(
    ("text", "duration_ns"),
    [
        ("80ms", 80_000_000),
        ("0.3s", 300_000_000),
        ("50us", 50_000),
        ("1.5 µs", 1500),
        ("7ns", 7),
        ("2h", 7200 * 10**9),
        ("7d", 604_800 * 10**9),
    ],
)
def test_durations(text: str, duration_ns: int) -> None:
    assert duration_from(text) == duration_ns


@given(st.integers(0, 10**13))
def test_a_duration_written_is_read_as_the_same(duration_ns: int) -> None:
    assert duration_from(duration_text(duration_ns)) == duration_ns


def test_sizes_chances_and_ranges() -> None:
    assert range_from("20..4K", size_from) == (20, 4096)
    assert range_from("1M", size_from) == (1 << 20, 1 << 20)
    assert chance_from("5%") == chance_from("0.05") == 0.05
    assert delays_from("0.05..1") == delays_from("50us..1ms") == (50_000, 1_000_000)
    assert seeds_from("3..5") == range(3, 6)
    assert seeds_from("3") == range(3, 4)


@pytest.mark.parametrize("text", ["", "3", "ms", "-1s", "3w", "1e3s"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(UsageError, match="not a duration: write"):
        duration_from(text)


@pytest.mark.parametrize("text", ["1", "100%", "-0.1", "x", "0.1s", ""])
def test_what_is_no_chance(text: str) -> None:
    with pytest.raises(UsageError, match="not a chance: write"):
        chance_from(text)


@pytest.mark.parametrize("text", ["5..1", "..5", "1..", "a..b", "1.5..2", "-1..2", f"0..{1 << 63}", ""])
def test_what_is_no_range_of_seeds(text: str) -> None:
    with pytest.raises(UsageError, match="write"):
        seeds_from(text)
