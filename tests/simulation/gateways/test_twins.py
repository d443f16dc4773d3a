"""Hosts that stay together on a ring never differ; and a run that is aimed at it shows a rule that is needed for it."""

from __future__ import annotations

import pytest

from ordercast.order.gateways.known import Known
from tests.simulation.gateways.twins import SHAPES, Twins

SEEDS = [*range(5), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(5, 20))]
SHOWS = 26  # a seed in which twins differ by what only one of them knows of a merge that is still to come


@pytest.mark.parametrize("seed", SEEDS)
def test_twins_do_not_differ(seed: int) -> None:
    run = Twins(seed)
    assert run.judge() == [], run.name
    assert run.name in SHAPES and run.counts()["events that twins share"] > 0


def test_twins_differ_if_ends_count_that_a_merge_is_still_to_bring(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Twins(SHOWS).judge() == []
    monkeypatch.setattr(Known, "ends_in_order", lambda self: list(self.ends))
    assert any("twins" in error for error in Twins(SHOWS).judge())
