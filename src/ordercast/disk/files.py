"""How bytes get into files: all of them or an OSError, and names that a power failure does not take back."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from ordercast.trace.private_files import open_private


def write_all(file: int, frames: Sequence[bytes], at: int | None = None) -> None:
    """Writes all of it behind what is there, or at a place."""
    for number in range(0, len(frames), 512):
        chunk = frames[number : number + 512]
        written = os.writev(file, chunk) if at is None else os.pwritev(file, chunk, at)
        total = sum(map(len, chunk))
        while written < total:  # a disk that is full takes a part first, and refuses the rest
            rest = memoryview(b"".join(chunk))[written:]
            written += os.write(file, rest) if at is None else os.pwrite(file, rest, at + written)


def write_whole(path: Path, data: bytes) -> None:
    """All of it or nothing."""
    new = path.with_suffix(".new")
    with open(new, "wb", opener=open_private) as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(new, path)


def sync_folder(path: Path) -> None:
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
