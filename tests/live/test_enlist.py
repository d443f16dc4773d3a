"""Hosts are added to and removed from a loaded cluster by their files, on hosts of their own."""

from __future__ import annotations

from pathlib import Path

import pytest
from rig import why_not
from rig.enlist import run

pytestmark = pytest.mark.skipif(why_not() is not None, reason=why_not() or "")


@pytest.mark.long
@pytest.mark.parametrize("transport", ["multicast", "unicast"])
def test_hosts_come_and_go_under_load(transport: str, tmp_path: Path) -> None:
    said = run(1, transport, 1, tmp_path, lambda line: None, are_views_judged=False)
    assert said.startswith("VALID")
