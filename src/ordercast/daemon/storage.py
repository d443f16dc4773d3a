"""Stable storage: what a process must not forget, one small file per key, synced before anybody relies on it.

Values are written in place (`slots.py`) by one thread, so that no disk ever stops the event loop. A write that fails is
tried again, at growing intervals, until it succeeds or a newer one of its key takes its place: no failure of a disk
ends a process. A folder belongs to one process at a time; a folder that is removed while it is in use is made anew.

Without a folder nothing is kept: that is sound, because every start is a new process, with an incarnation that never
was before. For the same reason storage that is damaged does not keep a node from starting: it starts as one that lost
its storage would, with an alarm. To refuse would turn a few bad bytes into an outage until somebody removes them.
"""

from __future__ import annotations

import errno
import fcntl
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from ordercast.daemon.slots import HEAD, SUFFIX, Slots
from ordercast.model.effects import Alarm, AlarmKind
from ordercast.model.errors import UsageError
from ordercast.model.ids import INCARNATION_MAX, MILLISECOND, Incarnation
from ordercast.order.engine import CONFIGURATION_SEQ_KEY, OLD_CONFIGURATION_SEQ_KEY, stored_configuration_seq
from ordercast.order.layered import SEPARATOR
from ordercast.order.membership.rosters import ROSTER_KEY

SMALL, LARGE = 4 << 10, 64 << 10  # sizes of slots
KEYS: Mapping[str, int] = {
    CONFIGURATION_SEQ_KEY: SMALL,
    ROSTER_KEY: LARGE,
}  # room for these is set aside at the start, for each ring of several; other keys have LARGE slots
RETRY_S, RETRY_MAX_S = 0.1, 5.0
LOOK_EVERY_S = 10.0  # at the room on the file system
CLOSE_S = 2.0  # how long a disk that hangs is waited for at the end

_INCARNATION = "incarnation"
_EARLIER_SUFFIX = ".kept"  # the value as a whole file, as earlier versions wrote it
_last_incarnation = 0

# Called from any thread: with the error, whenever the write has failed and will be tried again; with None once the
# value, or a newer one of the same key, is safe.
Done = Callable[[OSError | None], None]


class Storage(Protocol):
    stored: dict[str, bytes]
    incarnation: Incarnation
    kept: bool  # an earlier life left the number of a configuration for the engine
    alarms: list[Alarm]  # on what was found at the start
    folder: Path | None
    error: OSError | None  # of the last write, if it failed
    free: float | None  # part of the file system that is free, as far as known

    def write(self, key: str, value: bytes, done: Done) -> None: ...

    def close(self) -> None: ...


class MemoryStorage:
    """Nothing outlives the process."""

    def __init__(self) -> None:
        self.stored: dict[str, bytes] = {}
        self.incarnation = _incarnation_after(0)
        self.kept = False
        self.alarms: list[Alarm] = []
        self.folder: Path | None = None
        self.error: OSError | None = None
        self.free: float | None = None

    def write(self, key: str, value: bytes, done: Done) -> None:
        done(None)

    def close(self) -> None:
        pass


@dataclass(slots=True)
class _Write:
    value: bytes
    dones: list[Done] = field(default_factory=list)  # of those whose place it has taken, too


