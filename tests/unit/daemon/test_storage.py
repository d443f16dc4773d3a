"""Stable storage keeps what it was given, says when it cannot, and never gives a process number twice."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path

import pytest

from ordercast.daemon.storage import FolderStorage, MemoryStorage
from ordercast.model.errors import UsageError

PATIENCE_S = 30.0


@contextmanager
def opened(folder: Path) -> Iterator[FolderStorage]:
    storage = FolderStorage(folder)
    try:
        yield storage
    finally:
        storage.close()


def written(storage: FolderStorage, key: str, value: bytes) -> OSError | None:
    """What the writer is told."""
    told: Future[OSError | None] = Future()
    storage.write(key, value, told.set_result)
    return told.result(PATIENCE_S)


def test_what_was_written_is_there_in_the_next_life(tmp_path: Path) -> None:
    with opened(tmp_path / "state") as first:
        assert (first.stored, first.kept) == ({}, False)
        assert written(first, "ring", b"1") is None
        assert written(first, "ring", b"2") is None
    with opened(tmp_path / "state") as second:
        assert (second.stored, second.kept) == ({"ring": b"2"}, True)
        assert second.incarnation > first.incarnation


def test_a_life_that_stored_nothing_leaves_nothing(tmp_path: Path) -> None:
    """It was killed while it started: whatever was lost before it is still lost."""
    with opened(tmp_path) as first:
        pass
    with opened(tmp_path) as second:
        assert not second.kept
        assert second.incarnation > first.incarnation


def test_every_life_is_a_new_process_even_if_the_clock_is_set_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path) as first:
        pass
    monkeypatch.setattr("time.time_ns", lambda: 1)
    with opened(tmp_path) as second:
        assert second.incarnation > first.incarnation
    assert MemoryStorage().incarnation > second.incarnation


def test_a_folder_belongs_to_one(tmp_path: Path) -> None:
    with opened(tmp_path), pytest.raises(UsageError, match="in use by another node"):
        FolderStorage(tmp_path)
    with opened(tmp_path):
        pass


def test_a_write_that_fails_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with opened(tmp_path) as storage:
        assert written(storage, "ring", b"1") is None
        monkeypatch.setattr(os, "fsync", fails)
        error = written(storage, "ring", b"2")
        assert error is not None and error.errno == errno.EIO
        monkeypatch.undo()
    with opened(tmp_path) as after:
        assert after.stored == {"ring": b"1"}


def test_a_write_that_is_cut_short_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(tmp_path) as storage:
        monkeypatch.setattr(os, "write", lambda _file, _value: 0)
        error = written(storage, "ring", b"1")
        assert error is not None and error.errno == errno.ENOSPC


def test_any_other_failure_is_told_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise ValueError("what is this?")

    with opened(tmp_path) as storage:
        monkeypatch.setattr(os, "replace", fails)
        error = written(storage, "ring", b"1")
        assert error is not None and "what is this?" in str(error)
