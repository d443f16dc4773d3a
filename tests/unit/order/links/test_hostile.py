"""Links on hostile paths: everything arrives once or the link fails, at both ends; and faults that are planted into
links are seen. More seeds: `python -m tests.unit.order.links.hostile 1000`."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.unit.order.links.hostile import RIDING, Trial
from tests.unit.order.links.pair import Broken
from tests.unit.order.links.planted import CAUGHT_BY_HOSTILE_RUNS, Plant

SEEDS = (*range(15), *range(RIDING, RIDING + 12))
EXPECTED = (
    "ridden",
    "lost",
    "doubled",
    "delayed",
    "in parts",
    "began anew",
    "cut",
    "stayed",
    "at last SILENT",
    "at last STALLED",
)


def test_hostile_paths_break_no_promise() -> None:
    happened: Counter[str] = Counter()
    for seed in SEEDS:
        happened += Trial(seed).run()
    assert [row for row in EXPECTED if not happened[row]] == []


@pytest.mark.parametrize("plant", CAUGHT_BY_HOSTILE_RUNS, ids=lambda plant: plant.__name__)
def test_a_planted_fault_is_seen(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    seed, complaint = CAUGHT_BY_HOSTILE_RUNS[plant]
    Trial(seed).run()
    plant(monkeypatch)
    with pytest.raises(Broken, match=complaint):
        Trial(seed, is_checked=False).run()
