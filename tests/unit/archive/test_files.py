"""The files of a group: a crash at any byte leaves a readable prefix, and writing goes on behind it."""

from __future__ import annotations

import os
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ordercast.archive.branches import Branch, Cause, branch_of
from ordercast.archive.entries import Item, record_bytes
from ordercast.archive.files import GroupFiles
from ordercast.archive.layout import SEGMENT, TIP, group_folder, opening_size
from ordercast.archive.pen import Pen
from ordercast.archive.places import NO_VIEW, Place
from ordercast.archive.reader import Archive, Start
from ordercast.archive.reading import Lost
from ordercast.model.errors import UsageError, WireError
from ordercast.model.events import Message
from tests.unit.archive.stories import batch, records_of, transition, view

ROOT = branch_of("orders", Cause.ROOT, NO_VIEW, ("a@n1",), ())
STORY: list[Item] = [
    view(1, "a@n1"),
    batch(b"one", b"two", seq=2),
    view(3, "a@n1", "b@n2"),
    batch(b"three" * 20, seq=4),
    transition(3, "a@n1"),
    batch(b"", seq=6),
]


def write(
    files: GroupFiles, branch: Branch, items: list[Item], *, after: int = 0, segment_size: int = 150, since: int = 1_000
) -> None:
    """Each item as a frame of its own, a nanosecond after the one before."""
    files.begin(branch, is_own=True)
    pen = Pen(segment_size)
    pen.go_on(Place(branch.name, after), files.state(Place(branch.name, after)))
    for item in items:
        pen.write(item)
        pen.flush()
    for number, draft in enumerate(pen.drafts):
        files.append(draft.branch, [draft.seal(since + number)], draft.start, is_own=True)
    files.sync()


def records(folder: Path) -> list[bytes]:
    return [record_bytes(entry.place, entry.entry) for entry in Archive(folder).read("orders")]


def test_what_was_written_is_read(tmp_path: Path) -> None:
    files = GroupFiles(group_folder(tmp_path, "orders"))
    write(files, ROOT, STORY)
    files.close()
    assert records(tmp_path) == records_of(ROOT.name, 1, STORY)
    assert len(list(tmp_path.rglob(f"*{SEGMENT}"))) > 1


def test_a_crash_at_any_byte_leaves_a_readable_prefix(tmp_path: Path) -> None:
    files = GroupFiles(group_folder(tmp_path / "whole", "orders"))
    write(files, ROOT, STORY, segment_size=1 << 20)
    files.close()
    expected = records_of(ROOT.name, 1, STORY)
    (segment,) = (tmp_path / "whole").rglob(f"*{SEGMENT}")
    data, seen = segment.read_bytes(), set()
    for size in [*range(0, len(data), 19), len(data)]:  # all bytes would take too long
        folder = tmp_path / "torn"
        shutil.copytree(tmp_path / "whole", folder)
        (folder / segment.relative_to(tmp_path / "whole")).write_bytes(data[:size])
        (group_folder(folder, "orders") / TIP).unlink()  # nothing had been published
        again = GroupFiles(group_folder(folder, "orders"))
        found = records(folder)
        assert found == expected[: len(found)]
        more: list[Item] = [batch(b"after the crash", seq=50)]
        write(again, ROOT, more, after=len(found))
        again.close()
        assert records(folder) == [*found, *records_of(ROOT.name, len(found) + 1, more)]
        seen.add(len(found))
        shutil.rmtree(folder)
    assert seen == {0, 1, 3, 4, 5, 6, 7}


def test_rubbish_behind_the_last_frame_is_cut_off(tmp_path: Path) -> None:
    files = GroupFiles(group_folder(tmp_path, "orders"))
    write(files, ROOT, STORY, segment_size=1 << 20)
    files.close()
    (segment,) = tmp_path.rglob(f"*{SEGMENT}")
    size = segment.stat().st_size
    with segment.open("ab") as file:
        file.write(b"OCA1" + bytes(200))
    GroupFiles(group_folder(tmp_path, "orders")).close()
    assert segment.stat().st_size == size
    assert records(tmp_path) == records_of(ROOT.name, 1, STORY)


def test_what_had_been_safe_is_not_cut_off(tmp_path: Path) -> None:
    """No crash tears it: a disk has damaged it, and a person decides."""
    files = GroupFiles(group_folder(tmp_path, "orders"))
    write(files, ROOT, STORY, segment_size=1 << 20)
    files.close()
    (segment,) = tmp_path.rglob(f"*{SEGMENT}")
    whole = segment.read_bytes()
    for damaged in (whole[:-1], whole[:200] + bytes((whole[200] ^ 1,)) + whole[201:], b"?" + whole[1:], b""):
        segment.write_bytes(damaged)
        with pytest.raises(UsageError, match=r"is damaged at byte [\d,]+, and entries up to 7 had been safe: put back"):
            GroupFiles(group_folder(tmp_path, "orders"))
        assert segment.read_bytes() == damaged
    segment.write_bytes(whole)
    GroupFiles(group_folder(tmp_path, "orders")).close()
    assert records(tmp_path) == records_of(ROOT.name, 1, STORY)


