"""What one archiver fetches from others that keep less than everything."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from ordercast.archive.branches import Cause, Stretch, branch_of
from ordercast.archive.entries import Item
from ordercast.archive.files import GroupFiles
from ordercast.archive.layout import group_folder
from ordercast.archive.places import NO_VIEW, Place
from ordercast.archive.reader import Archive
from ordercast.archive.reading import GroupReader, Lost
from ordercast.archive.transfer import Donor, Filling
from ordercast.disk.writer import DiskWriter
from tests.unit.archive.stories import batch, records_of
from tests.unit.archive.test_files import ROOT, STORY, records, write

LONG: list[Item] = [*STORY, *(batch(b"x" * 90, seq=10 + number) for number in range(10))]
END = Place(ROOT.name, 17)


def archive_of(folder: Path, items: list[Item], *, kept_from: int = 1) -> GroupFiles:
    """Each item in a segment of its own."""
    files = GroupFiles(group_folder(folder, "orders"))
    write(files, ROOT, items, segment_size=1)
    for path in sorted((files.folder / ROOT.name).glob("*.segment")):
        if int(path.stem) < kept_from:
            path.unlink()
    return files


async def filled(
    files: GroupFiles, donors: Sequence[tuple[Path, GroupFiles]], told: list[str], end: Place = END
) -> None:
    async with AsyncExitStack() as stack:
        addresses = []
        for folder, found in donors:
            source = (GroupReader(folder, "orders"), found)
            donor = await stack.enter_async_context(Donor("127.0.0.1", 0, lambda group, source=source: source))  # type: ignore[misc]
            addresses.append(donor.where)
        journal = DiskWriter(0)
        filling = Filling("orders", files, journal, told.append)
        await asyncio.wait_for(filling.up_to(end, lambda: addresses), 30)
        await journal.close()


def test_what_is_here_stays_when_others_keep_only_what_came_later(tmp_path: Path) -> None:
    ours, theirs = archive_of(tmp_path / "ours", STORY), archive_of(tmp_path / "theirs", LONG, kept_from=12)
    told: list[str] = []
    asyncio.run(filled(ours, [(tmp_path / "theirs", theirs)], told))
    assert told == [f"orders: {ROOT.name}:8 to 11 is kept by nobody who could be asked"]
    for files in (ours, GroupFiles(group_folder(tmp_path / "ours", "orders"))):
        assert files.durable() == {ROOT.name: (12, 17)}, "others are told of what has no hole"
        files.move_tip(END)
        files.sync()
        reader = Archive(tmp_path / "ours").group("orders")
        assert [entry.place.number for entry in reader.entries(Stretch(ROOT.name, 1, 7))] == list(range(1, 8))
        assert [entry.place.number for entry in reader.entries(Stretch(ROOT.name, 12, 17))] == list(range(12, 18))
        with pytest.raises(Lost, match=f"{ROOT.name}:8 of orders is not in the archive, only from {ROOT.name}:12 on"):
            list(reader.entries(Stretch(ROOT.name, 1, 17)))
        archive = Archive(tmp_path / "ours")
        assert [entry.place.number for entry in archive.read("orders")] == list(range(12, 18)), "what is kept whole"
        first = next(iter(archive.read("orders")))
        assert reader.at_time(first.time_ns) == Place(ROOT.name, 11)
        with pytest.raises(Lost, match=f"{ROOT.name}:4 of orders is not kept any more, only from {ROOT.name}:12 on"):
            reader.between(Place(ROOT.name, 3), END)
    write(ours, ROOT, [batch(b"more", seq=90)], after=17)
    assert ours.durable() == {ROOT.name: (12, 18)}
    ours.retain(size_max=1, older_than=None)
    assert ours.durable() == {ROOT.name: (18, 18)}


def test_a_hole_is_left_only_when_nobody_has_what_is_missing(tmp_path: Path) -> None:
    ours, whole = archive_of(tmp_path / "ours", STORY), archive_of(tmp_path / "whole", LONG)
    less = archive_of(tmp_path / "less", LONG, kept_from=12)
    told: list[str] = []
    asyncio.run(filled(ours, [(tmp_path / "less", less), (tmp_path / "whole", whole)], told))
    ours.move_tip(END)
    ours.sync()
    assert records(tmp_path / "ours") == records_of(ROOT.name, 1, LONG) and told == []


def test_the_least_hole_is_left_and_what_others_have_in_between_is_taken(tmp_path: Path) -> None:
    ours = archive_of(tmp_path / "ours", STORY)
    donors = [
        (tmp_path / "least", archive_of(tmp_path / "least", LONG, kept_from=15)),
        (tmp_path / "stale", archive_of(tmp_path / "stale", LONG[:-4], kept_from=10)),
        (tmp_path / "less", archive_of(tmp_path / "less", LONG, kept_from=13)),
    ]
    told: list[str] = []
    asyncio.run(filled(ours, donors, told))
    assert ours.durable() == {ROOT.name: (10, 17)}
    assert told[0] == f"orders: {ROOT.name}:8 to 9 is kept by nobody who could be asked"


def test_a_hole_in_one_branch_is_no_reason_for_one_in_the_next(tmp_path: Path) -> None:
    fork = branch_of("orders", Cause.FORK, NO_VIEW, ("a@n1",), (Place(ROOT.name, 7),))
    items: list[Item] = [batch(b"%d" % seq, seq=seq) for seq in range(20, 24)]
    donors = []
    for name, root_from, fork_from in (("one", 4, 10), ("other", 6, 8), ("third", 5, 9)):
        files = archive_of(tmp_path / name, STORY, kept_from=root_from)
        write(files, fork, items, after=7, segment_size=1)
        for number in range(8, fork_from):
            (files.folder / fork.name / f"{number:020}.segment").unlink()
        donors.append((tmp_path / name, files))
    ours, told = GroupFiles(group_folder(tmp_path / "ours", "orders")), list[str]()
    asyncio.run(filled(ours, donors, told, Place(fork.name, 11)))
    assert ours.durable() == {ROOT.name: (4, 7), fork.name: (8, 11)}
    assert told == [f"orders: {ROOT.name}:1 to 3 is kept by nobody who could be asked"]


def test_a_refused_write_behind_a_hole_leaves_none(tmp_path: Path) -> None:
    ours, theirs = archive_of(tmp_path / "ours", STORY), archive_of(tmp_path / "theirs", LONG, kept_from=12)
    (frame,) = GroupReader(tmp_path / "theirs", "orders").frames(Stretch(ROOT.name, 12, 12))
    ours.append(ROOT.name, [bytes(frame.data)], theirs.state(Place(ROOT.name, 11)), is_own=False)
    ours.back()
    assert ours.durable() == {ROOT.name: (1, 7)}
    write(ours, ROOT, LONG)
    assert ours.durable() == {ROOT.name: (1, 17)}
