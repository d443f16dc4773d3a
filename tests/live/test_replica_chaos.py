"""A few seconds of chaos with replicas; `make chaos-replicated` has more."""

from __future__ import annotations

from pathlib import Path

import pytest
from rig import why_not
from rig.replica_chaos import replica_chaos

from ordercast.checker import combined

pytestmark = pytest.mark.skipif(why_not() is not None, reason=why_not() or "")


def test_replicas_are_equal_and_nothing_confirmed_is_lost(tmp_path: Path) -> None:
    result = replica_chaos(3, 4.0, 3, tmp_path, None)
    assert result.is_valid, f"{result.error or combined(result.all()).sentence}\n{result.log}"
    assert sum(result.kills.values()) > 0
    assert all(counts["confirmed"] > 0 for counts in result.counts.values())
