"""Whole timelines, compared line by line. `ORDERCAST_REWRITE=1 pytest tests/scenarios` renews them; review the diff."""

from __future__ import annotations

import difflib
import os
from pathlib import Path

import pytest

from .scenario import Scenario, read, write

SCRIPTS = sorted(Path(__file__).parent.glob("*.txt"))


@pytest.mark.parametrize("path", SCRIPTS, ids=[path.stem for path in SCRIPTS])
def test_the_timeline_is_as_written(path: Path) -> None:
    script, expected = read(path)
    scenario = Scenario(script)
    result = scenario.run()
    assert result.is_valid, result.verdict.sentence
    assert not scenario.triggers, "everything that the script waits for has happened"
    if os.environ.get("ORDERCAST_REWRITE") == "1":
        write(path, script, scenario.timeline)
        return
    diff = difflib.unified_diff(expected, scenario.timeline, "as written", "as played", lineterm="", n=2)
    text = "\n".join(diff)
    assert not text, f"{path.name} went another way (ORDERCAST_REWRITE=1 renews it):\n{text}"


def test_there_are_scripts_and_each_is_told_twice_alike() -> None:
    """A run depends on its script and seed alone."""
    assert len(SCRIPTS) >= 6
    script, _ = read(SCRIPTS[0])
    one, other = Scenario(script), Scenario(script)
    assert one.run().digest == other.run().digest
    assert one.timeline == other.timeline
