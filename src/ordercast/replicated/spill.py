"""Spill: a tail that keeps a bounded amount in memory and the rest in a file.

    oldest   _front  |  blocks in the file  |  _back   newest

What comes first stays in memory until that is full; then commands gather at the back, and go to the file in blocks of
about a mebibyte. A block is read when everything before it was taken. A block is how many bytes follow (8 bytes), and
then for each command the size of the name (2 bytes), the size of the payload (4 bytes), name and payload.

The file has no name: whatever ends the process, its space is free again.
"""

from __future__ import annotations

import os
import struct
import tempfile
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from ordercast.replicated.track import Held

BLOCK_SIZE = 1 << 20  # about: a block ends with the first command that makes it so large
HELD_OVERHEAD = 128  # bytes of memory that a command costs beside its payload, about
BLOCK: Final = struct.Struct("!Q")
RECORD: Final = struct.Struct("!HI")


class Spill:
    def __init__(self, folder: Path | None = None, block_size: int = BLOCK_SIZE) -> None:
        """`folder`: where the file is made when it is needed; the system's folder for temporary files unless told."""
        self._folder = folder
        self._block_size = block_size
        self._front: deque[Held] = deque()
        self._back: list[Held] = []
        self._front_size = self._back_size = 0
        self._file: int | None = None
        self._read_at = self._write_at = 0  # places in the file: between them are blocks
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def memory_size(self) -> int:
        """About."""
        return self._front_size + self._back_size

    @property
    def file_size(self) -> int:
        return self._write_at

    def append(self, held: Held) -> None:
        size = len(held.payload) + HELD_OVERHEAD
        self._count += 1
        if not self._back and self._read_at == self._write_at and self._front_size < self._block_size:
            self._front.append(held)
            self._front_size += size
            return
        self._back.append(held)
        self._back_size += size
        if self._back_size >= self._block_size:
            self._write(encode_block(self._back))
            self._back.clear()
            self._back_size = 0

    def popleft(self) -> Held:
        if not self._front:
            self._refill()
        held = self._front.popleft()
        self._front_size -= len(held.payload) + HELD_OVERHEAD
        self._count -= 1
        return held

    def prepend(self, earlier: Iterable[Held]) -> None:
        for held in reversed(list(earlier)):
            self._front.appendleft(held)
            self._front_size += len(held.payload) + HELD_OVERHEAD
            self._count += 1

    def __iter__(self) -> Iterator[Held]:
        yield from tuple(self._front)
        at = self._read_at
        while at < self._write_at:
            block, at = self._read(at)
            yield from block
        yield from tuple(self._back)

    def close(self) -> None:
        self._front.clear()
        self._back.clear()
        self._front_size = self._back_size = 0
        self._count = self._read_at = self._write_at = 0
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def __del__(self) -> None:
        self.close()

    # The file

    def _refill(self) -> None:
        if self._read_at == self._write_at:
            self._front.extend(self._back)
            self._back.clear()
            self._front_size, self._back_size = self._back_size, 0
            return
        block, self._read_at = self._read(self._read_at)
        self._front.extend(block)
        self._front_size = sum(len(held.payload) + HELD_OVERHEAD for held in block)
        if self._read_at == self._write_at and self._file is not None:
            os.ftruncate(self._file, 0)
            self._read_at = self._write_at = 0

    def _write(self, block: bytes) -> None:
        if self._file is None:
            with tempfile.TemporaryFile(dir=self._folder, buffering=0) as file:
                self._file = os.dup(file.fileno())
        data = memoryview(block)
        at = self._write_at
        while data:
            written = os.pwrite(self._file, data, at)
            data, at = data[written:], at + written
        self._write_at = at

    def _read(self, at: int) -> tuple[list[Held], int]:
        """The block there, and where the next one is."""
        (size,) = BLOCK.unpack(self._bytes(at, BLOCK.size))
        at += BLOCK.size
        return decode_block(self._bytes(at, size)), at + size

    def _bytes(self, at: int, size: int) -> bytes:
        assert self._file is not None
        parts = []
        while size:
            part = os.pread(self._file, size, at)
            if not part:
                raise OSError("the file of commands that wait is shorter than what was written to it")
            parts.append(part)
            size, at = size - len(part), at + len(part)
        return b"".join(parts)


def encode_block(block: Iterable[Held]) -> bytes:
    parts = [b""]
    for name, payload in block:
        text = name.encode()
        parts += [RECORD.pack(len(text), len(payload)), text, payload]
    parts[0] = BLOCK.pack(sum(map(len, parts)))
    return b"".join(parts)


def decode_block(data: bytes) -> list[Held]:
    block = []
    at = 0
    while at < len(data):
        name_size, payload_size = RECORD.unpack_from(data, at)
        middle = at + RECORD.size + name_size
        block.append(Held(data[at + RECORD.size : middle].decode(), data[middle : middle + payload_size]))
        at = middle + payload_size
    return block
