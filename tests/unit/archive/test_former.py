"""Archives of format 1 stay readable, and go on in the format of today. `tests/vectors/archive-1` is one, written when
that was the format of today."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ordercast.archive.entries import record_bytes
from ordercast.archive.files import GroupFiles
from ordercast.archive.frames import FORMER_MAGIC, MAGIC, cut, header_from, is_whole, runs_of, whole_frames
from ordercast.archive.layout import group_folder, segments_of, start_from
from ordercast.archive.pen import Pen
from ordercast.archive.places import Place
from ordercast.archive.reader import Archive
from ordercast.model.events import Batch, Message, Reason, Transition, View, ViewId
from ordercast.model.ids import ConfigurationId, Incarnation, NodeId, Places, Position, process_id_from
from ordercast.model.service import Service

FORMER = Path(__file__).parents[2] / "vectors" / "archive-1"
ROOT, FORK = "67359f37f27ed4a7", "b49a4c33beb77954"
ME = process_id_from(NodeId(1), Incarnation(1))
RING, TRANSITIONAL, NEXT = (ConfigurationId(seq, ME) for seq in (8, 10, 12))
A, B = "alice@n1", "bob@n2"
FIRST = ViewId(RING, Position(RING, 5, 1))
LAST = ViewId(TRANSITIONAL, Position(TRANSITIONAL, 10, 2))


def said(data: bytes, number: int, slot: int, service: Service = Service.AGREED) -> Message:
    return Message(("orders",), A, data, Position(RING, number, slot), service)


STORY = [
    View("orders", (A, B), (A, B), Reason.JOIN, (B,), FIRST),
    said(b"one", 6, 1),
    said(b"two", 7, 0),
    said(b"three", 7, 1, Service.SAFE),
    *(Message(("orders", "news"), B, b"xxxxx", Position(RING, 9, slot), Service.AGREED) for slot in range(4)),
    Transition("orders", (A,), FIRST),
    View("orders", (A,), (A,), Reason.LEAVE, (B,), LAST),
    said(b"late", 12, 0),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(FORMER, tmp_path / "archive"))


def told(folder: Path) -> list[object]:
    return [entry.entry for entry in Archive(folder).read("orders")]


def test_an_archive_of_format_1_is_read(folder: Path) -> None:
    assert told(folder) == STORY
    places = [entry.place for entry in Archive(folder).read("orders")]
    assert places == [Place(ROOT if number < 10 else FORK, number) for number in range(1, 12)]
    reader = Archive(folder).group("orders")
    assert reader.at_position(Position(RING, 7, 1)) == Place(ROOT, 3)
    assert Archive(folder).place("orders", f"{RING.seq}.{RING.representative}:7.1") == Place(ROOT, 3)
    assert Archive(folder).place("orders", str(Position(RING, 7, 1))) == Place(ROOT, 3)


def test_an_archive_of_format_1_goes_on_in_the_format_of_today(folder: Path) -> None:
    files = GroupFiles(group_folder(folder, "orders"))
    pen = Pen()
    assert files.tip == Place(FORK, 11)
    pen.go_on(files.tip, files.state(files.tip))
    assert pen.view == LAST
    places = Places(NEXT, (1 << 63) - 2, 512, 1, 0)
    pen.write(Batch(("orders",), A, [b"new", b"newer"], [4, 4], places))
    pen.flush()
    files.append(FORK, [draft.seal(5) for draft in pen.drafts], None, is_own=True)  # into the former segment
    files.sync()
    files.close()
    *former, new, newer = told(folder)
    assert former == STORY
    assert isinstance(new, Message) and new.position == Position(NEXT, (1 << 63) - 2, 512)
    assert isinstance(newer, Message) and newer.position == Position(NEXT, (1 << 63) - 1, 512)
    (_, segment), *_ = segments_of(folder / "orders" / FORK)
    data = segment.read_bytes()
    _, at = start_from(data)
    assert [data[at : at + 4] for at, _ in whole_frames(data, at)] == [FORMER_MAGIC, MAGIC]


def test_a_frame_of_format_1_that_is_cut_has_the_same_entries_in_the_format_of_today() -> None:
    (_, segment), *_ = segments_of(FORMER / "orders" / ROOT)
    data = segment.read_bytes()
    _, at = start_from(data)
    (_, header), *_ = whole_frames(data, at)
    frame = data[at : at + header.size]
    part = cut(frame, header, header.first, header.last)
    assert (frame[:4], part[:4]) == (FORMER_MAGIC, MAGIC)
    assert header_from(part)._replace(size=0, checksum=0) == header._replace(size=0, checksum=0, is_former=False)
    one, two = (
        [record_bytes(Place(ROOT, run.first), run.item) for run in runs_of(bytes_, head) if isinstance(run.item, View)]
        for bytes_, head in ((frame, header), (part, header_from(part)))
    )
    assert one == two


def test_a_frame_whose_magic_was_damaged_is_not_one_of_the_other_format() -> None:
    (_, segment), *_ = segments_of(FORMER / "orders" / ROOT)
    data = segment.read_bytes()
    _, at = start_from(data)
    damaged = MAGIC + data[at + 4 :]
    assert not is_whole(damaged, 0, header_from(damaged))
