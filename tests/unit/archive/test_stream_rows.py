"""Entries of an archive as Arrow batches: what sinks committed."""

from __future__ import annotations

from pathlib import Path

import pytest

from ordercast.archive.branches import Stretch
from ordercast.archive.entries import Item
from ordercast.archive.files import GroupFiles
from ordercast.archive.layout import group_folder, segments_of
from ordercast.archive.places import sink_group
from ordercast.archive.reading import GroupReader, Lost
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


def test_a_batch_of_a_sink_whose_parts_are_gone_is_passed_over_as_a_whole(tmp_path: Path) -> None:
    items = [of_sink(part_bytes(Part("q", 0, 0, "a", number, [b"0"])), number + 1) for number in range(2)]
    items.append(of_sink(marker_bytes(Marker("q", 0, ((0, "a", 2),))), 3))
    items.append(of_sink(part_bytes(Part("q", 1, 0, "b", 0, [b"1"])), 4))
    items.append(of_sink(marker_bytes(Marker("q", 1, ((0, "b", 1),))), 5))
    files = GroupFiles(group_folder(tmp_path, "orders"))
    write(files, ROOT, items, segment_size=1)
    reader = GroupReader(tmp_path, "orders")
    (_, oldest), *_ = segments_of(reader.path / ROOT.name)
    oldest.unlink()

    def read(fails_on_loss: bool) -> list[bytes]:
        frames = reader.frames(Stretch(ROOT.name, 2, 5))
        found = rows.batches_of(reader, frames, with_views=False, columns=["data"], fails_on_loss=fails_on_loss)
        return [row["data"] for one in found for row in one.to_pylist()]

    assert read(fails_on_loss=False) == [b"1"]
    with pytest.raises(Lost, match=f"{ROOT.name}:1 of orders is not kept any more"):
        read(fails_on_loss=True)
