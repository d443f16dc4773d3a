"""Entries of an archive as Arrow batches: what sinks committed."""

from __future__ import annotations

from pathlib import Path

import pytest

from ordercast.archive.branches import Stretch
from ordercast.archive.entries import Item
from ordercast.archive.files import GroupFiles
from ordercast.archive.layout import group_folder
from ordercast.archive.places import sink_group
from ordercast.archive.reading import GroupReader
from ordercast.archive.rows import Marker, Part, marker_bytes, part_bytes
from tests.unit.archive.stories import batch
from tests.unit.archive.test_files import ROOT, write

rows = pytest.importorskip("ordercast.pipeline.stream.rows")


def of_sink(data: bytes, seq: int) -> Item:
    return batch(data, seq=seq, groups=("orders", sink_group("etl")))


def test_a_batch_of_a_sink_is_read_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever its size, no more than a little more than `SIZE` is in memory at once."""
    parts = [[b"%d.%d" % (part, row) * 10 for row in range(5)] for part in range(6)]
    items = [of_sink(part_bytes(Part("q", 0, 0, "a", number, part)), number + 1) for number, part in enumerate(parts)]
    items.append(of_sink(marker_bytes(Marker("q", 0, ((0, "a", len(parts)),))), 9))
    files = GroupFiles(group_folder(tmp_path, "orders"))
    write(files, ROOT, items)
    files.close()
    monkeypatch.setattr(rows, "SIZE", 200)
    reader = GroupReader(tmp_path, "orders")
    frames = reader.frames(Stretch(ROOT.name, 1, 7))
    found = list(rows.batches_of(reader, frames, with_views=False, columns=["number", "row", "data", "sender"]))
    assert [one.num_rows for one in found] == [10, 10, 10]
    table = [row for one in found for row in one.to_pylist()]
    assert [row["data"] for row in table] == [row for part in parts for row in part]
    assert [(row["number"], row["row"], row["sender"]) for row in table] == [(7, row, "etl") for row in range(30)]
