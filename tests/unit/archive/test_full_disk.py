"""A disk that refuses something loses nothing: what was handed over is written as soon as it can be."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ordercast.archive.files import GroupFiles
from ordercast.archive.keeper import write_drafts
from ordercast.archive.layout import group_folder
from ordercast.archive.pen import Draft, Pen
from ordercast.archive.places import Place
from ordercast.archive.reader import Archive
from ordercast.archive.spool import MEMORY_SIZE, Spool
from ordercast.disk import writer as module
from ordercast.disk.writer import DiskWriter
from ordercast.model.events import Batch
from tests.unit.archive.stories import batch, records_of
from tests.unit.archive.test_files import ROOT, STORY, records

CALLS = ("open", "write", "writev", "pwrite", "pwritev", "fsync", "fdatasync", "replace", "truncate", "mkdir")
PATIENCE_S = 30.0


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RETRY_S", 0.0001)
    monkeypatch.setattr(module, "RETRY_MAX_S", 0.001)


class Disk:
    """Refuses some of the calls that change something; a write may be torn, or take a part before it."""

    def __init__(self, refuses: Callable[[int], bool], *, tears: bool = False) -> None:
        self.calls = 0
        self.refused = 0
        self._refuses = refuses
        self._tears = tears

    @contextmanager
    def patched(self) -> Iterator[Disk]:
        with pytest.MonkeyPatch.context() as patch:
            for name in CALLS:
                patch.setattr(os, name, self._around(name, getattr(os, name)))
            yield self

    def _around(self, name: str, right: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **more: Any) -> Any:
            if name == "open" and not arguments[1] & os.O_CREAT:
                return right(*arguments, **more)
            self.calls += 1
            if not self._refuses(self.calls):
                return right(*arguments, **more)
            self.refused += 1
            if self._tears and name in ("write", "writev"):
                data = b"".join(arguments[1]) if name == "writev" else bytes(arguments[1])
                right(arguments[0], [data[:-1]] if name == "writev" else data[:-1])
            raise OSError(errno.ENOSPC, "No space left on device")

        return call


def drafts() -> list[list[Draft]]:
    """In three parts, on several segments."""
    pen = Pen(150)
    pen.begin(Place(ROOT.name, 0), ())
    for item in STORY:
        pen.write(item)
        pen.flush()
    return [pen.drafts[:2], pen.drafts[2:4], pen.drafts[4:]]


async def journaled(folder: Path, disk: Disk, told: list[str]) -> None:
    files = GroupFiles(group_folder(folder, "orders"))
    with disk.patched():
        journal = DiskWriter(0.0, told.append)
        journal.put(files, lambda: files.begin(ROOT, is_own=True))
        for part in drafts():
            write_drafts(journal, files, part)
            await asyncio.wait_for(journal.do(files, lambda: None), PATIENCE_S)
        await journal.close()
        files.close()


@pytest.mark.parametrize("tears", (False, True))
def test_a_refusal_at_any_call_loses_nothing(tmp_path: Path, tears: bool) -> None:
    expected = records_of(ROOT.name, 1, STORY)
    number, disk = 0, Disk(lambda call: False)
    while number == 0 or disk.refused:
        number += 1
        disk, told = Disk(lambda call, number=number: call == number, tears=tears), list[str]()  # type: ignore[misc]
        folder = tmp_path / str(number)
        asyncio.run(journaled(folder, disk, told))
        assert records(folder) == expected
        again = GroupFiles(group_folder(folder, "orders"))
        assert again.tip == Place(ROOT.name, len(expected))
        again.close()
        assert not disk.refused or ("No space left on device" in told[0] and "writes again" in told[1])
    assert number > 20, "that many calls were refused, one in each run"


def test_a_disk_that_refuses_for_long_is_waited_for(tmp_path: Path) -> None:
    disk, told = Disk(lambda call: 5 < call < 300), list[str]()
    asyncio.run(journaled(tmp_path, disk, told))
    assert records(tmp_path) == records_of(ROOT.name, 1, STORY) and disk.refused > 50
    assert len(told) == 2, "one sentence when it begins, one when it is over"


def test_room_is_made_where_something_need_not_be_kept(tmp_path: Path) -> None:
    async def work() -> None:
        files = GroupFiles(group_folder(tmp_path, "orders"))
        is_full = True

        def relieve() -> None:
            nonlocal is_full
            is_full = False

        with Disk(lambda call: is_full).patched():
            journal = DiskWriter(0.0, lambda text: None, relieve)
            await asyncio.wait_for(journal.do(files, lambda: files.begin(ROOT, is_own=True)), PATIENCE_S)
            await journal.close()
            files.close()

    asyncio.run(work())


def test_the_end_does_not_wait_for_a_full_disk(tmp_path: Path) -> None:
    async def work() -> None:
        files = GroupFiles(group_folder(tmp_path, "orders"))
        refused, told = asyncio.Event(), list[str]()

        def tell(text: str) -> None:
            told.append(text)
            refused.set()

        journal = DiskWriter(0.0, tell)
        await journal.do(files, lambda: files.begin(ROOT, is_own=True))
        first, *others = drafts()
        write_drafts(journal, files, first)
        await journal.do(files, lambda: None)
        with Disk(lambda call: True).patched():
            for part in others:
                write_drafts(journal, files, part)
            waiting = asyncio.ensure_future(journal.do(files, lambda: None))
            await asyncio.wait_for(refused.wait(), PATIENCE_S)
            await journal.close()
            with pytest.raises(OSError, match="No space left"):
                await waiting
        files.close()
        assert isinstance(journal.failure, OSError)

    asyncio.run(work())
    found = records(tmp_path)
    assert found == records_of(ROOT.name, 1, STORY)[: len(found)] and len(found) == 3


def test_a_mistake_of_our_own_is_not_waited_for(tmp_path: Path) -> None:
    def wrong() -> None:
        raise ValueError("out of order")

    async def work() -> None:
        files = GroupFiles(group_folder(tmp_path, "orders"))
        journal = DiskWriter(0.0)
        with pytest.raises(ValueError, match="out of order"):
            await journal.do(files, wrong)
        await journal.close()
        files.close()

    asyncio.run(work())


def test_a_spool_without_room_keeps_what_it_has_and_says_so(tmp_path: Path) -> None:
    spool, large = Spool(tmp_path), batch(bytes(MEMORY_SIZE), seq=2)
    assert spool.put(large) is large and spool.has_room()
    small = batch(b"one", b"two", seq=3)
    with Disk(lambda call: True).patched():
        assert spool.put(small) is small and not spool.has_room(), "it is here, and no more should come"
    assert spool.has_room()
    waiting = spool.put(small)
    assert waiting is not small
    found = spool.get(waiting)
    assert isinstance(found, Batch) and list(found.data) == [b"one", b"two"]
    spool.clear()


def test_refusals_now_and_then_lose_nothing_either(tmp_path: Path) -> None:
    draw = Random(4)
    asyncio.run(journaled(tmp_path, Disk(lambda call: draw.random() < 0.1, tears=True), []))
    assert records(tmp_path) == records_of(ROOT.name, 1, STORY)
    assert Archive(tmp_path).tip("orders") == Place(ROOT.name, len(records_of(ROOT.name, 1, STORY)))
