"""A few seconds of chaos; `make chaos` has more."""

from __future__ import annotations

from pathlib import Path

import pytest
from rig import why_not
from rig.chaos import chaos

from ordercast.checker import combined

pytestmark = pytest.mark.skipif(why_not() is not None, reason=why_not() or "")
SEEDS = {False: 11, True: 12}


@pytest.mark.parametrize("switch", [False, pytest.param(True, marks=pytest.mark.long)], ids=["bridge", "switch"])
def test_every_promise_is_kept(tmp_path: Path, switch: bool) -> None:
    if switch and why_not(switch=True) is not None:
        pytest.skip(why_not(switch=True) or "")
    result = chaos(SEEDS[switch], 3.0, 4, switch, tmp_path, None)
    assert result.is_valid, f"{result.error or combined(result.verdicts).sentence}\n{result.log}"
