"""Commands that are submitted in one turn of a replica's driver travel together, as one command of the core. Pure.

This is the path of every command of the application, so it makes few objects: a batch is a list of commands and a list
of tickets beside it.

A batch is how many there are (4 bytes), the size of each (4 bytes), and then their bytes; the results of a batch look
the same, after the position of the first (8 bytes). Positions count the commands of the application one by one.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from ordercast.model.errors import WireError
from ordercast.replicated.effects import Ticket

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


class CommandBatch(NamedTuple):
    """Commands, and who waits for the answer of each; None: nobody. A call that only waits has no command."""

    commands: list[bytes]
    tickets: list[Ticket | None]

    @property
    def posted(self) -> list[bytes]:
        """The commands of which nobody waits for the answer."""
        return [command for command, ticket in zip(self.commands, self.tickets, strict=False) if ticket is None]

    @property
    def callers(self) -> list[Ticket]:
        return [ticket for ticket in self.tickets if ticket is not None]


class Batches:
    """What is to be submitted, and what was and has no answer."""

    def __init__(self, count_max: int) -> None:
        self.next = CommandBatch([], [])
        self.size = 0  # of the commands in it
        self.underway: dict[int, CommandBatch] = {}  # by the number of the core's request
        self.count = 0  # of commands in both
        self._count_max = count_max
        self._queue: deque[tuple[bytes, Ticket]] = deque()  # where there was no room

    def add(self, command: bytes, ticket: Ticket | None) -> bool:
        """Whether it is the first of those that are to be submitted. What somebody waits for may have to wait for
        room itself."""
        if ticket is not None and self.count >= self._count_max:
            self._queue.append((command, ticket))
            return False
        commands, tickets = self.next
        commands.append(command)
        tickets.append(ticket)
        self.size += len(command)
        self.count += 1
        return len(commands) == 1

    def take(self) -> Iterator[CommandBatch]:
        """Give the batches that are to be submitted."""
        batch, size = self.next, self.size
        self.next, self.size = CommandBatch([], []), 0
        if len(batch.commands) <= COMMANDS_MAX and size <= SIZE_MAX:
            if batch.commands:
                yield batch
            return
        start = size = 0
        for at, command in enumerate(batch.commands):
            if at > start and (at - start == COMMANDS_MAX or size + len(command) > SIZE_MAX):
                yield CommandBatch(batch.commands[start:at], batch.tickets[start:at])
                start, size = at, 0
            size += len(command)
        yield CommandBatch(batch.commands[start:], batch.tickets[start:])

    def has_posted(self, command: bytes) -> bool:
        """Is it waiting or underway, with nobody waiting for the answer?"""
        return any(command in batch.posted for batch in (self.next, *self.underway.values()))

    def settle(self, number: int) -> tuple[CommandBatch | None, bool]:
        """The batch with this number has its answer. Return it, and whether commands that there was no room for are to
        be submitted now."""
        batch = self.underway.pop(number, None)
        if batch is None:
            return None, False
        self.count -= len(batch.commands)
        is_new = False
        while self._queue and self.count < self._count_max:
            command, ticket = self._queue.popleft()
            if not ticket.done():  # whoever gave up has sent nothing
                is_new = self.add(command, ticket) or is_new
        return batch, is_new

    def is_queued(self, ticket: object) -> bool:
        """Was there no room for it so far? Then nothing of it was sent."""
        return any(each is ticket for _, each in self._queue)

    def clear(self) -> tuple[list[Ticket], list[Ticket]]:
        """Forget everything. Return those who wait for commands that were submitted, and those who wait otherwise."""
        sent, others = list[Ticket](), list[Ticket]()
        for batch in self.underway.values():
            (sent if batch.commands else others).extend(batch.callers)
        others += [*self.next.callers, *(ticket for _, ticket in self._queue)]
        self._queue.clear()
        self.next, self.underway, self.size, self.count = CommandBatch([], []), {}, 0, 0
        return sent, others
