"""Ticks are round and cover the data; numbers read as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.pipeline.page.scales import Axis, number_text, round_step, scale_over, size_text, tick_text, time_text

FINITE = st.floats(-1e9, 1e9).map(lambda value: round(value, 3))
POSITIVE = st.floats(1e-6, 1e12)


@given(st.lists(FINITE, min_size=1, max_size=20))
def test_a_linear_axis_holds_all_values_and_has_a_few_ticks(values: list[float]) -> None:
    scale = scale_over(Axis("m"), values, 0, 100)
    assert all(scale.low - 1e-3 <= value <= scale.high + 1e-3 for value in values)
    assert 2 <= len(scale.ticks) <= 14
    assert list(scale.ticks) == sorted(set(scale.ticks))


@given(st.lists(POSITIVE, min_size=1, max_size=20))
def test_a_logarithmic_axis_holds_all_values(values: list[float]) -> None:
    scale = scale_over(Axis("m", is_log=True), values, 0, 100)
    assert all(scale.low * 0.99 <= value <= scale.high * 1.01 for value in values)
    assert scale.ticks
    a_hair = 0.1  # what is a thousandth beyond a round bound does not move the bound
    assert -a_hair <= scale.place(min(values)) <= scale.place(max(values)) <= 100 + a_hair


def test_bounds_that_are_given_are_kept() -> None:
    scale = scale_over(Axis("m", low=0, high=4.07), [1, 2], 0, 100)
    assert (scale.low, scale.high) == (0, 4.07)
    assert scale.ticks[-1] <= 4.07


def test_kinds_have_a_place_each() -> None:
    scale = scale_over(Axis("m", names=("a", "b", "c")), [], 0, 300)
    assert [scale.place(tick) for tick in scale.ticks] == [50, 150, 250]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (number_text(1234.4), "1,234"),
        (number_text(0.04567), "0.0457"),
        (number_text(float("nan")), "–"),
        (tick_text(20_000), "20k"),
        (tick_text(1_500_000), "1.5M"),
        (tick_text(0.25), "0.25"),
        (time_text(1_230_000), "1.23 ms"),
        (time_text(0), "0 ns"),
        (time_text(None), "–"),
        (size_text(4096), "4 KiB"),
        (size_text(64), "64 B"),
    ],
)
def test_texts(text: str, expected: str) -> None:
    assert text == expected


def test_a_span_is_cut_into_round_stretches() -> None:
    assert round_step(4_066_000_000, 120) == 50_000_000
    assert round_step(0, 120) == 1


def test_nothing_is_at_the_foot_of_a_logarithmic_axis() -> None:
    scale = scale_over(Axis("ms", is_log=True), [0.0, 0.2, 500.0], 0, 100)
    assert scale.place(0.0) == scale.place(scale.low) == 0 and scale.place(0.2) >= 0
