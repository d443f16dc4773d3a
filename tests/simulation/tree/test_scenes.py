"""Scenes of the tree engine are valid, and show what they are for; a rule taken out of one is missed."""

from __future__ import annotations

import pytest

from ordercast.checker.verdict import Outcome
from ordercast.model.notes import Occurrence
from ordercast.sim.options import SimOptions
from ordercast.sim.run import simulate

from .planted import Plant
from .scenes import LOST_ENTRY, LOST_SOURCE, SCENE_FAULTS


def test_what_an_entry_has_taken_with_it_keeps_its_place() -> None:
    """Later messages name the places of earlier ones that their source has not heard of."""
    result = simulate(LOST_ENTRY, 6)
    assert result.is_valid, result.verdict.sentence
    assert result.counts[Occurrence.TREE_IMPLIED.value]


def test_what_a_lost_source_has_taken_with_it_is_nobodys_fault() -> None:
    result = simulate(LOST_SOURCE, 4)
    assert result.is_valid, result.verdict.sentence
    assert result.counts[Occurrence.TREE_SENT_AGAIN.value]


@pytest.mark.parametrize(
    ("plant", "options", "seed"), [each[1:] for each in SCENE_FAULTS], ids=[each[0] for each in SCENE_FAULTS]
)
def test_a_rule_taken_out_of_a_scene_is_missed(
    plant: Plant, options: SimOptions, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    assert simulate(options, seed).verdict.outcome is Outcome.INVALID
