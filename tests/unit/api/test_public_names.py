"""What `dir()` shows of the two packages that programs import: what they may use, and nothing else."""

from __future__ import annotations

from types import ModuleType

import pytest

import ordercast
import ordercast.replicated


@pytest.mark.parametrize("package", [ordercast, ordercast.replicated])
def test_dir_shows_what_may_be_used_and_nothing_else(package: ModuleType) -> None:
    assert [name for name in dir(package) if not name.startswith("__")] == sorted(
        name for name in package.__all__ if not name.startswith("__")
    )
