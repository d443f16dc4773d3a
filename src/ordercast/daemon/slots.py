"""Slots: the file in which one value is kept, written in place.

A file has two slots of equal size. A value goes to the slot that does not hold the newest one, with the next generation
number, so a write that is torn leaves the older value readable. A slot has a digest of its key, generation and value.

The file has its whole size, and its blocks on the disk, from the start, and stays open: later writes need neither room
nor a descriptor. (A file system that never writes in place, such as btrfs or ZFS, may need room all the same; then the
write fails, and whoever asked for it tries again.)
"""

from __future__ import annotations

import errno
import os
import struct
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

SUFFIX = ".slots"
HEAD = struct.Struct("!8sQI16s")  # magic, generation, length of the value, digest
MAGIC = b"OCslot\x00\x01"
BLOCK = 512  # what `st_blocks` counts in


class Found(NamedTuple):
    """What a slot holds."""

    generation: int
    value: bytes


def sealed(key: str, generation: int, value: bytes) -> bytes:
    return HEAD.pack(MAGIC, generation, len(value), _digest(key, generation, value)) + value


def found_in(key: str, slot: bytes) -> Found | None:
    """What was written there; None when nothing was, or when something else is there now."""
    if len(slot) < HEAD.size:
        return None
    magic, generation, length, digest = HEAD.unpack_from(slot)
    value = slot[HEAD.size : HEAD.size + length]
    if magic != MAGIC or len(value) < length or _digest(key, generation, value) != digest:
        return None
    return Found(generation, value)


def _digest(key: str, generation: int, value: bytes) -> bytes:
    name = key.encode()
    return blake2b(struct.pack("!QI", generation, len(name)) + name + value, digest_size=16).digest()


class Slots:
    """The open file of one key."""

    def __init__(self, folder: Path, key: str, size: int) -> None:
        """`size` is that of a slot, and never changes for a key. OSError when the file cannot be made or read."""
        self.key, self.size = key, size
        self.path = folder / f"{key}{SUFFIX}"
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            data = os.pread(self._file, 2 * size, 0)
            self._preallocate(data)
        except BaseException:
            os.close(self._file)
            raise
        found = [found_in(key, data[:size]), found_in(key, data[size:])]
        self._newest = max((1, 0), key=lambda number: found[number] or Found(-1, b""))
        newest = found[self._newest]
        self.is_damaged = newest is None and any(data)
        self.value = None if newest is None else newest.value
        self._generation = 0 if newest is None else newest.generation

    def _preallocate(self, data: bytes) -> None:
        """Where the file is too short, or has holes, it gets its blocks: by being written, which no file system takes
        for a mere promise."""
        whole = 2 * self.size
        if len(data) == whole and os.fstat(self._file).st_blocks * BLOCK >= whole:
            return
        _write_at(self._file, data.ljust(whole, b"\0"), 0)
        os.fsync(self._file)

    @property
    def value_size_max(self) -> int:
        return self.size - HEAD.size

    def write(self, value: bytes) -> None:
        """Safe when it returns. After an OSError the value from before is still there."""
        if len(value) > self.value_size_max:
            raise ValueError(f"{len(value)} bytes do not fit in a slot of {self.key}")
        target = 1 - self._newest
        _write_at(self._file, sealed(self.key, self._generation + 1, value), target * self.size)
        os.fdatasync(self._file)
        self._newest, self._generation, self.value, self.is_damaged = target, self._generation + 1, value, False

    def clear(self) -> None:
        """Give up what is there, so that what cannot be read is told once."""
        _write_at(self._file, bytes(2 * self.size), 0)
        os.fdatasync(self._file)
        self.value, self.is_damaged = None, False

    def is_in_place(self) -> bool:
        """The file that is open is the one that the next life will find."""
        try:
            return os.path.samestat(os.stat(self.path), os.fstat(self._file))
        except FileNotFoundError:
            return False

    def changed_ns(self) -> int:
        """When it was last written, by the clock of then."""
        return os.fstat(self._file).st_mtime_ns

    def close(self) -> None:
        os.close(self._file)


def _write_at(file: int, data: bytes, at: int) -> None:
    if os.pwrite(file, data, at) < len(data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
