"""Commands that are submitted in one turn of the event loop travel together, as one command of the core.

This is the path of every command of the application, so it makes few objects: a batch is a list of commands and a list
of futures beside it.

A batch is how many there are (4 bytes), the size of each (4 bytes), and then their bytes; the results of a batch look
the same, after the position of the first (8 bytes). Positions count the commands of the application one by one.
"""

from __future__ import annotations

import asyncio
import struct
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from ordercast.model.errors import WireError

COUNT: Final = struct.Struct("!I")
FIRST: Final = struct.Struct("!Q")
COMMANDS_MAX = 1024  # in a batch
SIZE_MAX = 256 << 10  # of a batch, unless one command alone is larger


def encode_batch(parts: Sequence[bytes]) -> bytes:
    return struct.pack(f"!{len(parts) + 1}I", len(parts), *map(len, parts)) + b"".join(parts)


def decode_batch(data: bytes, at: int = 0) -> list[bytes]:
    if len(data) < at + COUNT.size:
        raise WireError(f"a batch of {len(data)} bytes")
    (count,) = COUNT.unpack_from(data, at)
    if count > COMMANDS_MAX or len(data) < at + COUNT.size * (count + 1):
        raise WireError(f"a batch of {count} commands in {len(data)} bytes")
    sizes = struct.unpack_from(f"!{count}I", data, at + COUNT.size)
    at += COUNT.size * (count + 1)
    if at + sum(sizes) != len(data):
        raise WireError(f"{sum(sizes)} bytes of commands in {len(data) - at}")
    parts = []
    for size in sizes:
        parts.append(data[at : at + size])
        at += size
    return parts


def count_of(data: bytes) -> int:
    """How many commands of the application a batch has; what is none has none."""
    try:
        return len(decode_batch(data))
    except WireError:
        return 0


def encode_results(first: int, results: Sequence[bytes]) -> bytes:
    return FIRST.pack(first) + encode_batch(results)


def decode_results(data: bytes) -> tuple[int, list[bytes]]:
    if len(data) < FIRST.size:
        raise WireError(f"results of {len(data)} bytes")
    return FIRST.unpack_from(data)[0], decode_batch(data, FIRST.size)


class Answer(NamedTuple):
    """To one's own command."""

    position: int
    result: bytes


Waiting = asyncio.Future[Answer] | None  # None: nobody waits for the answer


class Batch(NamedTuple):
    """Commands, and who waits for the answer of each."""

    commands: list[bytes]
    waiting: list[Waiting]

    @property
    def posted(self) -> list[bytes]:
        """Those of which nobody waits for the answer."""
        return [command for command, future in zip(self.commands, self.waiting, strict=True) if future is None]

    def fail(self, error: BaseException) -> None:
        for future in self.waiting:
            if future is not None and not future.done():
                future.set_exception(error)


class Batches:
    """What is to be submitted, and what was and has no answer."""

    def __init__(self, count_max: int) -> None:
        self.next = Batch([], [])
        self.size = 0  # of the commands in it
        self.underway: dict[int, Batch] = {}  # by the number of the core's request
        self.count = 0  # of commands in both
        self._count_max = count_max
        self._queue: deque[tuple[bytes, asyncio.Future[Answer]]] = deque()  # where there was no room

    def add(self, command: bytes, future: Waiting) -> bool:
        """Whether it is the first of those that are to be submitted. What somebody waits for may have to wait for
        room itself."""
        if future is not None and self.count >= self._count_max:
            self._queue.append((command, future))
            return False
        commands, waiting = self.next
        commands.append(command)
        waiting.append(future)
        self.size += len(command)
        self.count += 1
        return len(commands) == 1

    def take(self) -> Iterator[Batch]:
        """What is to be submitted."""
        batch, size = self.next, self.size
        self.next, self.size = Batch([], []), 0
        if len(batch.commands) <= COMMANDS_MAX and size <= SIZE_MAX:
            if batch.commands:
                yield batch
            return
        start = size = 0
        for at, command in enumerate(batch.commands):
            if at > start and (at - start == COMMANDS_MAX or size + len(command) > SIZE_MAX):
                yield Batch(batch.commands[start:at], batch.waiting[start:at])
                start, size = at, 0
            size += len(command)
        yield Batch(batch.commands[start:], batch.waiting[start:])

    def has_posted(self, command: bytes) -> bool:
        """Is it waiting or underway, with nobody waiting for the answer?"""
        return any(command in batch.posted for batch in (self.next, *self.underway.values()))

    def confirm(self, number: int, results: bytes) -> bool:
        """Whether there is something to be submitted that there was no room for."""
        batch = self.underway.pop(number, None)
        if batch is None:
            return False
        first, answers = decode_results(results)
        make = tuple.__new__  # half the price of the name
        for position, (future, result) in enumerate(zip(batch.waiting, answers, strict=True), first):
            if future is not None and not future.done():
                future.set_result(make(Answer, (position, result)))
        return self._settled(batch)

    def refuse(self, number: int, error: Exception) -> tuple[list[bytes], bool]:
        """Those that nobody waits for: they are to be submitted again. And whether there is something to be flushed."""
        batch = self.underway.pop(number, None)
        if batch is None:
            return [], False
        batch.fail(error)
        return batch.posted, self._settled(batch)

    def _settled(self, batch: Batch) -> bool:
        """There is room for others."""
        self.count -= len(batch.commands)
        is_new = False
        while self._queue and self.count < self._count_max:
            command, future = self._queue.popleft()
            if not future.done():  # whoever gave up has sent nothing
                is_new = self.add(command, future) or is_new
        return is_new

    def is_queued(self, future: object) -> bool:
        """There was no room for it so far: nothing of it was sent."""
        return any(each is future for _, each in self._queue)

    def fail(self, error: BaseException, unsent: BaseException) -> None:
        """`unsent`: for those who have sent nothing."""
        queued = Batch([], [future for _, future in self._queue])
        failures = [(batch, error) for batch in self.underway.values()] + [(self.next, unsent), (queued, unsent)]
        for batch, failure in failures:
            batch.fail(failure)
            for future in batch.waiting:
                if future is not None and future.done() and not future.cancelled():
                    future.exception()  # seen: who waits for it gets it anyway
        self._queue.clear()
        self.next, self.underway, self.size, self.count = Batch([], []), {}, 0, 0
