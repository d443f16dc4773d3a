"""The session, and what is said where there can be none."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ordercast.model.errors import UsageError
from ordercast.pipeline import spark_session as session_module
from ordercast.pipeline.spark_session import is_local, missing_for_spark, open_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def java_that_says(folder: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    java = folder / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\necho '{text}' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(folder))


def test_without_pyspark_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_module, "find_spec", lambda name: None)
    assert missing_for_spark() == "Spark is not installed: pip install 'ordercast[spark]'"


def test_without_java_the_package_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    problem = missing_for_spark()
    assert problem is not None and problem.startswith("Spark needs Java, and there is none: install Java 17")


@pytest.mark.parametrize(
    "said, problem",
    [
        ('openjdk version "1.8.0_412"', "is Java 8, which is too old"),
        ('openjdk version "11.0.2" 2019', "is Java 11, which is too old"),
        ('openjdk version "17.0.1" 2021', None),
        ('openjdk version "21" 2023', None),
        ("what?", "does not tell its version"),
    ],
)
def test_versions_of_java(said: str, problem: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    java_that_says(tmp_path, said, monkeypatch)
    found = missing_for_spark()
    assert found is None if problem is None else found is not None and problem in found


def test_a_home_of_java_without_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    problem = missing_for_spark()
    assert problem is not None and problem.startswith(f"JAVA_HOME is {tmp_path}, but")


def test_a_problem_is_an_error_of_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_module, "missing_for_spark", lambda: "no Spark here")
    with pytest.raises(UsageError, match="no Spark here"), open_session("test"):
        pass


def test_masters() -> None:
    assert all(is_local(master) for master in ("local", "local[2]", "local[*]", "local[2,4]"))
    assert not any(is_local(master) for master in ("spark://h:7077", "local-cluster[2,1,1024]", "yarn"))


@pytest.mark.spark
def test_an_open_session_is_lent_and_left_open(spark: SparkSession) -> None:
    with open_session("again") as lent:
        assert lent is spark
    assert spark.range(3).count() == 3


@pytest.mark.spark
def test_another_master_is_refused(spark: SparkSession) -> None:
    with pytest.raises(UsageError, match=r"session on local\[2,4\] already"), open_session("again", "local[3]"):
        pass


@pytest.mark.spark
def test_workers_run_this_python(spark: SparkSession) -> None:
    assert spark.sparkContext.parallelize([0], 1).map(lambda _: sys.executable).collect() == [sys.executable]


@pytest.mark.spark
def test_tests_of_spark_go_to_one_process(request: pytest.FixtureRequest) -> None:
    """xdist reads groups off the ends of ids."""
    if request.config.getoption("loadgroup", False):
        assert request.node.nodeid.endswith("@spark")
