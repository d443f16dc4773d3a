"""Spool: what waits for its place in an archive, in memory as long as it is little, else in a file without a name."""

from __future__ import annotations

import pickle
import tempfile
from pathlib import Path
from typing import IO

from ordercast.archive.entries import Item
from ordercast.model.events import Batch

MEMORY_SIZE = 32 << 20


class Spooled(Batch):
    """A batch that lies in the file: its messages are not here, how many they are is."""

    __slots__ = ("at", "count", "size")

    def __init__(self, batch: Batch, at: int, size: int) -> None:
        super().__init__(batch.groups, batch.sender, (), (), (batch.ring, batch.seq, batch.each, batch.first))
        self.at, self.size, self.count = at, size, len(batch)

    def __len__(self) -> int:
        return self.count


class Spool:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file: IO[bytes] | None = None
        self._end = 0
        self._in_memory = 0

    def put(self, item: Item) -> Item:
        """What is to wait in its stead."""
        if not isinstance(item, Batch):
            return item
        size = sum(map(len, item.data))
        if self._in_memory + size <= MEMORY_SIZE:
            self._in_memory += size
            return item
        if self._file is None:
            self._file = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115 (it lives as long as something waits)
        columns = pickle.dumps((list(item.data), bytes(item.services)), protocol=pickle.HIGHEST_PROTOCOL)
        self._file.seek(self._end)
        self._file.write(columns)
        spooled = Spooled(item, self._end, len(columns))
        self._end += len(columns)
        return spooled

    def get(self, item: Item) -> Item:
        if not isinstance(item, Spooled):
            return item
        assert self._file is not None
        self._file.seek(item.at)
        data, services = pickle.loads(self._file.read(item.size))
        return Batch(item.groups, item.sender, data, services, (item.ring, item.seq, item.each, item.first))

    def clear(self) -> None:
        """Nothing waits any more."""
        if self._file is not None:
            self._file.close()
        self._file, self._end, self._in_memory = None, 0, 0
