"""The moments that the core's rarer rules are for, played exactly: each happens as it should, and all goes well."""

from __future__ import annotations

import pytest

from ordercast.sim.replica_tally import ReplicaOccurrence as Row

from .replica_scenes import (
    AbandonedByItsCaller,
    BoundByAttempt,
    CutOffOfConfirmed,
    DecidedByOne,
    FailedBeginning,
    LongerMinority,
    StoodOnBeginning,
)


@pytest.mark.parametrize("seed", range(1, 4))
def test_a_beginning_that_only_one_attempted_is_forgotten(seed: int) -> None:
    result = FailedBeginning(seed=seed).run()
    assert result.is_valid, result.verdict.sentence
    assert result.counts[Row.ATTEMPTED_BEGINNING.value] == 1
    assert result.counts[Row.FORGOTTEN.value] == 1
    assert result.counts[Row.ENDED_PRIMARY.value] == 1


@pytest.mark.parametrize("seed", range(1, 4))
@pytest.mark.parametrize("kind", [LongerMinority, BoundByAttempt])
def test_one_decides_before_the_signal_and_the_other_after_it(kind: type[DecidedByOne], seed: int) -> None:
    scene = kind(seed=seed)
    result = scene.run()
    assert result.is_valid, result.verdict.sentence
    assert scene.steps[-2:] == ["attempted", "alone"]
    assert result.counts[Row.ATTEMPT.value] >= 1


@pytest.mark.parametrize("seed", range(1, 4))
def test_a_beginning_on_which_another_stood_is_not_forgotten(seed: int) -> None:
    scene = StoodOnBeginning(seed=seed)
    result = scene.run()
    assert result.is_valid, result.verdict.sentence
    assert scene.steps[-2:] == ["attempted", "alone"]
    assert result.counts[Row.ATTEMPTED_BEGINNING.value] == 2
    assert result.counts[Row.FORGOTTEN.value] == 0
    assert result.counts[Row.ENDED_PRIMARY.value] == 1


@pytest.mark.parametrize("seed", range(1, 4))
def test_who_missed_what_was_confirmed_does_not_go_on_without_it(seed: int) -> None:
    scene = CutOffOfConfirmed(seed=seed)
    result = scene.run()
    assert result.is_valid, result.verdict.sentence
    assert scene.first >= 0
    assert result.counts[Row.RECONNECTED.value] == 2


@pytest.mark.parametrize("seed", range(3))
def test_a_command_of_an_abandoned_round_is_not_refused_for_certain(seed: int) -> None:
    scene = AbandonedByItsCaller(seed=seed)
    assert scene.run().is_valid and "view of all" in scene.steps
