"""Commands that are submitted in one turn of the event loop travel together, as one command of the core.

A batch is how many there are (4 bytes), the size of each (4 bytes), and then their bytes; the results of a batch look
the same, after the position of the first (8 bytes). Positions count the commands of the application one by one.
"""

from __future__ import annotations

import asyncio
import struct
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


class Entry(NamedTuple):
    """A command, and who waits for its answer, if anybody does."""

    command: bytes
    future: asyncio.Future[Answer] | None


class Batches:
    """What waits to be submitted, and what was and has no answer."""

    def __init__(self) -> None:
        self.waiting: list[Entry] = []
        self.underway: dict[int, list[Entry]] = {}  # by the number of the core's request
        self.count = 0  # of both

    def add(self, entry: Entry) -> None:
        self.waiting.append(entry)
        self.count += 1

    def take(self) -> Iterator[list[Entry]]:
        """What waits, in batches."""
        waiting, self.waiting = self.waiting, []
        batch: list[Entry] = []
        size = 0
        for entry in waiting:
            if batch and (len(batch) == COMMANDS_MAX or size + len(entry.command) > SIZE_MAX):
                yield batch
                batch, size = [], 0
            batch.append(entry)
            size += len(entry.command)
        if batch:
            yield batch

    def has_posted(self, command: bytes) -> bool:
        """Is it waiting or underway, with nobody waiting for the answer?"""
        batches = (self.waiting, *self.underway.values())
        return any(entry.future is None and entry.command == command for batch in batches for entry in batch)

    def confirm(self, number: int, results: bytes) -> None:
        entries = self._settled(number)
        first, answers = decode_results(results)
        for position, (entry, result) in enumerate(zip(entries, answers, strict=True), first):
            if entry.future is not None and not entry.future.done():
                entry.future.set_result(Answer(position, result))

    def refuse(self, number: int, error: Exception) -> list[bytes]:
        """Those that nobody waits for: they are to be submitted again."""
        entries = self._settled(number)
        for entry in entries:
            if entry.future is not None and not entry.future.done():
                entry.future.set_exception(error)
        return [entry.command for entry in entries if entry.future is None]

    def _settled(self, number: int) -> list[Entry]:
        entries = self.underway.pop(number, [])
        self.count -= len(entries)
        return entries

    def fail(self, error: BaseException) -> None:
        for batch in (self.waiting, *self.underway.values()):
            for entry in batch:
                if entry.future is not None and not entry.future.done():
                    entry.future.set_exception(error)
                    entry.future.exception()  # seen: who waits for it gets it anyway
        self.waiting, self.underway, self.count = [], {}, 0
