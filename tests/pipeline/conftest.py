"""What the tests of streams have in common."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ordercast.pipeline.spark_session import missing_for_spark
from tests.pipeline.stage import Stage


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    problem = missing_for_spark()
    if problem is not None:
        pytest.skip(problem)
    found = Stage(tmp_path)
    try:
        found.begin()
        yield found
    finally:
        found.end()
