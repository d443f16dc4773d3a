"""The files of a journal: what is read back, what a crash leaves, and what is damage."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from ordercast.disk.folder import DiskFolder
from ordercast.model.errors import UsageError
from ordercast.model.events import ViewId
from ordercast.model.ids import ConfigurationId, Position, ProcessId
from ordercast.model.lineage import Lineage, Term
from ordercast.replicated.effects import Freeze, Point, Snapshot, Write
from ordercast.replicated.journal import Journal, commands_note, stance_note
from ordercast.replicated.live_journal import LiveJournal
from ordercast.replicated.quorum import Electorate, Life
from ordercast.replicated.sessions import Sessions
from ordercast.replicated.stance import Stance, decode_stance, encode_stance
from ordercast.replicated.track import EMPTY, Held, Rank, Track
from ordercast.replicated.wire import Preface, encode_preface

from .test_failures import bounded

VIEW = ViewId(ConfigurationId(4, ProcessId(1)), Position(ConfigurationId(4, ProcessId(1)), 7, 0))
TERM = Term(0, VIEW)
FORMED = Electorate(Point(TERM, 0), (Life("kv@n1", 77, 0),))


def stance(track: Track) -> Stance:
    return Stance(0, VIEW, True, FORMED, Rank(track.lineage, track.term, track.count, track.digest))


def opened(folder: Path, memory: int = 77) -> Journal:
    return Journal(DiskFolder(folder), "accounts", "kv@n1", memory)


def filled(folder: Path, count: int = 3) -> tuple[Journal, Track]:
    """A journal with so many commands, each in a write of its own, all safe."""
    journal, track = opened(folder), Track(Lineage(TERM), TERM)
    journal.append(1, [stance_note(stance(track))])
    for number in range(count):
        held = Held("kv@n1", b"command %d" % number)
        journal.append(number + 2, [commands_note([held])])
        journal.sync()
        track.extend([held])
    return journal, track


def the_file(folder: Path) -> Path:
    (path,) = folder.glob("*.journal")
    return path


def test_a_stance_is_read_as_it_was_written() -> None:
    for each in (Stance(3, None, False, None, None), stance(Track(Lineage(TERM), TERM))):
        assert decode_stance(encode_stance(each)) == each


def test_what_was_written_is_remembered(tmp_path: Path) -> None:
    _, track = filled(tmp_path)
    memory, found, picture, held = opened(tmp_path, 78).remembered
    assert (memory, picture, found) == (77, None, stance(track))
    assert held == tuple(track.held)


@pytest.mark.parametrize("kept", [0, 1, 20, 40])
def test_a_torn_end_is_cut_off(tmp_path: Path, kept: int) -> None:
    journal, track = filled(tmp_path)
    size = journal.size
    journal.append(9, [commands_note([Held("kv@n1", b"never safe")])])
    data = the_file(tmp_path).read_bytes()
    the_file(tmp_path).write_bytes(data[: size + kept])
    assert opened(tmp_path).remembered.held == tuple(track.held)
    assert the_file(tmp_path).stat().st_size == size


def test_what_was_safe_and_is_damaged_is_not_cut_off(tmp_path: Path) -> None:
    filled(tmp_path)
    data = bytearray(the_file(tmp_path).read_bytes())
    data[data.index(b"command 0")] ^= 1
    the_file(tmp_path).write_bytes(data)
    with pytest.raises(UsageError, match="damaged at byte"):
        opened(tmp_path)


def test_a_picture_takes_the_place_of_what_is_in_it_and_what_came_meanwhile_stays(tmp_path: Path) -> None:
    journal, track = filled(tmp_path)
    preface = encode_preface(Preface(track.count, track.digest, Sessions(), ()))
    journal.begin(encode_stance(stance(track)))
    journal.add(preface)
    late = Held("kv@n1", b"late")
    journal.append(6, [commands_note([late])])
    journal.add(b"the state")
    journal.finish()
    journal.append(6, [commands_note([late])])  # tried once more, as after a disk that refused something
    journal.sync()
    track.extend([late])
    _, found, picture, held = opened(tmp_path).remembered
    assert found == stance(track) and held == (late,)
    assert picture is not None and (picture.preface, picture.pieces) == (preface, (b"the state",))
    assert the_file(tmp_path).name.startswith("00000002")


def test_a_picture_that_was_not_complete_is_as_if_it_never_was(tmp_path: Path) -> None:
    journal, track = filled(tmp_path)
    journal.begin(encode_stance(stance(track)))
    journal.sync()
    assert opened(tmp_path).remembered.held == tuple(track.held)
    assert [path.name for path in tmp_path.iterdir()] == ["00000001.journal"]


def test_after_a_refusal_all_is_as_it_was_when_it_was_safe(tmp_path: Path) -> None:
    journal, track = filled(tmp_path)
    more = [commands_note([Held("kv@n1", b"more")])]
    journal.append(6, more)
    journal.back()
    journal.append(6, more)
    journal.sync()
    assert opened(tmp_path).remembered.held == (*track.held, Held("kv@n1", b"more"))


def test_nothing_is_there_at_first(tmp_path: Path) -> None:
    assert opened(tmp_path).remembered == (77, None, None, ())
    assert Track(Lineage(TERM), TERM).digest == EMPTY


class OnePiece:
    """A picture of one piece."""

    def pieces(self, start: int = 0) -> Iterator[bytes]:
        return iter((b"the state",)[start:])


@bounded
async def test_a_write_in_the_same_turn_as_a_picture_comes_behind_it(tmp_path: Path) -> None:
    _, track = filled(tmp_path)
    journal, pictured = await LiveJournal.opened(tmp_path, "accounts", "kv@n1"), asyncio.Event()
    journal.begin(lambda number: None, lambda size: pictured.set(), lambda error: None)
    preface = encode_preface(Preface(track.count, track.digest, Sessions(), ()))
    journal.take(Snapshot(encode_stance(stance(track)), Freeze(Point(TERM, 0), preface, OnePiece())))
    late = Held("kv@n1", b"late")
    journal.write(Write(9, (commands_note([late]),)))
    await pictured.wait()
    await journal.close()
    track.extend([late])
    _, found, picture, held = opened(tmp_path).remembered
    assert picture is not None and held == (late,) and found == stance(track)
