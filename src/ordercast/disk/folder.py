"""DiskFolder: a folder of files that are appended to, as the kernel has it. `Folder` says what may be asked of one.

Nothing is safe before `sync`, no name before `sync_names`. The simulator has a folder of its own, which keeps of what
was not safe what a power failure might have kept.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol

from ordercast.disk.files import sync_folder, write_all
from ordercast.trace.private_files import make_private_folder, open_private


class Folder(Protocol):
    def names(self) -> list[str]:
        """The files that are there, sorted."""
        ...

    def read(self, name: str) -> bytes: ...
    def create(self, name: str) -> None:
        """An empty file, whatever was there."""

    def append(self, name: str, data: bytes) -> None: ...
    def truncate(self, name: str, size: int) -> None: ...
    def sync(self, name: str) -> None:
        """What is in the file is safe."""

    def rename(self, old: str, new: str) -> None: ...
    def remove(self, name: str) -> None: ...
    def sync_names(self) -> None:
        """What is called how is safe."""


class DiskFolder:
    def __init__(self, path: Path) -> None:
        self.path = path
        make_private_folder(path)
        sync_folder(path.parent)
        self._open: dict[str, int] = {}

    def names(self) -> list[str]:
        return sorted(os.listdir(self.path))

    def read(self, name: str) -> bytes:
        return (self.path / name).read_bytes()

    def create(self, name: str) -> None:
        self._close(name)
        os.close(open_private(self.path / name, os.O_RDWR | os.O_CREAT | os.O_TRUNC))

    def append(self, name: str, data: bytes) -> None:
        write_all(self._file(name), [data])

    def truncate(self, name: str, size: int) -> None:
        os.truncate(self.path / name, size)

    def sync(self, name: str) -> None:
        os.fdatasync(self._file(name))

    def rename(self, old: str, new: str) -> None:
        self._close(old)
        self._close(new)
        os.replace(self.path / old, self.path / new)

    def remove(self, name: str) -> None:
        self._close(name)
        (self.path / name).unlink(missing_ok=True)

    def sync_names(self) -> None:
        sync_folder(self.path)

    def close(self) -> None:
        for name in list(self._open):
            self._close(name)

    def _file(self, name: str) -> int:
        if name not in self._open:
            self._open[name] = os.open(self.path / name, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
        return self._open[name]

    def _close(self, name: str) -> None:
        if name in self._open:
            os.close(self._open.pop(name))
