"""The last submissions of a live process, kept where a kill cannot reach them.

Others deliver what a process sent a moment before it was killed; without its word that it had submitted this, nobody
could say whether they delivered what was sent. So each submission is also put into a small file that is mapped into
memory: no system call, no waiting, and what was put there stays when the process dies. Only the newest are kept, far
more than fit between two batches of the trace. A trace that is closed in order has no journal.
"""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Sequence
from pathlib import Path

from ordercast.model.ids import Instant, ProcessId
from ordercast.trace.private_files import open_private
from ordercast.trace.records import UNKNOWN, MessageId, Submitted, SubmittedMessage

_RECORD = struct.Struct(">qIQHIQQ")  # time, sender, counter, service, size, digest; last its number, from 1
_BOUND = 0x8000  # in the service: it has destinations, for which there is no room here
_SLOTS = 1 << 16

Row = tuple[int, int, int, int, int]  # sender, counter, service, size, digest


class Journal:
    def __init__(self, path: Path) -> None:
        """OSError when there is no room for it."""
        self._path = path
        self._count = 0
        file = open_private(path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        try:
            # Blocks that do not exist yet could not be had on a full disk, which would be the end of the process.
            os.posix_fallocate(file, 0, _SLOTS * _RECORD.size)
            self._memory = mmap.mmap(file, _SLOTS * _RECORD.size)
        finally:
            os.close(file)

    def put(self, at: Instant, rows: Sequence[Row], *, has_destinations: bool = False) -> None:
        count, memory, pack, record = self._count, self._memory, _RECORD.pack_into, _RECORD.size
        bound = _BOUND * has_destinations
        for sender, counter, service, size, digest in rows:
            count += 1
            pack(memory, (count % _SLOTS) * record, at, sender, counter, service | bound, size, digest, count)
        self._count = count

    def remove(self) -> None:
        self._memory.close()
        self._path.unlink(missing_ok=True)


def submissions_after(path: Path, process: ProcessId, recorded: int) -> list[Submitted]:
    """What was submitted after the first `recorded` messages; nothing when that cannot be told without a gap."""
    try:
        data = path.read_bytes()
    except OSError:
        return []
    records = sorted(_RECORD.iter_unpack(data[: len(data) - len(data) % _RECORD.size]), key=lambda record: record[-1])
    result: list[Submitted] = []
    for at, sender, counter, service, size, digest, number in records:
        if number == recorded + len(result) + 1:
            message = SubmittedMessage(MessageId(process, sender, counter), digest, service & ~_BOUND, size)
            destinations = UNKNOWN if service & _BOUND else ()
            result.append(Submitted(Instant(at), process, (message,), destinations))
    return result
