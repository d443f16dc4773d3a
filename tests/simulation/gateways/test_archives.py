"""Archives over a network of rings: positions of four numbers, over views, and the same history at all archivers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ordercast.archive.branches import Cause
from ordercast.archive.entries import record_bytes
from ordercast.archive.reader import Archive
from ordercast.model.events import Message, View
from ordercast.model.ids import Position
from ordercast.trace.columns import signed

from .archives import GROUP, OPTIONS, Archives

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HOSTS = (4, 1)  # one on each ring, no gateway
SEED = 3


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("archive")


@pytest.fixture(scope="module")
def archives(folder: Path) -> Archives:
    """Two archivers, who are parted, come together, and lose the only gateway."""
    archives = Archives(folder, HOSTS)
    result = archives.run(OPTIONS, SEED)
    assert result.settled and result.is_valid, result.verdict.sentence
    return archives


def positions_in(folder: Path) -> list[Position]:
    return [entry.entry.position for entry in Archive(folder).read(GROUP) if isinstance(entry.entry, Message)]


def test_archivers_on_different_rings_have_one_history(archives: Archives) -> None:
    one, other = archives.archivers.values()
    assert one.tip == other.tip and one.lineage.is_settled and other.lineage.is_settled
    assert {branch.cause for branch in one.tree.values()} == {Cause.ROOT, Cause.FORK, Cause.MERGE}
    shared = one.records.keys() & other.records.keys()
    assert all(one.records[place] == other.records[place] for place in shared)
    together = {name for name, branch in one.tree.items() if branch.cause is not Cause.FORK}
    assert {place.branch for place in shared} == together
    mine, theirs = ([place for place in each.history() if place in shared] for each in (one, other))
    assert mine == theirs


def test_positions_have_four_numbers_and_rise_over_views(archives: Archives, folder: Path) -> None:
    positions = positions_in(folder)
    assert len(positions) > 30 and positions == sorted(set(positions))
    assert len({position.origin.seq for position in positions}) > 10, "ticks"
    assert len({position.origin.representative for position in positions}) > 3, "tags of rings"
    views = [entry.entry for entry in Archive(folder).read(GROUP) if isinstance(entry.entry, View)]
    assert len(views) > 3 and [view.id for view in views] == sorted({view.id for view in views})


def test_what_is_on_disk_is_what_the_archiver_has(archives: Archives, folder: Path) -> None:
    one = next(iter(archives.archivers.values()))
    entries = list(Archive(folder).read(GROUP))
    assert [entry.place for entry in entries] == one.history()
    assert all(record_bytes(entry.place, entry.entry) == one.records[entry.place] for entry in entries)


@pytest.mark.long
@pytest.mark.spark
def test_spark_reads_it(archives: Archives, folder: Path, spark: SparkSession) -> None:
    rows = spark.read.format("ordercast").load(str(folder)).orderBy("number").collect()
    found = [(row.position.origin_seq, row.position.origin_rep, row.position.number, row.position.slot) for row in rows]
    assert found == [(*map(signed, at.origin), at.number, at.slot) for at in positions_in(folder)]
