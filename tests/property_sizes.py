"""How many examples a property takes that wants more or fewer than others do."""

from __future__ import annotations

from hypothesis import settings

USUAL = 30  # of the profile that `make test` has


def scaled(count: int) -> int:
    """Return this number where properties take the usual number, and as many times more where they take more."""
    assert settings.default is not None
    return count * settings.default.max_examples // USUAL
