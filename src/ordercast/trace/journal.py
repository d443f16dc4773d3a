"""The last submissions of a live process, kept where a kill cannot reach them.

Others deliver what a process sent a moment before it was killed; without its word that it had submitted this, nobody
could say whether they delivered what was sent. So each submission is also put into a small file that is mapped into
memory: no system call, no waiting, and what was put there stays when the process dies. Only the newest are kept, far
more than fit between two batches of the trace. A trace that is closed in order has no journal. One that was given up,
since the disk is full, says so in the last record, for which there is room already.
"""

from __future__ import annotations

import mmap
import os
import struct
from itertools import count
from pathlib import Path

import numpy as np

from ordercast.model.ids import Instant, ProcessId
from ordercast.trace.digests import Ints
from ordercast.trace.private_files import open_private
from ordercast.trace.records import UNKNOWN, MessageId, Submitted, SubmittedMessage

_RECORD = struct.Struct(">qIQHIQQ")  # time, sender, counter, service, size, digest; last its number, from 1
_NAMES = ("at", "sender", "counter", "service", "size", "digest", "number")
_FIELDS = np.dtype(list(zip(_NAMES, (">i8", ">u4", ">u8", ">u2", ">u4", ">u8", ">u8"), strict=True)))
assert _FIELDS.itemsize == _RECORD.size
_BOUND = 0x8000  # in the service: it has destinations, for which there is no room here
_SLOTS = 1 << 16
_SIZE = (_SLOTS + 1) * _RECORD.size
_GIVEN_UP = b"\xff" * _RECORD.size
_FEW = 8  # so few messages are put one by one


class Journal:
    def __init__(self, path: Path) -> None:
        """OSError when there is no room for it."""
        self._path = path
        self._count = 0
        file = open_private(path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        try:
            # Blocks that do not exist yet could not be had on a full disk, which would be the end of the process.
            os.posix_fallocate(file, 0, _SIZE)
            self._memory = mmap.mmap(file, _SIZE)
            self._records = np.frombuffer(self._memory, _FIELDS)
        finally:
            os.close(file)

    def put(
        self, at: Instant, sender: int, first: int, service: int, sizes: Ints, digests: Ints, *, is_bound: bool = False
    ) -> None:
        """Keep these messages of a sender, whose counters go on from `first`. `is_bound`: they have destinations."""
        service |= _BOUND * is_bound
        if len(sizes) > _FEW:
            self._put_many(at, sender, first, service, sizes[-_SLOTS:], digests[-_SLOTS:], len(sizes))
            return
        for counter, size, digest in zip(count(first), sizes.tolist(), digests.tolist(), strict=False):
            self._count += 1
            slot = self._count % _SLOTS * _RECORD.size
            _RECORD.pack_into(self._memory, slot, at, sender, counter, service, size, digest, self._count)

    def _put_many(
        self, at: Instant, sender: int, first: int, service: int, sizes: Ints, digests: Ints, number: int
    ) -> None:
        """Put the last of so many messages; by columns, and the numbers, by which records count, after all others."""
        self._count += number
        steps = np.arange(number - len(sizes), number)
        numbers = self._count - number + 1 + steps
        slots = _slots_of(numbers)
        for name, column in zip(_NAMES, (at, sender, first + steps, service, sizes, digests, numbers), strict=True):
            self._records[name][slots] = column

    def give_up(self) -> None:
        """Say that the trace ends here, and its process does not."""
        self._memory[-len(_GIVEN_UP) :] = _GIVEN_UP

    def remove(self) -> None:
        del self._records
        self._memory.close()
        self._path.unlink(missing_ok=True)


def _slots_of(numbers: Ints) -> slice | Ints:
    """Where records of these numbers, which follow each other, are: in one piece unless they go on at the beginning."""
    begin = int(numbers[0]) % _SLOTS
    return slice(begin, begin + len(numbers)) if begin + len(numbers) <= _SLOTS else numbers % _SLOTS


def was_given_up(path: Path) -> bool:
    """Whether the trace beside this journal was given up, since it could not be written."""
    try:
        with path.open("rb") as file:
            file.seek(_SIZE - len(_GIVEN_UP))
            return file.read() == _GIVEN_UP
    except OSError:
        return False


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
