"""Faults planted in the lineage are seen by what judges the archives."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from tests.properties.test_archive_world import play
from tests.simulation import planted_archive

CASES = [
    (planted_archive.no_fork, range(10)),
    (planted_archive.root_without_name, range(10)),
    (planted_archive.fork_without_waiting, range(368, 369)),  # needs a second split before the first is settled
]


@pytest.mark.parametrize(("fault", "seeds"), CASES)
def test_a_planted_fault_is_caught(fault: Callable[[], AbstractContextManager[None]], seeds: range) -> None:
    def is_caught(seed: int) -> bool:
        try:
            with fault():
                play(seed)
        except AssertionError:
            return True
        return False

    assert any(is_caught(seed) for seed in seeds)