class FolderStorage:
    def __init__(self, folder: Path, rings: Sequence[str] = ()) -> None:
        """Opens it and begins a new incarnation; slow, since that is synced. UsageError says what is in the way.
        `rings`: the names of those that have keys of their own; none: there is one ring."""
        self.folder: Path | None = folder
        self.error: OSError | None = None
        self.alarms: list[Alarm] = []
        try:
            keys = [f"{ring}{SEPARATOR}{key}" for ring in rings for key in KEYS]
            self._files = _Files(folder, keys or KEYS)
        except OSError as error:
            what = f"the state folder {folder} cannot be used: {error.strerror}"
            raise UsageError(f"{what}; make it writable, give it room, or choose another") from error
        try:
            self._begin(folder)
        except BaseException as error:
            self._files.close()
            if isinstance(error, OSError):
                raise UsageError(f"the state folder {folder} cannot be written: {error.strerror}") from error
            raise
        self.free = self._files.free()
        self._waiting: dict[str, _Write] = {}
        self._wake = threading.Condition()
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name="ordercast-storage", daemon=True)
        self._thread.start()

    def _begin(self, folder: Path) -> None:
        slots = self._files.slots
        _carry_over(folder, self._files)
        damaged = sorted(key for key, one in slots.items() if one.is_damaged)
        last = int.from_bytes(slots[_INCARNATION].value or b"", "big")
        if damaged:
            text = f"{', '.join(damaged)} in {folder} cannot be read: this node starts as one that lost its storage"
            self.alarms.append(Alarm(AlarmKind.STORAGE_DAMAGED, f"{text}; look at the disk"))
            last = max(last, *(one.changed_ns() // MILLISECOND for one in slots.values()))
            if CONFIGURATION_SEQ_KEY in damaged and OLD_CONFIGURATION_SEQ_KEY in slots:
                damaged.append(OLD_CONFIGURATION_SEQ_KEY)  # what stands under the old name may be lower by far
            for key in damaged:
                slots[key].clear()
        self.stored = {key: one.value for key, one in slots.items() if one.value is not None and key != _INCARNATION}
        self.kept = _has_configuration_seq(self.stored)  # who was killed before it stored one left nothing
        self.incarnation = _incarnation_after(last)
        slots[_INCARNATION].write(self.incarnation.to_bytes(8, "big"))

    def write(self, key: str, value: bytes, done: Done) -> None:
        """Never raises. A value that is too large for its key is refused once, and not tried again."""
        size_max = self._files.value_size_max(key)
        if len(value) > size_max:
            done(OSError(errno.EFBIG, f"{len(value)} bytes are too many for {key}, at most {size_max} are kept"))
        else:
            self._put(key, _Write(value, [done]))

    def _put(self, key: str, write: _Write, *, is_newer: bool = True) -> None:
        with self._wake:
            other = self._waiting.get(key)
            if other is None:
                self._waiting[key] = write
            else:
                other.value = write.value if is_newer else other.value
                other.dones = [*other.dones, *write.dones] if is_newer else [*write.dones, *other.dones]
            self._wake.notify()

    def close(self) -> None:
        """What can be written at once still is."""
        with self._wake:
            self._is_closed = True
            self._wake.notify()
        self._thread.join(CLOSE_S)
        if not self._thread.is_alive():  # one that hangs in a system call goes on using the files
            self._files.close()

    # The thread

    def _run(self) -> None:
        pause = RETRY_S
        while (next_one := self._next()) is not None:
            key, write = next_one
            self.error = self._tried(key, write.value)
            for done in write.dones:
                done(self.error)
            if self.error is None:
                pause = RETRY_S
                continue
            self._put(key, write, is_newer=False)
            with self._wake:
                if self._wake.wait_for(lambda: self._is_closed, pause):
                    return
            pause = min(RETRY_MAX_S, 2 * pause)

    def _next(self) -> tuple[str, _Write] | None:
        """The write that has waited longest; None at the end. Meanwhile the room is looked at."""
        while True:
            with self._wake:
                self._wake.wait_for(lambda: self._waiting or self._is_closed, LOOK_EVERY_S)
                if self._waiting:
                    key = next(iter(self._waiting))
                    return key, self._waiting.pop(key)
                if self._is_closed:
                    return None
            self.free = self._files.free()

    def _tried(self, key: str, value: bytes) -> OSError | None:
        try:
            if not self._files.are_in_place():
                self._files = self._files.made_anew()
            self._files.slot(key).write(value)
            self.free = self._files.free()
        except OSError as error:
            return error
        except Exception as error:
            return OSError(f"{type(error).__name__}: {error}")
        return None


class _Files:
    """The open files of a folder, under its lock."""

    def __init__(self, folder: Path, keys: Iterable[str], lock: int | None = None) -> None:
        """OSError when something cannot be made, UsageError when somebody else has the lock. `lock`: the file of it, if
        this process has it."""
        self.folder = folder
        self.slots: dict[str, Slots] = {}
        with ExitStack() as undo:
            folder.mkdir(parents=True, exist_ok=True)
            if lock is None:
                self._lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            else:
                self._lock = os.dup(lock)  # which has the same lock
            undo.callback(os.close, self._lock)
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise UsageError(f"the state folder {folder} is in use by another node: give each its own") from error
            there = sorted(path.stem for path in folder.glob(f"*{SUFFIX}"))
            for key in dict.fromkeys([_INCARNATION, *keys, *there]):
                self.slots[key] = Slots(folder, key, _size_of(key))
                undo.callback(self.slots[key].close)
            _sync_folder(folder)
            undo.pop_all()

    def value_size_max(self, key: str) -> int:
        return self.slots[key].value_size_max if key in self.slots else LARGE - HEAD.size

    def slot(self, key: str) -> Slots:
        if key not in self.slots:
            self.slots[key] = Slots(self.folder, key, _size_of(key))
            _sync_folder(self.folder)
        return self.slots[key]

    def are_in_place(self) -> bool:
        """Nobody has removed or moved the folder since."""
        return all(one.is_in_place() for one in self.slots.values())

    def _is_lock_in_place(self) -> bool:
        try:
            return os.path.samestat(os.stat(self.folder / "lock"), os.fstat(self._lock))
        except OSError:
            return False

    def made_anew(self) -> _Files:
        """Makes what is missing, the whole folder perhaps, with what these hold. OSError when that cannot be done:
        these stay."""
        try:
            fresh = _Files(self.folder, self.slots, self._lock if self._is_lock_in_place() else None)
        except UsageError as error:
            raise OSError(str(error)) from error
        try:
            for key, one in self.slots.items():
                if one.value is not None:
                    fresh.slot(key).write(one.value)
        except BaseException:
            fresh.close()
            raise
        self.close()
        return fresh

    def free(self) -> float | None:
        try:
            found = os.fstatvfs(self._lock)
        except OSError:
            return None
        return found.f_bavail / found.f_blocks if found.f_blocks else None

    def close(self) -> None:
        for one in self.slots.values():
            one.close()
        os.close(self._lock)


def _size_of(key: str) -> int:
    return SMALL if key == _INCARNATION else KEYS.get(key.rpartition(SEPARATOR)[2], LARGE)


def _has_configuration_seq(stored: Mapping[str, bytes]) -> bool:
    """Whether the ring, or one of several, has stored the number of a configuration."""
    is_of_several = any(key.endswith(f"{SEPARATOR}{CONFIGURATION_SEQ_KEY}") for key in stored)
    return is_of_several or bool(stored_configuration_seq(stored))


def _carry_over(folder: Path, files: _Files) -> None:
    """What an earlier version kept is taken over once, then removed, so that it is not believed again later."""
    for path in sorted(folder.glob(f"*{_EARLIER_SUFFIX}")):
        one, value = files.slot(path.stem), path.read_bytes()
        if one.value is None and not one.is_damaged and len(value) <= one.value_size_max:
            one.write(value)
        path.unlink()


def _sync_folder(folder: Path) -> None:
    file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _incarnation_after(last: int) -> Incarnation:
    """Later than all before: the clock's milliseconds, unless it was set back."""
    global _last_incarnation
    incarnation = max(time.time_ns() // MILLISECOND, last + 1, _last_incarnation + 1)
    if incarnation > INCARNATION_MAX:
        raise UsageError("the state folder speaks of an impossible incarnation: remove it")
    _last_incarnation = incarnation
    return Incarnation(incarnation)
