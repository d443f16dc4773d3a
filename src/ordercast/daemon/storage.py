"""Stable storage: what a process must not forget, one small file per key, synced before anybody relies on it.

Writes go to one thread, so that no disk ever stops the event loop, and in order. A folder belongs to one process at a
time. Without a folder nothing is kept: that is sound, because every start is a new process, with an incarnation that
never was before.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Protocol

from ordercast.model.errors import UsageError
from ordercast.model.ids import INCARNATION_MAX, Incarnation

_INCARNATION = "incarnation"
_last_incarnation = 0


class Storage(Protocol):
    stored: dict[str, bytes]
    incarnation: Incarnation
    kept: bool  # an earlier life left something for the engine

    def write(self, key: str, value: bytes, done: Callable[[OSError | None], None]) -> None:
        """Calls `done` from any thread, once the value is safe or has failed to become so."""

    def close(self) -> None: ...


class MemoryStorage:
    """Nothing outlives the process."""

    def __init__(self) -> None:
        self.stored: dict[str, bytes] = {}
        self.incarnation = _incarnation_after(0)
        self.kept = False

    def write(self, key: str, value: bytes, done: Callable[[OSError | None], None]) -> None:
        done(None)

    def close(self) -> None:
        pass


class FolderStorage:
    def __init__(self, folder: Path) -> None:
        """Opens it and begins a new incarnation; slow, since that is synced. UsageError says what is in the way."""
        self._folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise UsageError(
                f"the state folder {folder} cannot be used: {error.strerror}; make it writable, or choose another"
            ) from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._lock)
            raise UsageError(f"the state folder {folder} is in use by another node: give each its own") from error
        try:
            self.stored = {path.stem: path.read_bytes() for path in folder.glob("*.kept")}
            last = int.from_bytes(self.stored.pop(_INCARNATION, b""), "big")
            self.kept = bool(self.stored)  # a life that was killed before it stored anything is as good as none
            self.incarnation = _incarnation_after(last)
            self._write(_INCARNATION, self.incarnation.to_bytes(8, "big"))
        except BaseException as error:
            os.close(self._lock)
            if isinstance(error, OSError):
                raise UsageError(f"the state folder {folder} cannot be written: {error.strerror}") from error
            raise
        self._thread = ThreadPoolExecutor(1, "ordercast-storage")

    def write(self, key: str, value: bytes, done: Callable[[OSError | None], None]) -> None:
        def finished(future: Future[None]) -> None:
            error = future.exception()
            done(error if isinstance(error, OSError | None) else OSError(f"{type(error).__name__}: {error}"))

        self._thread.submit(self._write, key, value).add_done_callback(finished)

    def close(self) -> None:
        self._thread.shutdown(wait=True)
        os.close(self._lock)

    def _write(self, key: str, value: bytes) -> None:
        """Beside the old value, synced, then in its place, and that synced too: a crash leaves the old or the new."""
        path = self._folder / f"{key}.kept"
        fresh = path.with_suffix(".new")
        file = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            if os.write(file, value) < len(value):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(file)
        finally:
            os.close(file)
        os.replace(fresh, path)
        folder = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _incarnation_after(last: int) -> Incarnation:
    """Later than all before: the clock's milliseconds, unless it was set back."""
    global _last_incarnation
    incarnation = max(time.time_ns() // 1_000_000, last + 1, _last_incarnation + 1)
    if incarnation > INCARNATION_MAX:
        raise UsageError("the state folder speaks of an impossible incarnation: remove it")
    _last_incarnation = incarnation
    return Incarnation(incarnation)
