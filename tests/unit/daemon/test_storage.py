"""Stable storage keeps what it was given, says when it cannot and goes on trying, and never gives a process number
twice."""

from __future__ import annotations

import errno
import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Queue

import pytest

from ordercast.daemon import storage as module
from ordercast.daemon.slots import Slots
from ordercast.daemon.storage import LARGE, SMALL, FolderStorage, MemoryStorage
from ordercast.model.effects import AlarmKind
from ordercast.model.errors import UsageError
from ordercast.order.engine import stored_configuration_seq

PATIENCE_S = 30.0
KEY = "configuration_seq"


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RETRY_S", 0.001)
    monkeypatch.setattr(module, "RETRY_MAX_S", 0.01)


@contextmanager
def opened(folder: Path) -> Iterator[FolderStorage]:
    storage = FolderStorage(folder)
    try:
        yield storage
    finally:
        storage.close()


def asked(storage: FolderStorage, key: str, value: bytes) -> Queue[OSError | None]:
    """What the writer is told, one after the other."""
    told: Queue[OSError | None] = Queue()
    storage.write(key, value, told.put)
    return told


def written(storage: FolderStorage, key: str, value: bytes) -> OSError | None:
    """What the writer is told first."""
    return asked(storage, key, value).get(timeout=PATIENCE_S)


def until_safe(told: Queue[OSError | None]) -> None:
    while told.get(timeout=PATIENCE_S) is not None:
        pass


def fails(*_: object) -> None:
    raise OSError(errno.EIO, "Input/output error")


def test_what_was_written_is_there_in_the_next_life(tmp_path: Path) -> None:
    with opened(tmp_path / "state") as first:
        assert (first.stored, first.kept, first.alarms) == ({}, False, [])
        assert written(first, KEY, b"1") is None
        assert written(first, KEY, b"2") is None
    with opened(tmp_path / "state") as second:
        assert (second.stored, second.kept, second.alarms) == ({KEY: b"2"}, True, [])
        assert second.incarnation > first.incarnation


def test_other_keys_have_room_for_some_kilobytes(tmp_path: Path) -> None:
    with opened(tmp_path) as first:
        assert written(first, "nodes", bytes(LARGE - 100)) is None
        for key, size in (("nodes", LARGE), (KEY, SMALL)):
            error = written(first, key, bytes(size))
            assert error is not None and error.strerror is not None and "are too many for" in error.strerror
    with opened(tmp_path) as second:
        assert second.stored == {"nodes": bytes(LARGE - 100)}
        assert not second.kept, "no ring seq was left"


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


def test_a_folder_that_cannot_be_written_is_told_at_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "pwrite", fails)
    with pytest.raises(UsageError, match="cannot be used: Input/output error; make it writable"):
        FolderStorage(tmp_path)
    monkeypatch.undo()
    with opened(tmp_path) as storage:
        monkeypatch.setattr(os, "fdatasync", fails)
    with pytest.raises(UsageError, match="cannot be written: Input/output error"):
        FolderStorage(tmp_path)
    monkeypatch.undo()
    with opened(tmp_path) as after:
        assert after.incarnation > storage.incarnation


# Earlier folders


def test_what_an_earlier_version_kept_is_carried_over(tmp_path: Path) -> None:
    far = 1 << 44
    (tmp_path / f"{KEY}.kept").write_bytes((28).to_bytes(8, "big"))
    (tmp_path / "incarnation.kept").write_bytes(far.to_bytes(8, "big"))
    with opened(tmp_path) as storage:
        assert storage.stored == {KEY: (28).to_bytes(8, "big")} and storage.kept
        assert storage.incarnation > far
        assert written(storage, KEY, (32).to_bytes(8, "big")) is None
    assert list(tmp_path.glob("*.kept")) == []
    with opened(tmp_path) as after:
        assert after.stored == {KEY: (32).to_bytes(8, "big")} and after.incarnation == storage.incarnation + 1


def test_a_start_that_was_killed_while_it_carried_over_loses_nothing(tmp_path: Path) -> None:
    (tmp_path / f"{KEY}.kept").write_bytes(b"old")
    Slots(tmp_path, KEY, SMALL).close()  # made, and not written yet
    with opened(tmp_path) as storage:
        assert storage.stored == {KEY: b"old"}


def test_the_number_of_a_ring_counts_for_every_engine(tmp_path: Path) -> None:
    """It was kept under another name when the ring was the only engine."""
    old = "ring_seq"
    with opened(tmp_path) as first:
        assert written(first, old, (28).to_bytes(8, "big")) is None
    with opened(tmp_path) as second:
        assert second.kept and int.from_bytes(stored_configuration_seq(second.stored), "big") == 28
        assert written(second, KEY, (32).to_bytes(8, "big")) is None
    with opened(tmp_path) as third:
        assert third.kept and int.from_bytes(stored_configuration_seq(third.stored), "big") == 32
    (tmp_path / f"{KEY}.slots").write_bytes(os.urandom(2 * SMALL))
    with opened(tmp_path) as fourth:
        assert not fourth.kept and fourth.stored == {}, "a lower number would be worse than none"


# Damage


