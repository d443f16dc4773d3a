"""Several sequences of events put into one order, by columns."""

from __future__ import annotations

import pytest

pytest.importorskip("numpy")

import numpy as np

from ordercast.pipeline.verify.ordering import Needs, numbered, raised


def test_what_needs_another_comes_after_it_with_all_behind_it() -> None:
    times = [np.array([10, 20, 30]), np.array([1, 2, 40])]
    needs = [Needs(1, np.array([1]), 0, np.array([2]))]
    found = raised(times, needs)
    assert [list(each) for each in found] == [[10, 20, 30], [1, 31, 40]]
    assert [list(each) for each in numbered(found)] == [[1, 2, 3], [0, 4, 5]]


def test_a_circle_is_given_up() -> None:
    circle = [Needs(0, np.array([0]), 1, np.array([0])), Needs(1, np.array([0]), 0, np.array([0]))]
    assert len(raised([np.array([1]), np.array([1])], circle)) == 2
