"""The simulated disk: what is safe stays, whatever dies in between."""

from __future__ import annotations

from random import Random

import pytest

from ordercast.sim.disk import SimFolder


@pytest.mark.parametrize("seed", range(8))
def test_what_a_later_life_made_safe_outlives_a_power_failure(seed: int) -> None:
    folder = SimFolder(Random(seed))
    folder.create("a")
    folder.append("a", b"one")
    folder.sync("a")
    folder.sync_names()
    folder = folder.crash(is_power=False)
    folder.append("a", b"two")
    folder.sync("a")
    assert folder.crash(is_power=True).read("a") == b"onetwo"


def test_a_name_that_is_not_safe_may_be_gone_although_its_file_is() -> None:
    def is_found(seed: int) -> bool:
        folder = SimFolder(Random(seed))
        folder.create("a")
        folder.sync("a")
        return "a" in folder.crash(is_power=False).crash(is_power=True).names()

    assert {is_found(seed) for seed in range(8)} == {True, False}