def test_what_a_kill_left_is_synced_before_anybody_reads_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = GroupFiles(group_folder(tmp_path, "orders"))
    write(files, ROOT, STORY[:2], segment_size=1 << 20)
    monkeypatch.setattr(files, "sync", lambda: None)  # it is killed before that
    write(files, ROOT, STORY[2:4], after=3, segment_size=1 << 20)
    (*_, segment) = sorted(tmp_path.rglob(f"*{SEGMENT}"))
    with segment.open("ab") as file:
        file.write(b"torn")
    done: list[tuple[str, int, int]] = []
    sync, write_at = os.fdatasync, os.pwrite

    def fdatasync(file: int) -> None:
        done.append(("sync", os.fstat(file).st_ino, os.fstat(file).st_size))
        sync(file)

    def pwrite(file: int, data: bytes, at: int) -> int:
        done.append(("write", os.fstat(file).st_ino, len(data)))
        return write_at(file, data, at)

    monkeypatch.setattr(os, "fdatasync", fdatasync)
    monkeypatch.setattr(os, "pwrite", pwrite)
    again = GroupFiles(group_folder(tmp_path, "orders"))
    assert again.tip == Place(ROOT.name, 5)
    tip = group_folder(tmp_path, "orders") / TIP
    assert done == [
        ("sync", segment.stat().st_ino, segment.stat().st_size),
        ("write", tip.stat().st_ino, tip.stat().st_size),
    ]


def test_a_damaged_segment_is_no_hole(tmp_path: Path) -> None:
    """Whoever reads everything comes to it, and is told: nothing before it is passed over."""
    files = GroupFiles(group_folder(tmp_path, "orders"))
    write(files, ROOT, STORY)
    files.close()
    assert len(records(tmp_path)) == 7
    segment = sorted(tmp_path.rglob(f"*{SEGMENT}"))[0]
    whole = segment.read_bytes()
    head = opening_size(segment) + 8  # within the head of the first frame
    for damaged in (whole[:-1], whole[:head] + bytes((whole[head] ^ 1,)) + whole[head + 1 :], whole[:head]):
        segment.write_bytes(damaged)
        with pytest.raises((WireError, Lost)):
            records(tmp_path)
    segment.write_bytes(whole + b"more")
    assert len(records(tmp_path)) == 7, "nobody reads behind what is wanted"


def test_what_is_there_already_is_passed_over(tmp_path: Path) -> None:
    files = GroupFiles(group_folder(tmp_path, "orders"))
    write(files, ROOT, STORY)
    write(files, ROOT, [*STORY, batch(b"new", seq=9)])
    files.close()
    assert records(tmp_path) == records_of(ROOT.name, 1, [*STORY, batch(b"new", seq=9)])


def test_places_are_found_by_number_position_and_time(tmp_path: Path) -> None:
    files = GroupFiles(group_folder(tmp_path, "orders"))
    write(files, ROOT, STORY)
    files.close()
    archive = Archive(tmp_path)
    entries = list(archive.read("orders"))
    for entry in entries:
        before = Place(ROOT.name, entry.place.number - 1)
        assert archive.place("orders", entry.place.number) == before
        if isinstance(entry.entry, Message):
            assert archive.place("orders", entry.entry.position) == before
        reader = archive.group("orders")
        firsts = [one.place.number for one in entries if one.time_ns >= entry.time_ns]
        assert reader.at_time(entry.time_ns) == Place(ROOT.name, min(firsts) - 1)


def test_what_is_not_there_yet_is_waited_for(tmp_path: Path) -> None:
    """A number means from it on, also when others come before it."""
    files = GroupFiles(group_folder(tmp_path, "orders"))
    write(files, ROOT, STORY)
    archive, late = Archive(tmp_path), batch(b"late", seq=9)
    (message,) = late
    starts: list[Start] = [9, message.position, datetime.fromtimestamp(0.000_002, UTC)]
    for start in starts:
        assert archive.found("orders", start) is None and archive.place("orders", start) == Place(ROOT.name, 7)
    tails = [archive._grow("orders", start, True) for start in [*starts, "latest"]]
    assert [next(tail) for tail in tails] == [None] * 4
    write(files, ROOT, [batch(b"early", seq=8)], after=7)
    *early, latest = [next(tail) for tail in tails]
    assert early == [None] * 3 and latest is not None and latest.place.number == 8
    write(files, ROOT, [late], after=8, since=3_000)
    files.close()
    assert [entry.place.number for entry in map(next, tails) if entry is not None] == [9] * 4


def test_retention_takes_the_oldest_and_readers_are_told(tmp_path: Path) -> None:
    files = GroupFiles(group_folder(tmp_path, "orders"))
    write(files, ROOT, STORY, segment_size=1)
    removed = files.retain(size_max=1, older_than=None)
    assert len(removed) == len(STORY) - 1, "the one that is written stays"
    files.close()
    archive = Archive(tmp_path)
    assert [entry.place.number for entry in archive.read("orders")] == [7]
    with pytest.raises(Lost, match="is not kept any more, only from"):
        list(archive.read("orders", Place(ROOT.name, 2)))


def test_a_history_goes_through_branches(tmp_path: Path) -> None:
    files = GroupFiles(group_folder(tmp_path, "orders"))
    write(files, ROOT, STORY)
    other = branch_of("orders", Cause.FORK, NO_VIEW, ("b@n2",), (Place(ROOT.name, 3),))
    fork = branch_of("orders", Cause.FORK, NO_VIEW, ("a@n1",), (Place(ROOT.name, 4),))
    write(files, fork, [batch(b"ours", seq=20)], after=4)
    files.begin(other, is_own=False)
    merge = branch_of("orders", Cause.MERGE, NO_VIEW, (), (Place(fork.name, 5), Place(other.name, 9)))
    write(files, merge, [batch(b"together", seq=30)], after=9)
    files.close()
    archive = Archive(tmp_path)
    places = [entry.place for entry in archive.read("orders")]
    assert places == [*(Place(ROOT.name, n) for n in range(1, 5)), Place(fork.name, 5), Place(merge.name, 10)]
    assert [entry.place for entry in archive.read("orders", Place(ROOT.name, 4))] == places[4:]
    assert archive.group("orders").span(fork.name) == (5, 5)
    with pytest.raises(Lost, match="another history"):
        list(archive.read("orders", Place(ROOT.name, 6)))
