"""Dictionary: keys and values, each bytes or str; compare-and-set for what depends on what was read."""

from __future__ import annotations

import struct
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self

from ordercast.model.errors import WireError
from ordercast.replicated.machine import Frozen, Origin
from ordercast.replicated.structures.base import NO, YES, Applied, Caller, Cut, Front, Reloaded, Structure, accepted
from ordercast.replicated.structures.fields import U32, Reader, Value, optional_bytes, value_bytes

SET, DELETE, COMPARE = 1, 2, 3
SET_BYTE: Final = bytes([SET])
HEAD: Final = struct.Struct("!BI")  # of a command: its kind, and twice the size of the key, one more if it is a str


class Dictionary(Structure["DictionaryFront"]):
    def __init__(self) -> None:
        self.entries: dict[Value, Value] = {}
        self._before: Mapping[Value, Value] = {}  # while it is filled: those of the one that it will replace

    def front(self, caller: Caller) -> DictionaryFront:
        return DictionaryFront(self, caller)

    def apply_all(self, commands: Sequence[bytes], origin: Origin) -> list[bytes]:
        """As every structure does, and faster for what comes most: a SET that is whole."""
        entries, head, mark = self.entries, HEAD.unpack_from, U32.unpack_from
        results = []
        for at, command in enumerate(commands):
            try:
                kind, key_mark = head(command)
                middle = 5 + (key_mark >> 1)
                (value_mark,) = mark(command, middle)
                if kind != SET or middle + 4 + (value_mark >> 1) != len(command):
                    raise ValueError
                key = command[5:middle].decode() if key_mark & 1 else command[5:middle]
                value = command[middle + 4 :].decode() if value_mark & 1 else command[middle + 4 :]
            except (ValueError, struct.error):
                results.append(self.apply(command, origin._replace(position=origin.position + at)))
                continue
            entries[key] = value
            results.append(YES)
        return results

    def carry_out(self, kind: int, fields: Reader, origin: Origin) -> bytes:
        key = fields.value()
        if kind == SET:
            value = fields.value()
            fields.end()
            self.entries[key] = value
            return YES
        if kind == DELETE:
            fields.end()
            return NO if self.entries.pop(key, None) is None else YES
        if kind == COMPARE:
            expected, wanted = fields.optional(), fields.optional()
            fields.end()
            return self._compare(key, expected, wanted)
        raise WireError(f"a dictionary has no command {kind}")

    def _compare(self, key: Value, expected: Value | None, wanted: Value | None) -> bytes:
        found = self.entries.get(key)
        if found != expected:
            return NO + optional_bytes(found)
        if wanted is None:
            self.entries.pop(key, None)
        else:
            self.entries[key] = wanted
        return YES

    def freeze(self) -> Frozen:
        entries = dict(self.entries)  # in the order in which the keys came, the same at everybody
        return Cut(lambda: (value_bytes(key) + value_bytes(value) for key, value in entries.items()))

    def blank(self) -> Self:
        other = type(self)()
        other._before = self.entries
        return other

    def fill(self, fields: Reader) -> None:
        """What is as it was before is not kept twice."""
        while not fields.is_at_end:
            key, value = fields.value(), fields.value()
            before = self._before.get(key)
            self.entries[key] = before if before is not None and before == value else value

    def adopt(self, other: Self) -> None:
        self.entries = other.entries


@dataclass(frozen=True, slots=True)
class KeyChanged:
    """A key has a value, or (None) has none any more."""

    key: Value
    value: Value | None
    position: int
    by: str  # whose command it was


@dataclass(frozen=True, slots=True)
class Compared:
    """What came of a compare-and-set."""

    succeeded: bool
    found: Value | None  # what was there
    position: int


class DictionaryFront(Front[Dictionary]):
    # Commands

    async def set(self, key: Value, value: Value, *, timeout: float | None = None) -> int:
        """Returns when it is confirmed, with its position."""
        if timeout is not None:
            return (await self._ask(SET, value_bytes(key) + value_bytes(value), timeout)).position
        return accepted(await self._caller.submit(SET_BYTE + value_bytes(key) + value_bytes(value))).position

    async def delete(self, key: Value, *, timeout: float | None = None) -> bool:
        """Whether there was such a key."""
        return (await self._ask(DELETE, value_bytes(key), timeout)).result == YES

    async def compare_and_set(
        self, key: Value, expected: Value | None, value: Value | None, *, timeout: float | None = None
    ) -> Compared:
        """Set it if it is as expected; None stands for no such key, on either side."""
        fields = value_bytes(key) + optional_bytes(expected) + optional_bytes(value)
        answer = await self._ask(COMPARE, fields, timeout)
        succeeded = answer.result == YES
        return Compared(succeeded, expected if succeeded else Reader(answer.result, 1).optional(), answer.position)

    # Reads

    def get(self, key: Value) -> Value | None:
        """From the copy that is here, at once: see `age`."""
        return self.machine.entries.get(key)

    async def latest(self, key: Value, *, timeout: float | None = None) -> Value | None:
        """Linearised: with everything that was confirmed to anybody before the call."""
        await self.synced(timeout=timeout)
        return self.get(key)

    def items(self) -> list[tuple[Value, Value]]:
        """In the order in which the keys came."""
        return list(self.machine.entries.items())

    def __len__(self) -> int:
        return len(self.machine.entries)

    def __contains__(self, key: Value) -> bool:
        return key in self.machine.entries

    def changes(self) -> AsyncIterator[KeyChanged | Reloaded]:
        """What is set and deleted from now on, in order."""
        return _changes(self._caller.watch(Applied, Reloaded))


async def _changes(events: AsyncIterator[Applied | Reloaded]) -> AsyncIterator[KeyChanged | Reloaded]:
    async for event in events:
        if isinstance(event, Reloaded):
            yield event
        elif (change := _changed(event)) is not None:
            yield change


def _changed(applied: Applied) -> KeyChanged | None:
    if applied.result != YES:
        return None
    fields = Reader(applied.command, 1)
    kind, key, value = applied.command[0], fields.value(), None
    if kind == SET:
        value = fields.value()
    elif kind == COMPARE:
        fields.optional()
        value = fields.optional()
    return KeyChanged(key, value, applied.origin.position, applied.origin.name)