def test_damage_is_an_alarm_and_a_new_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_last_incarnation", 0)
    with opened(tmp_path) as first:
        assert written(first, KEY, b"1") is None
    for path in tmp_path.glob("*.slots"):
        path.write_bytes(os.urandom(2 * SMALL))
    monkeypatch.setattr("time.time_ns", lambda: 1)
    monkeypatch.setattr(module, "_last_incarnation", 0)
    with opened(tmp_path) as second:
        (alarm,) = second.alarms
        assert alarm.kind is AlarmKind.STORAGE_DAMAGED and "configuration_seq, incarnation, roster" in alarm.text
        assert (second.stored, second.kept) == ({}, False)
        assert second.incarnation > first.incarnation, "the files say when they were written last"
        assert written(second, KEY, b"2") is None
    with opened(tmp_path) as third:
        assert (third.stored, third.alarms) == ({KEY: b"2"}, [])


# Failures


def test_a_write_that_fails_is_told_and_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(tmp_path) as storage:
        assert written(storage, KEY, b"1") is None
        monkeypatch.setattr(os, "fdatasync", fails)
        told = asked(storage, KEY, b"2")
        for _ in range(3):
            error = told.get(timeout=PATIENCE_S)
            assert error is not None and error.errno == errno.EIO
        assert isinstance(storage.error, OSError)
        monkeypatch.undo()
        until_safe(told)
        assert not storage.error
    with opened(tmp_path) as after:
        assert after.stored == {KEY: b"2"}


def test_a_newer_write_takes_the_place_of_one_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(tmp_path) as storage:
        monkeypatch.setattr(os, "fdatasync", fails)
        first = asked(storage, KEY, b"1")
        assert first.get(timeout=PATIENCE_S) is not None
        second = asked(storage, KEY, b"2")
        assert second.get(timeout=PATIENCE_S) is not None
        monkeypatch.undo()
        until_safe(first)
        until_safe(second)
    with opened(tmp_path) as after:
        assert after.stored == {KEY: b"2"}


def test_a_write_that_is_cut_short_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(tmp_path) as storage:
        monkeypatch.setattr(os, "pwrite", lambda _file, _value, _at: 0)
        error = written(storage, KEY, b"1")
        assert error is not None and error.errno == errno.ENOSPC


def test_any_other_failure_is_told_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def strange(*_: object) -> None:
        raise RuntimeError("what is this?")

    with opened(tmp_path) as storage:
        monkeypatch.setattr(os, "pwrite", strange)
        error = written(storage, KEY, b"1")
        assert error is not None and "what is this?" in str(error)


def test_the_end_does_not_wait_for_a_disk_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RETRY_S", 1000.0)
    storage = FolderStorage(tmp_path)
    monkeypatch.setattr(os, "fdatasync", fails)
    assert written(storage, KEY, b"1") is not None
    storage.close()
    with pytest.MonkeyPatch.context() as again:
        again.setattr(os, "fdatasync", lambda _: None)
        FolderStorage(tmp_path).close()  # the lock was given up


def test_the_end_does_not_wait_for_a_disk_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CLOSE_S", 0.01)
    reached, released = threading.Event(), threading.Event()

    def hangs(_: int) -> None:
        reached.set()
        released.wait(PATIENCE_S)

    storage = FolderStorage(tmp_path)
    monkeypatch.setattr(os, "fdatasync", hangs)
    told = asked(storage, KEY, b"1")
    assert reached.wait(PATIENCE_S)
    storage.close()
    released.set()
    until_safe(told)


# A folder that goes away


def test_a_folder_that_is_removed_is_made_anew(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    with opened(folder) as storage:
        assert written(storage, KEY, b"1") is None and written(storage, "nodes", b"list") is None
        shutil.rmtree(folder)
        assert written(storage, KEY, b"2") is None
        with pytest.raises(UsageError, match="in use by another node"):
            FolderStorage(folder)
    with opened(folder) as after:
        assert after.stored == {KEY: b"2", "nodes": b"list"} and after.incarnation > storage.incarnation


def test_a_file_that_is_removed_is_made_anew(tmp_path: Path) -> None:
    """The lock is there still, and this process has it."""
    folder = tmp_path / "state"
    with opened(folder) as storage:
        assert written(storage, KEY, b"1") is None and written(storage, "nodes", b"list") is None
        (folder / "nodes.slots").unlink()
        assert written(storage, KEY, b"2") is None
        with pytest.raises(UsageError, match="in use by another node"):
            FolderStorage(folder)
    with opened(folder) as after:
        assert after.stored == {KEY: b"2", "nodes": b"list"} and after.incarnation > storage.incarnation


def test_a_folder_that_cannot_be_made_anew_is_a_failure_until_it_can(tmp_path: Path) -> None:
    folder = tmp_path / "above" / "state"
    with opened(folder) as storage:
        shutil.rmtree(tmp_path / "above")
        (tmp_path / "above").write_bytes(b"a file is in the way")
        told = asked(storage, KEY, b"2")
        assert told.get(timeout=PATIENCE_S) is not None
        (tmp_path / "above").unlink()
        until_safe(told)
    with opened(folder) as after:
        assert after.stored == {KEY: b"2"}


def test_the_room_that_is_left_is_known(tmp_path: Path) -> None:
    with opened(tmp_path) as storage:
        assert storage.free is not None and 0.0 <= storage.free <= 1.0
    assert MemoryStorage().free is None
