"""Keys are changed under load, from clear to sealed and back, and a cluster is flooded, on hosts of their own."""

from __future__ import annotations

from pathlib import Path

import pytest
from rig import why_not
from rig.sealed import floods, rotations

pytestmark = [pytest.mark.long, pytest.mark.skipif(why_not() is not None, reason=why_not() or "")]


def test_keys_change_under_load_with_all_there_and_with_one_away(tmp_path: Path) -> None:
    assert rotations(1, 1, tmp_path, lambda line: None).startswith("VALID")


def test_a_flood_changes_no_view(tmp_path: Path) -> None:
    assert floods(2.0, tmp_path, lambda line: None).startswith("VALID")
