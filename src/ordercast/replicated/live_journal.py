"""LiveJournal: the journal of a live replica: its folder, its lock, and the thread that writes.

Writes are handed to the thread (`disk/writer.py`), which syncs once for all that have come. A picture is cut into
pieces on the event loop, a few at a time, as for those who fetch one; other writes go on between them.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import secrets
from collections.abc import Callable
from functools import partial
from pathlib import Path

from ordercast.disk.folder import DiskFolder
from ordercast.disk.writer import DiskWriter
from ordercast.model.errors import UsageError
from ordercast.replicated.effects import Snapshot, Write
from ordercast.replicated.journal import Journal
from ordercast.replicated.stance import Remembered
from ordercast.trace.private_files import make_private_folder, open_private

LOCK = "lock"
TURN_SIZE = 256 << 10  # bytes of pieces, until the event loop has its turn


class LiveJournal:
    def __init__(self, lock: int, folder: DiskFolder, journal: Journal) -> None:
        self._lock = lock
        self._folder = folder
        self._journal = journal
        self._writer: DiskWriter | None = None
        self._picturing: asyncio.Task[None] | None = None
        self._written: Callable[[int], None]
        self._pictured: Callable[[int], None]
        self._failed: Callable[[Exception], None]

    @classmethod
    async def opened(cls, path: Path, group: str, name: str) -> LiveJournal:
        """The journal in this folder. UsageError when another replica has it, when it is another's, or damaged."""
        return await asyncio.to_thread(_open, cls, path, group, name)

    @property
    def remembered(self) -> Remembered:
        return self._journal.remembered

    def begin(
        self,
        written: Callable[[int], None],
        pictured: Callable[[int], None],
        failed: Callable[[Exception], None],
    ) -> None:
        """Who is told what has become safe."""
        self._written, self._pictured, self._failed = written, pictured, failed
        self._writer = DiskWriter(pause_s=0)

    def write(self, write: Write) -> None:
        assert self._writer is not None
        size = sum(len(note.body) for note in write.notes)
        promise = self._writer.promise(self._journal, partial(self._journal.append, write.number, write.notes), size)
        promise.add_done_callback(partial(self._settled, write.number))

    def _settled(self, number: int, promise: asyncio.Future[object]) -> None:
        if promise.cancelled():
            return
        error = promise.exception()
        if error is None:
            self._written(number)
        else:
            self._failed(error if isinstance(error, Exception) else UsageError(str(error)))

    def take(self, snapshot: Snapshot) -> None:
        """The latest counts: one that is not complete is given up. It is begun at once: the next write is not in it, so
        that must come behind its beginning."""
        if self._picturing is not None:
            self._picturing.cancel()
        assert self._writer is not None
        self._writer.put(self._journal, partial(self._journal.begin, snapshot.stance))
        self._picturing = asyncio.get_running_loop().create_task(self._take(snapshot))

    async def _take(self, snapshot: Snapshot) -> None:
        writer, journal = self._writer, self._journal
        assert writer is not None
        try:
            turn = TURN_SIZE
            for piece in snapshot.frozen.pieces():
                writer.put(journal, partial(journal.add, piece), len(piece))
                turn -= len(piece)
                if turn <= 0:
                    turn = TURN_SIZE
                    await writer.room()
                    await asyncio.sleep(0)
            size = await writer.do(journal, partial(journal.finish, snapshot.number))
        except Exception as error:
            self._failed(error)
            return
        if snapshot.number:
            self._written(snapshot.number)
        self._pictured(size)

    async def close(self) -> None:
        if self._picturing is not None:
            self._picturing.cancel()
            await asyncio.gather(self._picturing, return_exceptions=True)
        if self._writer is not None:
            await self._writer.close()
        self._folder.close()
        os.close(self._lock)


def _open(kind: type[LiveJournal], path: Path, group: str, name: str) -> LiveJournal:
    try:
        make_private_folder(path)
        lock = open_private(path / LOCK, os.O_RDWR | os.O_CREAT)
    except OSError as error:
        raise UsageError(f"{path} cannot be used for a journal: {error.strerror or error}") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        folder = DiskFolder(path)
        return kind(lock, folder, Journal(folder, group, name, secrets.randbits(63) + 1))
    except BlockingIOError:
        os.close(lock)
        raise UsageError(f"another replica writes to {path}: give each a folder of its own") from None
    except UsageError as error:
        os.close(lock)
        raise UsageError(f"{path}: {error}") from None
