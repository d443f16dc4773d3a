"""Spool: what waits for its place in an archive, in memory as long as it is little, else in a file without a name."""

from __future__ import annotations

import os
import pickle
import tempfile
from io import FileIO
from pathlib import Path

from ordercast.archive.entries import Item
from ordercast.model.events import Batch

MEMORY_SIZE = 32 << 20
PROBE_SIZE = 1 << 20  # of room that must be there before more is put on a disk that was full


class Spooled(Batch):
    """A batch that lies in the file: its messages are not here, how many they are is."""

    __slots__ = ("at", "count", "size")

    def __init__(self, batch: Batch, at: int, size: int) -> None:
        super().__init__(batch.groups, batch.sender, (), (), batch.places)
        self.at, self.size, self.count = at, size, len(batch)

    def __len__(self) -> int:
        return self.count


class Spool:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file: FileIO | None = None
        self._end = 0
        self._in_memory = 0
        self._is_full = False  # the disk refused the last that was to be put there

    def put(self, item: Item) -> Item:
        """What is to wait in its stead."""
        if not isinstance(item, Batch):
            return item
        size = sum(map(len, item.raw))
        if self._in_memory + size <= MEMORY_SIZE:
            self._in_memory += size
            return item
        columns = pickle.dumps((list(item.raw), bytes(item.services), item.is_headed), protocol=pickle.HIGHEST_PROTOCOL)
        try:
            self._write(columns)
        except OSError:  # it waits in memory after all; nobody should bring more
            self._is_full = True
            return item
        spooled = Spooled(item, self._end, len(columns))
        self._end += len(columns)
        return spooled

    def _write(self, columns: bytes) -> None:
        if self._file is None:
            file = tempfile.TemporaryFile(dir=self._folder, buffering=0)  # noqa: SIM115 (it outlives this call)
            assert isinstance(file, FileIO)
            self._file = file
        written = 0
        while written < len(columns):
            written += os.pwrite(self._file.fileno(), memoryview(columns)[written:], self._end + written)

    def has_room(self) -> bool:
        """Tells whether more can be put here; once the disk has refused something, it is asked."""
        if self._is_full:
            try:
                self._write(bytes(PROBE_SIZE))
                self._is_full = False
            except OSError:
                pass
        return not self._is_full

    def get(self, item: Item) -> Item:
        if not isinstance(item, Spooled):
            return item
        assert self._file is not None
        self._file.seek(item.at)
        raw, services, is_headed = pickle.loads(self._file.read(item.size))
        return Batch(item.groups, item.sender, raw, services, item.places, is_headed)

    def clear(self) -> None:
        """Nothing waits any more."""
        if self._file is not None:
            self._file.close()
        self._file, self._end, self._in_memory, self._is_full = None, 0, 0, False
