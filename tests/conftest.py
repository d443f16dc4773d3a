"""One Hypothesis profile for all tests: the same examples on every machine, and no clock. One Spark session for all
tests that are marked `spark`, which go to one process: starting Java takes longer than any of them. And the order in
which tests run."""

from __future__ import annotations

import gc
import os
import re
from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from ordercast.model.extras import EXTRAS
from ordercast.pipeline.spark_session import missing_for_spark, open_session
from tests.property_sizes import USUAL

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

for profile, examples in ("ordercast", USUAL), ("thorough", 1000):  # the second: `--hypothesis-profile=thorough`
    settings.register_profile(
        profile,
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
settings.load_profile("ordercast")

os.environ["SPARK_CONF_DIR"] = str(Path(__file__).parent / "spark")  # for every session, in any process of a test
SPARK_OPTIONS = {"spark.driver.memory": "1g", "spark.python.daemon.module": "tests.spark_daemon"}


@pytest.hookimpl(wrapper=True, optionalhook=True)
def pytest_xdist_auto_num_workers() -> Generator[None, int, int]:
    """One process more than there are cores: tests of live nodes wait more than they work."""
    return (yield) + 1


# What is broken in a function is told at once. Tests that mostly wait run beside those that work. Small ones come last,
# so that all processes end together.
TURNS = {
    "unit": 0,
    "pipeline": 1,
    "live": 1,
    "runtime": 1,
    "simulation": 1,
    "properties": 1,
    "scenarios": 2,
    "playbooks": 2,
}
LAST = 3

# Processes on a machine that may be elsewhere for a second: what fails there is run once more, and the summary says so.
ON_REAL_TIME = ("live", "runtime")


@pytest.hookimpl(tryfirst=True)  # before xdist looks for groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    _order(items)
    for item in items:
        if item.get_closest_marker("spark") is not None:
            item.add_marker(pytest.mark.xdist_group("spark"))
            _name_group(item, "spark")
        if _folder(item) in ON_REAL_TIME:
            item.add_marker(pytest.mark.flaky(reruns=1))


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The last line says what was not run, and what would bring it."""
    reports = terminalreporter.stats.get("skipped", [])
    terminalreporter.write_line(skipped_sentence(str(report.longrepr[2]) for report in reports))


def skipped_sentence(reasons: Iterable[str]) -> str:
    counts = Counter(_advice(reason.removeprefix("Skipped: ")) for reason in reasons)
    if not counts:
        return "nothing was skipped"
    parts = [f"{count} ({advice})" for advice, count in counts.most_common()]
    return f"skipped: {', '.join(parts)}"


def _advice(reason: str) -> str:
    """What an import lacks is an extra of the package; anything else says itself what it needs."""
    package = re.match(r"could not import '(\w+)", reason)
    if package is None or package[1] not in EXTRAS:
        return reason
    return f"{package[1]} is missing: pip install 'ordercast[{EXTRAS[package[1]]}]'"


def pytest_collection_finish() -> None:
    """Thousands of collected tests live to the end, and runs of the simulator make a lot that is not garbage."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def _name_group(item: pytest.Item, group: str) -> None:
    """Make the group the end of a test's id, where xdist looks for it. From pytest 9.2 on ids are objects, and what
    xdist 3.8 sets is a field that nobody reads any more: every process would start a Java of its own."""
    if item.config.getoption("loadgroup", False) and hasattr(item, "id"):
        object.__setattr__(item, "_id", type(item.id).parse(f"{item.nodeid}@{group}"))


def _folder(item: pytest.Item) -> str:
    return _folder_of(item.path)


@cache
def _folder_of(file: Path) -> str:
    return file.relative_to(Path(__file__).parent).parts[0]


def _order(items: list[pytest.Item]) -> None:
    """Sort them by turn; the tests of each folder are spread evenly over its turn."""
    sizes = Counter(map(_folder, items))
    seen: Counter[str] = Counter()
    places: dict[pytest.Item, tuple[int, float]] = {}
    for item in items:
        folder = _folder(item)
        places[item] = TURNS.get(folder, LAST), seen[folder] / sizes[folder]
        seen[folder] += 1
    items.sort(key=places.__getitem__)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The session of this process; two cores and four attempts at each task."""
    problem = missing_for_spark()
    if problem is not None:
        pytest.skip(problem)
    with open_session("tests", "local[2,4]", SPARK_OPTIONS) as session:
        yield session
